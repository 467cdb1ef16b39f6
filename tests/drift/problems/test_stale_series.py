"""A problem of what was given up ends, and that of what pauses does not."""

from datetime import UTC, datetime, timedelta

import pytest

from ragtide.drift.rule_settings import AppRules
from ragtide.drift.settings import RuleSettings
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import World

pytestmark = pytest.mark.clickhouse
HOUR, DAY = 3600, 86400


def test_a_model_that_another_took_the_place_of_has_no_problem(database: Database) -> None:
    start = (datetime.now(UTC) - timedelta(days=20)).replace(minute=0, second=0, microsecond=0)
    own = {"shop": AppRules(stale_after_s=6 * HOUR)}
    rules = RuleSettings(min_sample=10, k=2, m=3, resolve_after=2, missing_after_s=None, apps=own)
    world = World(database, rules=rules, start=start)

    def minute(second: int, **values: float) -> dict[str, str]:
        for model, value in values.items():
            world.scores(second, [value] * 20, model=model)
            world.scores(second, [value] * 20, app="another", model=model)
        if second < DAY:
            world.scores(second, [0.3] * 20, app="retired")
        world.advance(second + 60)
        return {f"{problem.app} {problem.model}": problem.state for problem in world.problems()}

    minute(0, old=0.3, rare=0.3)
    found = minute(60, old=0.3, rare=0.3)
    assert found == {
        **{f"{app} {model}": "open" for app in ("shop", "another") for model in ("old", "rare")},
        "retired m1": "open",
    }
    world.scores(120, [0.3] * 3, model="rare")  # too few to be judged, and yet it is there
    world.scores(8 * HOUR, [0.9] * 3, model="rare")
    assert set(minute(5 * HOUR, new=0.9).values()) == {"open"}
    found = minute(9 * HOUR, new=0.9)
    assert (found["shop old"], found["shop rare"], found["retired m1"]) == ("resolved", "open", "open")
    assert found["another old"] == "open", "a day is how long other applications wait"
    assert minute(9 * HOUR + 60, new=0.9) == found
    world.elect()
    assert minute(9 * HOUR + 120, old=0.3, new=0.9)["shop old"] == "resolved", "one bad window is none"
    assert minute(16 * DAY, new=0.9)["retired m1"] == "resolved"
