"""Problems as an operator sees them, from scores to events, on the real engine."""

import pytest

from ragtide.drift.settings import RuleSettings
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import World

pytestmark = pytest.mark.clickhouse


def test_opens_once_is_updated_and_resolves(database: Database) -> None:
    world = World(database, rules=RuleSettings(min_sample=10, k=2, m=3, resolve_after=2, update_every_s=0))
    for minute, value in enumerate([0.9, 0.9, 0.4, 0.4, 0.3, 0.9, 0.9]):
        world.scores(minute * 60, [value] * 20)
        world.advance(minute * 60 + 59)
        world.advance((minute + 1) * 60)
        world.watch((minute + 1) * 60)
        states = [(p.episode, p.state) for p in world.problems()]
        expected = [[], [], [(1, "pending")], [(1, "open")], [(1, "open")], [(1, "open")], [(1, "resolved")]]
        assert states == expected[minute], minute
    (problem,) = world.problems()
    assert problem.metric == "quality.good"
    assert problem.openings == 1
    assert problem.attributes["baseline"] == pytest.approx(0.9)
    assert problem.attributes["value"] == pytest.approx((0.4 + 0.4 + 0.3) / 3)
    assert problem.attributes["sample_size"] == problem.attributes["wrong"] == 60
    assert problem.attributes["since"] == world.at(120).isoformat()
    assert problem.attributes["effect_size"] == pytest.approx((1.1 / 3 - 0.9) / 0.9)
    assert problem.attributes["traffic"] == 60
    assert problem.attributes["window"] == {"start": world.at(240).isoformat(), "end": world.at(300).isoformat()}
    assert problem.attributes["window_value"] == pytest.approx(0.3)
    assert problem.attributes["last_value"] == pytest.approx(0.9)
    assert problem.description == (
        "shop (prod, model m1): the mean of quality.good fell from 0.9 to 0.367, below 0.75, on 60 traces "
        f"(60 failed), since {world.at(120):%Y-%m-%d %H:%M:%S} UTC."
    )
    assert problem.actions
    assert problem.severity == "critical"
    assert problem.type == "accuracy"
    assert len(problem.examples) == 10
    assert all(example.startswith("t") for example in problem.examples)
    events = database.rows("SELECT event FROM problem_events FINAL ORDER BY at")
    assert [row["event"] for row in events] == ["pending", "opened", "updated", "resolved"]
