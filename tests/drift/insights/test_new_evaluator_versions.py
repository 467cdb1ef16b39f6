"""A new fingerprint is an insight of the period that it began in, stated once however often it is looked for."""

import json
from datetime import timedelta

import pytest

from ragtide.drift.insights.job import run_insights
from ragtide.drift.insights.model import Period
from ragtide.drift.settings import DriftSettings, JobSettings, RuleSettings, WindowSettings
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import World

pytestmark = pytest.mark.clickhouse
DAY = 86400


def test_a_new_version_is_stated_once_where_there_was_another_before(database: Database) -> None:
    world = World(database, windows=WindowSettings(base_s=60, sizes_s=(60,), out_of_orderness_s=0))
    for number, fingerprint in enumerate(["f1", "f2", "f2"]):
        world.scores(60 * number, [0.9] * 3, fingerprint=fingerprint)
        world.scores(60 * number, [0.9] * 3, key="passes", evaluator="checked")
        world.advance(60 * (number + 1))

    def state(second: float) -> int:
        settings = (RuleSettings(), world.windows, JobSettings())
        return run_insights(database, world.evaluators, *settings, world.term, world.at(second), DriftSettings()).raised

    assert state(180) == 1
    world.elect()
    assert state(240) == 1
    assert state(2 * DAY) == 0, "that was of another period"
    (row,) = database.rows("SELECT * FROM insights FINAL")
    assert (row["type"], row["app"]) == ("data", "shop")
    said = json.loads(row["attributes"])
    assert (said["evaluator"], said["before"], said["fingerprint"]) == ("quality", "f1", "f2")
    assert said["since"] == world.at(60).isoformat()
    assert row["period_start"] == Period.of(world.at(60), DAY).start
    assert row["period_end"] - row["period_start"] == timedelta(days=1)
    assert "quality has a new version, model or parameters since" in row["description"]
