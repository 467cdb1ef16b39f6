"""A run of a check after an outage stores the events that runs in between would have."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from ragtide.drift.checks.engine import Check
from ragtide.drift.checks.evaluator_errors import EvaluatorErrors
from ragtide.drift.checks.failure_rates import FailureRates
from ragtide.drift.checks.findings import Findings
from ragtide.drift.problems.model import EventRow
from ragtide.drift.settings import JobSettings, RuleSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.rows import ScoreRow
from tests.drift.world import World, score_row
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse
RULES = RuleSettings(
    min_sample=10, k=2, m=3, resolve_after=2, chance=1, failure_limit=0.4, finding_traces=5, flapping_quiet_s=120,
    update_every_s=86_400,
)  # fmt: skip
EVERY_MINUTE = JobSettings(checks_every_s=60, rates_every_s=60)
GOOD, BAD = [0.95] * 10, [0.7] * 6 + [1.0] * 4  # six of ten below 0.75, and a mean of 0.82
# Good, an episode, good, a second one that is still on.
START = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
MINUTES = [GOOD] * 3 + [BAD] * 3 + [GOOD] * 5 + [BAD] * 3
CHECKS: Sequence[Check] = (FailureRates(), EvaluatorErrors(), Findings())


def play(database: Database, runs: Sequence[int]) -> Iterator[EventRow]:
    """Store a minute after the other; the checks run after these minutes only."""
    world = World(database, rules=RULES, settings=EVERY_MINUTE, start=START)
    for number, values in enumerate(MINUTES):
        is_bad = values is BAD
        findings = ["cut"] if is_bad else []
        rows = [
            score_row(world.at(60 * number + i), f"t{number}-{i}", {"good": value})._replace(findings=findings)
            for i, value in enumerate(values)
        ]
        world.store([*rows, *failures(world, number, 9 if is_bad else 0)])
        world.advance(60 * (number + 1))
        if number in runs:
            for check in CHECKS:
                yield from world.check(check, world.at(60 * (number + 1) + 1)).events


def failures(world: World, number: int, count: int) -> Iterator[ScoreRow]:
    for i in range(count):
        yield score_row(world.at(60 * number + 30 + i), f"f{number}-{i}", status="failed", reason="contract")


def test_problems_within_an_outage_are_those_of_live_runs(clickhouse_server: EmbeddedClickHouse) -> None:
    """One before the first run after it and one still on, of every kind; also where it began within a problem."""
    last = len(MINUTES) - 1
    found = []
    for runs in (range(last + 1), (1, last), (1, 5, last)):
        with fresh_database(clickhouse_server) as database:
            events = sorted(play(database, list(runs)), key=lambda one: (one.kind, one.at))
            found.append([(one.event, one.kind, one.at, one.description) for one in events])
    live, after_outage, within_problem = found
    opened = [kind for event, kind, *_ in live if event in ("opened", "reopened", "kind_opened")]
    assert sorted(opened) == [*["evaluator_error"] * 2, *["failure_rate"] * 2, "finding"]  # it looks at an hour
    assert after_outage == live
    assert within_problem == live


def test_the_first_run_raises_nothing_of_the_past(database: Database) -> None:
    events = list(play(database, [len(MINUTES) - 1]))
    assert [event.kind for event in events if event.event == "opened"] == ["failure_rate", "evaluator_error", "finding"]
    assert {event.at for event in events} == {START + timedelta(seconds=60 * len(MINUTES) + 1)}
