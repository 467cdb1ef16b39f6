"""Problems that open, change and resolve; leaders that post them; an Alertmanager and people behind it."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count, repeat
from typing import Any

from ragtide.drift.jobs import server_time
from ragtide.drift.leadership import LeaderRow, Term
from ragtide.drift.notify.alert import AlertContext
from ragtide.drift.notify.alertmanager import AlertmanagerJob
from ragtide.drift.notify.alertmanager_target import Holding, PostResult
from ragtide.drift.problems.model import EventRow
from ragtide.drift.routes import Route
from ragtide.sinks.alertmanager_settings import AlertmanagerSettings
from ragtide.sinks.clickhouse.database import Database
from tests.dashboards.sample_rows import event

ROUTES = (
    Route(app="search-*", owner="search-team", labels={"channel": "#search"}),
    Route(type="privacy", owner="privacy-team"),
)
CONTEXT = AlertContext(ROUTES, {"cluster": "eu"}, "https://wiki.example.org/{}".format)
_NUMBERS = count(1)


def settings_for(*urls: str, **other: Any) -> AlertmanagerSettings:
    """Waits for every round, so that a run shows what it did."""
    return AlertmanagerSettings(**{"urls": urls, "every_s": 30, "repost_s": 60, "timeout_s": 5, **other})


class Scene:
    """One database, and leaders in turn."""

    def __init__(self, database: Database, *urls: str, **settings: Any) -> None:
        self.database = database
        self.settings = settings_for(*urls, **settings)
        self.holdings: dict[str, Holding] = {}
        self._jobs: list[AlertmanagerJob] = []
        self.elect()

    def elect(self) -> None:
        """Another process leads from now on."""
        epoch = len(self._jobs) + 1
        self.database.insert("leaders", [LeaderRow(epoch, f"p{epoch}")])
        self.term = Term(epoch, self.now())
        self._jobs.append(self.job())

    def job(self) -> AlertmanagerJob:
        return AlertmanagerJob(self.database, self.settings, CONTEXT, self._measure, _no_pause)

    def now(self) -> datetime:
        return server_time(self.database)

    def run(self, later_s: float = 0) -> PostResult:
        return self._jobs[-1].run(self.term, self.now() + timedelta(seconds=later_s))

    def run_old_leader(self, later_s: float = 0) -> PostResult:
        """The leader before, which has not noticed."""
        old = Term(self.term.epoch - 1, self.now())
        return self._jobs[-2].run(old, self.now() + timedelta(seconds=later_s))

    def close(self) -> None:
        for job in self._jobs:
            job.close()

    def opens(self, *problems: str, **details: Any) -> None:
        self.happens("opened", *problems, **details)

    def resolves(self, *problems: str, **details: Any) -> None:
        self.happens("resolved", *problems, **details)

    def happens(self, what: str, *problems: str, **details: Any) -> None:
        self.database.insert("problem_events", [self._event(one, what, **details) for one in problems])

    def _event(self, problem: str, what: str, **details: Any) -> EventRow:
        """A second ago; of what users ask, unless the details say more: such problems explain no others."""
        fields: dict[str, Any] = {"app": "search-web", "metric": f"quality.{problem}", "description": f"{problem} fell"}
        fields |= {"aspect": "inputs", **details}
        at = fields.pop("at", self.now() - timedelta(seconds=1))
        return event(problem, f"e{next(_NUMBERS)}", what, fields.pop("episode", 1), at, **fields)

    def _measure(self, url: str, holding: Holding) -> None:
        self.holdings[url] = holding


def _no_pause() -> Iterator[float]:
    return repeat(0.0)
