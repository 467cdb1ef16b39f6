"""The view `problems` says of any events what `ragtide.drift.problems.fold` says of them."""

import json
from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ragtide.drift.problems.model import EVENTS, EventRow
from ragtide.drift.problems.store import fold_events
from ragtide.sinks.clickhouse.database import Database
from tests.dashboards.sample_rows import NOON

pytestmark = pytest.mark.clickhouse

COMPARED = (
    "state", "app", "kinds", "type", "severity", "standards", "title", "description", "examples", "actions", "rule_id",
    "first_seen_at", "last_seen_at", "opened_at", "resolved_at", "openings", "acked_by", "accepted_by", "muted_by",
    "muted_until", "active_kinds", "explanation",
)  # fmt: skip


@st.composite
def histories(
    draw: st.DrawFn, names: Sequence[str] = EVENTS, problems: str = "pqrstu", kinds: Sequence[str] = ("", "a", "b")
) -> list[EventRow]:
    """Events of these names, of two episodes of each problem, at few moments, in any order."""
    words = st.sampled_from(["", "a", "b"])
    severities = st.sampled_from(["", "info", "warning", "critical"])
    attributes = st.sampled_from(
        [
            "{}",
            '{"until": "2026-03-01T13:00:00.250+00:00"}',
            '{"since": "2026-03-01T11:00:00+02:00", "rule": "share", "min": 0.5, "limit": 2, "baseline": 1.25}',
            '{"opening": 1}',
            '{"opening": 2}',
        ]
    )
    lists = st.lists(words, max_size=2)
    return [
        EventRow(
            problem_id=draw(st.sampled_from(problems)), event_id=f"e{number:02d}", event=draw(st.sampled_from(names)),
            episode=draw(st.integers(1, 2)), at=NOON + timedelta(milliseconds=draw(st.integers(0, 4))), app="app",
            environment="", model="", aspect="level", metric="", segment="", segment_value="",
            kind=draw(st.sampled_from(kinds)),
            type=draw(words), severity=draw(severities), code="", standards=draw(lists), description=draw(words),
            attributes=draw(attributes), examples=draw(lists), actions=draw(lists), rule_id=draw(words),
            actor=draw(words), epoch=1, title=draw(words),
        )
        for number in range(draw(st.integers(1, 60)))
    ]  # fmt: skip


def event(name: str, millisecond: int) -> EventRow:
    return EventRow(
        problem_id="p", event_id=f"e{millisecond}", event=name, episode=1,
        at=NOON + timedelta(milliseconds=millisecond), app="app", environment="", model="", aspect="level", metric="",
        segment="", segment_value="", kind="a", type="a", severity="a", code="", standards=[],
        description=name, attributes='{"opening": 1}', examples=[], actions=[], rule_id="a", actor="ada", epoch=1,
    )  # fmt: skip


@example(history=[event(name, ms) for ms, name in enumerate(("opened", "explained", "resolved", "explained"))])
@example(history=[event(name, ms) for ms, name in enumerate(("pending", "withdrawn", "acked", "pending"))])
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(history=histories())
def test_view_and_fold_agree(database: Database, history: list[EventRow]) -> None:
    database.command("TRUNCATE TABLE problem_events")
    database.insert("problem_events", history)
    found = {(row["problem_id"], row["episode"]): row for row in database.rows("SELECT * FROM problems")}
    told = {(problem.problem_id, problem.episode): problem for problem in fold_events(history)}
    assert set(found) == set(told)
    for key, problem in told.items():
        row = {name: tuple(v) if isinstance(v := found[key][name], list) else v for name in COMPARED}
        assert row == {name: getattr(problem, name) for name in COMPARED}
        assert found[key]["since"] == problem.evidence.since
        assert found[key]["figures"] == {name: getattr(problem.evidence, name) for name in found[key]["figures"]}
        assert json.loads(found[key]["cause"] or "{}") == problem.cause
