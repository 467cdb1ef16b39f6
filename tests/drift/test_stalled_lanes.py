"""A lane that writes nothing: its evaluators owe rows, and that is a problem of coverage until they come."""

import pytest

from ragtide.drift.settings import JobSettings, RuleSettings, WindowSettings
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import World, score_row

pytestmark = pytest.mark.clickhouse
WAIT_S = 10 + 2 * 60


def model_lane(world: World, minute: int, *, recorded: bool, share: float = 1.0) -> None:
    """A minute of twenty traces that lane fast stores, and lane model where it is there."""
    rows = world.scores(minute * 60, [0.9] * 20, name=f"t{minute}")
    if recorded:
        scored = [
            score_row(row.time, row.trace_id, {"near": 0.9}, evaluator="meaning")
            if i < share * 20
            else score_row(row.time, row.trace_id, evaluator="meaning", status="sampled_out", reason="not_sampled")
            for i, row in enumerate(rows)
        ]
        world.store(scored, "model", traces=False)
        world.progress((minute + 1) * 60, lane="model")
    world.advance((minute + 1) * 60)


@pytest.fixture
def world(database: Database) -> World:
    return World(
        database,
        rules=RuleSettings(min_sample=10, k=2, m=3, resolve_after=2, missing_after_s=None),
        windows=WindowSettings(out_of_orderness_s=0, heartbeat_timeout_s=10, stuck_wait_s=60),
        settings=JobSettings(reconcile_every_s=0.001),
    )


def test_a_lane_that_stopped_is_a_problem_until_it_has_caught_up(world: World) -> None:
    for minute in range(2):
        model_lane(world, minute, recorded=True)
    for minute in range(2, 4):
        model_lane(world, minute, recorded=False)
    assert world.problems() == []  # it may be slow, and a stuck partition is waited for
    model_lane(world, 4, recorded=False)
    (problem,) = world.open()
    assert (problem.aspect, problem.metric, problem.severity) == ("coverage", "meaning.near", "critical")
    assert problem.attributes["since"] == world.at(120).isoformat()
    assert problem.attributes["reasons"] == ["missing 60"]
    assert problem.attributes["wrong"] == problem.attributes["sample_size"] == 60
    assert problem.examples[0] == "t4-19"
    assert "of applicable traces got no score from meaning" in problem.description
    count = "SELECT count() AS n FROM verdicts"
    before = world.database.rows(count)
    world.watch(301)
    assert world.database.rows(count) == before
    late = [
        score_row(world.at(minute * 60 + i / 10), f"t{minute}-{i}", {"near": 0.9}, evaluator="meaning")
        for minute in range(2, 5)
        for i in range(20)
    ]
    world.store(late, "model", traces=False)
    world.progress(300, lane="model")
    world.watch(310)
    (problem,) = world.problems()
    assert problem.state == "resolved"
    verdicts = world.database.rows(
        "SELECT revision, breached, wrong FROM verdicts FINAL "
        "WHERE metric = 'meaning.near' AND startsWith(rule_id, 'coverage') ORDER BY start"
    )
    assert [tuple(row.values()) for row in verdicts] == [(1, 0, 0)] * 5


def test_a_leader_that_crashes_before_the_event_loses_no_problem(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for minute in range(2):
        model_lane(world, minute, recorded=True)
    with monkeypatch.context() as patched:
        patched.setattr("ragtide.drift.problems.raise_from_rules.Raiser.run", lambda *_: [])
        for minute in range(2, 5):
            model_lane(world, minute, recorded=False)
    assert world.problems() == []
    world.watch(301)
    assert [p.metric for p in world.open()] == ["meaning.near"]


def test_of_a_sampled_evaluator_only_its_share_is_missing(world: World) -> None:
    for minute in range(2):
        model_lane(world, minute, recorded=True, share=0.5)
    for minute in range(2, 6):
        model_lane(world, minute, recorded=False)
    (problem,) = world.open()
    assert problem.attributes["reasons"] == ["missing 30"]


def test_a_lane_that_is_only_slow_is_none(world: World) -> None:
    for minute in range(8):
        model_lane(world, minute, recorded=minute < 2)
        world.progress(120 + minute, lane="model", lag=1000)  # far behind, and moving
    world.watch(8 * 60 + 1)
    assert world.problems() == []


def test_a_lane_that_never_recorded_an_app_owes_nothing(world: World) -> None:
    world.progress(0, lane="model")
    for minute in range(6):
        model_lane(world, minute, recorded=False)
    assert world.problems() == []


def test_where_every_lane_stands_nothing_more_was_seen_and_nothing_is_missing(world: World) -> None:
    for minute in range(2):
        model_lane(world, minute, recorded=True)
    for second in range(130, 130 + 3 * WAIT_S, 60):
        world.watch(second)
    assert world.problems() == []
