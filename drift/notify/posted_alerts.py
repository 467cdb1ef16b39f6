"""Table `alerts_posted`: which alerts each Alertmanager may hold.

An alert is stored as firing before it is first posted, and as ended after its end was accepted. So whoever goes on,
after a crash or as another leader, ends each alert that may fire, under the labels that it was posted with.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, NamedTuple

from ragtide.drift.leadership import Term
from ragtide.drift.notify.alert import Alert
from ragtide.sinks.clickhouse.database import Database

PostedState = Literal["firing", "ended", "refused"]
_LONGEST_WHY = 500  # characters


class _PostedRow(NamedTuple):
    """Table `alerts_posted`."""

    url: str
    fingerprint: str
    problem_id: str
    labels: dict[str, str]
    annotations: str
    state: PostedState
    why: str
    started_at: datetime
    ended_at: datetime | None
    accepted_at: datetime | None
    version: int


@dataclass(frozen=True, slots=True)
class PostedAlert:
    """An alert at one Alertmanager. `accepted_at` is when it accepted the end, by its own clock."""

    alert: Alert
    state: PostedState = "firing"
    ended_at: datetime | None = None
    accepted_at: datetime | None = None
    why: str = ""

    @property
    def fingerprint(self) -> str:
        """That of its labels."""
        return self.alert.fingerprint

    def ended(self, at: datetime) -> "PostedAlert":
        """Return the same, resolved at this time or at its start if that is later."""
        return replace(self, ended_at=max(at, self.alert.starts_at))


def store_posted(database: Database, url: str, some: Iterable[PostedAlert], term: Term) -> None:
    """Store the states of alerts at this Alertmanager; those of a newer leader win."""
    rows = [
        _PostedRow(
            url=url,
            fingerprint=one.fingerprint,
            problem_id=one.alert.problem_id,
            labels=dict(one.alert.labels),
            annotations=json.dumps(one.alert.annotations),
            state=one.state,
            why=one.why[:_LONGEST_WHY],
            started_at=one.alert.starts_at,
            ended_at=one.ended_at if one.state == "ended" else None,
            accepted_at=one.accepted_at,
            version=term.next_version(),
        )
        for one in some
    ]
    database.insert("alerts_posted", rows)


def load_posted(database: Database, url: str, ended_since: datetime) -> list[PostedAlert]:
    """Load alerts that may fire at this Alertmanager, and those whose end it accepted since then."""
    rows = database.rows(
        "SELECT labels, annotations, state, started_at, ended_at, accepted_at FROM alerts_posted FINAL "
        "WHERE url = {url:String} AND (state = 'firing' "
        "OR (state = 'ended' AND accepted_at >= {since:DateTime64(3, 'UTC')})) ORDER BY fingerprint",
        {"url": url, "since": ended_since},
    )
    return [
        PostedAlert(
            Alert(row["labels"], json.loads(row["annotations"]), row["started_at"]),
            row["state"],
            row["ended_at"],
            row["accepted_at"],
        )
        for row in rows
    ]
