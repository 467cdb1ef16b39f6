"""Labels of days ago change the numbers of their windows, and page nobody."""

import pytest

from ragtide.evaluators.builtin.exact_match import exact_match
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import World
from tests.stream.labels.scene import Scene

pytestmark = pytest.mark.clickhouse

RULES = [{"metric": "exact_match.exact_match", "rule": "mean", "min": 0.5}]


@pytest.mark.parametrize("late", [False, True])
def test_what_labels_tell_after_the_allowed_lateness_pages_nobody(database: Database, late: bool) -> None:
    world = World(database, evaluators={exact_match.id: exact_match})
    world.rules = world.rules.model_validate({**world.rules.model_dump(), "overrides": RULES, "missing_after_s": None})
    world.elect()
    scene = Scene(database)
    scene.now_ms = int(world.start.timestamp() * 1000)
    names = [f"t{second}" for second in range(0, 240, 5)]
    scene.take([scene.trace(name, answer="wrong", time=scene.now_ms + 5000 * at) for at, name in enumerate(names)])
    world.advance(300)
    world.advance(310)
    states = (
        "SELECT sum(scored) AS scored, groupUniqArray(toString(state)) AS states FROM windows FINAL "
        "WHERE size_s = 60 AND evaluator = 'exact_match'"
    )
    assert database.rows(states) == [{"scored": 0, "states": ["closed"]}]
    if late:
        world.advance(300 + 3600 + 60)
    scene.read([scene.label(name, expected=["right"]) for name in names])
    scene.settle()
    world.advance(320 + late * (3600 + 60))
    world.advance(330 + late * (3600 + 60))
    (found,) = database.rows(states)
    assert found["scored"] == len(names)
    assert found["states"] == (["frozen"] if late else ["revised"])
    assert [problem.metric for problem in world.open()] == ([] if late else ["exact_match.exact_match"])
