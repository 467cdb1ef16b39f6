"""A check observes; the engine keeps the life cycle of its problems, in live runs and in backtests."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from ragtide.drift import checks
from ragtide.drift.backtest.run import backtest
from ragtide.drift.checks.engine import Check, CheckContext, CumulativeCounts, Observation
from ragtide.drift.checks.hysteresis import CheckState
from ragtide.drift.jobs import every_check
from ragtide.drift.problems.kinds import KINDS, KindInfo
from ragtide.drift.problems.report import Detection, ProblemKey, build_details
from ragtide.drift.settings import RuleSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.job_schedule import job_schedule
from ragtide.stream.settings.loader import Settings
from ragtide.stream.telemetry.registry import Telemetry
from tests.drift.world import World

RULES = RuleSettings(flap_s=0, update_every_s=0)
CONTRIBUTING = Path(__file__).parents[3] / "CONTRIBUTING.md"
KEY = ProblemKey("shop", "prod", "", "finding", "queue", "queue", "depth")


class Scripted(Check):
    """Has the state that the test sets; `None`: the key is not observed."""

    kind = "finding"
    job = "scripted"

    def __init__(self) -> None:
        self.states: dict[int, CheckState | None] = {}
        self.until: timedelta | None = timedelta()

    @classmethod
    def owns(cls, key: ProblemKey) -> bool:
        return key.segment == "queue"

    def judged_until(self, ctx: CheckContext, key: ProblemKey, now: datetime) -> datetime | None:
        return None if self.until is None else now - self.until

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        state = self.states.get(int(now.timestamp()))
        if state is not None:
            yield Observation(KEY, state, (lambda: detection(now)) if state == "bad" else None, read=3)


def detection(now: datetime) -> Detection:
    details = build_details("finding", KEY, None, "It is deep.", {}, RULES, severity="warning")
    return Detection(KEY, details, now, now)


def run(world: World, check: Scripted, minute: int, state: CheckState | None) -> list[str]:
    now = world.at(60 * minute)
    check.states[int(now.timestamp())] = state
    return [event.event for event in world.check(check, now).events]


@pytest.mark.clickhouse
def test_a_key_is_open_while_it_is_bad_or_unclear_and_clears_where_it_is_good_or_not_observed(
    database: Database,
) -> None:
    world, check = World(database, rules=RULES), Scripted()
    assert run(world, check, 1, "unclear") == []
    assert run(world, check, 2, "bad") == ["opened"]
    assert run(world, check, 3, "unclear") == []
    assert run(world, check, 4, "good") == ["resolved"]
    assert run(world, check, 5, "good") == []
    assert run(world, check, 6, "bad") == ["opened"]
    check.until = None
    assert run(world, check, 7, None) == [], "a run that cannot judge the key clears nothing"
    check.until = timedelta(minutes=1)
    assert run(world, check, 8, None) == ["resolved"]
    (_, last) = sorted(world.problems(), key=lambda one: one.episode)
    assert last.attributes["until"] == world.at(7 * 60).isoformat()


@pytest.mark.clickhouse
def test_a_check_leaves_problems_that_it_does_not_own(database: Database) -> None:
    world, check = World(database, rules=RULES), Scripted()
    run(world, check, 1, "bad")

    class Other(Scripted):
        @classmethod
        def owns(cls, key: ProblemKey) -> bool:
            return False

    assert run(world, Other(), 2, None) == []
    assert [one.segment for one in world.open()] == ["queue"]


def test_counts_within_intervals() -> None:
    counts = CumulativeCounts.of([(10, 2), (20, 3), (30, 5)])
    at = counts.at  # any array of times
    assert counts.within(at - 10, at).tolist() == [0, 2, 3]
    assert counts.within(at, at + 1).tolist() == [2, 3, 5]


def test_every_check_can_be_made_and_says_how_problems_of_its_kind_are_classified() -> None:
    assert {one.__name__ for one in every_check()} >= {"EvaluatorErrors", "MissingData", "FlipRate", "AnswerAgreement"}
    for check in every_check():
        assert check().kind in KINDS
        assert check.has_history or check.rule == ""


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The module of the sample in CONTRIBUTING.md, in a folder that the room has too, and a row of `KINDS`."""
    _, _, section = CONTRIBUTING.read_text().partition("## Add a problem kind\n")
    (tmp_path / "open_tickets.py").write_text(section.split("```python\n")[1].split("```")[0])
    monkeypatch.setattr(checks, "__path__", [*checks.__path__, str(tmp_path)])
    info = KindInfo(type="data_quality", actions=("Close the oldest ticket.",), actions_suffice=True)
    monkeypatch.setitem(KINDS, "open_tickets", info)
    every_check.cache_clear()
    yield
    every_check.cache_clear()


@pytest.mark.clickhouse
@pytest.mark.usefixtures("added")
def test_a_problem_kind_is_a_module_and_a_row(database: Database) -> None:
    database.command("CREATE TABLE tickets (is_open Bool) ENGINE = MergeTree ORDER BY ()")
    database.command("INSERT INTO tickets SELECT true FROM numbers(101)")
    world = World(database, rules=RULES)
    scheduled = {name for name, _, _ in job_schedule(Settings(), database, Telemetry(), lambda: False)}
    assert "tickets" in scheduled
    (check,) = (one() for one in every_check() if one.job == "tickets")
    assert [event.event for event in world.check(check, world.at(60)).events] == ["opened"]
    (problem,) = world.open()
    assert (problem.type, problem.actions) == ("data_quality", ("Close the oldest ticket.",))
    found = backtest(database, world.evaluators, RULES, world.windows, world.settings, world.at(0), world.at(3600))
    message = "101 tickets are open, above the limit of 100."
    assert [(one.rule, one.description) for one in found] == [("open_tickets", message)]
    database.command("ALTER TABLE tickets DELETE WHERE 1 SETTINGS mutations_sync = 1")
    assert [event.event for event in world.check(check, world.at(120)).events] == ["resolved"]
