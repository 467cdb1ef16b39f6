"""The view `problems` says of any events what `drift.problems.fold` says of them."""

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from drift.problems import EVENTS, EventRow, fold
from sinks.clickhouse.database import Database
from tests.dashboards.stored import NOON

pytestmark = pytest.mark.clickhouse

COMPARED = (
    "state", "app", "kinds", "type", "severity", "standards", "description", "examples", "actions", "rule_id",
    "first_seen_at", "last_seen_at", "opened_at", "resolved_at", "openings", "acked_by", "muted_by",
)  # fmt: skip


@st.composite
def histories(draw: st.DrawFn) -> list[EventRow]:
    """Events of a few episodes, at few moments, in any order."""
    words = st.sampled_from(["", "a", "b"])
    lists = st.lists(words, max_size=2)
    return [
        EventRow(
            problem_id=draw(st.sampled_from("pq")), event_id=f"e{number:02d}", event=draw(st.sampled_from(EVENTS)),
            episode=draw(st.integers(1, 2)), at=NOON + timedelta(milliseconds=draw(st.integers(0, 4))), app="app",
            environment="", model="", aspect="level", metric="", segment="", segment_value="", kind=draw(words),
            type=draw(words), severity=draw(words), code="", standards=draw(lists), description=draw(words),
            attributes="{}", examples=draw(lists), actions=draw(lists), rule_id=draw(words), actor=draw(words), epoch=1,
        )
        for number in range(draw(st.integers(1, 14)))
    ]  # fmt: skip


def event(name: str, millisecond: int) -> EventRow:
    return EventRow(
        problem_id="p", event_id=f"e{millisecond}", event=name, episode=1,
        at=NOON + timedelta(milliseconds=millisecond), app="app", environment="", model="", aspect="level", metric="",
        segment="", segment_value="", kind="a", type="a", severity="a", code="", standards=[], description="",
        attributes="{}", examples=[], actions=[], rule_id="a", actor="ada", epoch=1,
    )  # fmt: skip


@example(history=[event(name, ms) for ms, name in enumerate(("pending", "withdrawn", "acked", "pending"))])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=histories())
def test_view_and_fold_agree(database: Database, history: list[EventRow]) -> None:
    database.command("TRUNCATE TABLE problem_events")
    database.insert("problem_events", history)
    found = {(row["problem_id"], row["episode"]): row for row in database.rows("SELECT * FROM problems")}
    told = {(problem.problem_id, problem.episode): problem for problem in fold(history)}
    assert set(found) == set(told)
    for key, problem in told.items():
        row = {name: tuple(v) if isinstance(v := found[key][name], list) else v for name in COMPARED}
        assert row == {name: getattr(problem, name) for name in COMPARED}
