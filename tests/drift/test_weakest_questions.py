"""The questions that failed most often, by trace id and hash: never by their words."""

import json
from collections.abc import Sequence

import pytest

from drift.settings import JobSettings
from sinks.clickhouse.database import Database
from tests.drift.world import World, score_row, text_row

pytestmark = pytest.mark.clickhouse


def ask(world: World, question: str, values: Sequence[float], second: int, app: str = "shop") -> list[str]:
    rows = [
        score_row(world.at(second + i), f"{app}-{second}-{i}", {"good": value}, app=app)
        for i, value in enumerate(values)
    ]
    world.store(rows)
    world.database.insert("trace_texts", [text_row(row, question) for row in rows])
    return [row.trace_id for row in rows]


def test_the_weakest_come_first_and_no_word_of_them_is_kept(database: Database) -> None:
    settings = JobSettings(insights_min_traces=3, insights_questions=2)
    world = World(database, settings=settings)
    ask(world, "How do I pay?", [0.9] * 5, 0)
    failing = ask(world, "Where is my SECRET order?", [0.1, 0.1, 0.1, 0.9], 10)
    failing += ask(world, "where is my secret order", [0.1, 0.1], 20)  # the same question
    ask(world, "Rarely asked?", [0.1, 0.1], 30)
    sometimes = ask(world, "Who are you?", [0.1, 0.9, 0.9, 0.9, 0.9], 40)
    ask(world, "Another one that fails?", [0.1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9], 50)
    assert world.jobs.state_insights(world.at(100)) == 2
    first, second = database.rows("SELECT * FROM insights FINAL ORDER BY JSONExtractUInt(attributes, 'rank')")
    told = json.loads(first["attributes"])
    assert (told["asked"], told["failed"], told["metrics"]) == (6, 5, {"quality.good": 5})
    assert set(first["examples"]) == set(failing) - {failing[3]}
    assert (first["type"], first["app"]) == ("weak_point", "shop")
    assert json.loads(second["attributes"])["failed_share"] == pytest.approx(0.2)
    assert second["examples"] == [sometimes[0]]
    assert "secret" not in json.dumps([first, second], default=str).lower()
    assert first["period_start"] <= world.at(0) < first["period_end"]


def test_stated_again_they_are_the_same_insights(database: Database) -> None:
    world = World(database, settings=JobSettings(insights_min_traces=1))
    ask(world, "one?", [0.1] * 3, 0)
    world.jobs.state_insights(world.at(100))
    world.elect()
    ask(world, "one?", [0.1] * 3, 10)
    world.jobs.state_insights(world.at(200))
    (insight,) = database.rows("SELECT * FROM insights FINAL")
    assert json.loads(insight["attributes"])["asked"] == 6
    assert insight["epoch"] == world.term.epoch


def test_without_stored_texts_there_are_none(database: Database) -> None:
    world = World(database, settings=JobSettings(insights_min_traces=1))
    world.scores(0, [0.1] * 5)
    assert world.jobs.state_insights(world.at(100)) == 0
