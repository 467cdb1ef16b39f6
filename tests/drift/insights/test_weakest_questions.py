"""The questions that failed most often, by trace id and hash: never by their words."""

import json
from collections.abc import Sequence

import pytest
from pydantic import SecretStr
from scipy.stats import fisher_exact

from ragtide.drift.insights.model import current_insights
from ragtide.drift.job_history import RunResult
from ragtide.drift.settings import JobSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.settings import PrivacySettings
from ragtide.stream.ingest.question_hash import question_hash_of
from tests.drift.world import World, score_row, text_row, trace_row

pytestmark = pytest.mark.clickhouse

KEY = SecretStr("k")
KEYED = "03bfa4eb2df444d8"  # openssl dgst -sha256 -hmac k of the question that fails most, in lower case


def ask(world: World, question: str, values: Sequence[float], second: int, app: str = "shop") -> list[str]:
    rows = [
        score_row(world.at(second + i), f"{app}-{second}-{i}", {"good": value}, app=app)
        for i, value in enumerate(values)
    ]
    world.store(rows, traces=False)
    hash_ = question_hash_of(PrivacySettings(hash_key=KEY))(question)
    world.database.insert("traces", [trace_row(row)._replace(question_hash=hash_) for row in rows])
    world.database.insert("trace_texts", [text_row(row, question) for row in rows])
    return [row.trace_id for row in rows]


def test_the_weakest_come_first_and_no_word_of_them_is_kept(database: Database) -> None:
    settings = JobSettings(insights_min_traces=3, insights_questions=2)
    world = World(database, settings=settings)
    ask(world, "How do I pay?", [0.9] * 40, 200)
    failing = ask(world, "Where is my SECRET order?", [0.1, 0.1, 0.1, 0.9], 10)
    failing += ask(world, "where is  my secret order?", [0.1, 0.1], 20)  # the same question
    ask(world, "Rarely asked?", [0.1, 0.1], 30)
    often = ask(world, "Who are you?", [0.1, 0.1, 0.1, 0.1, 0.1, 0.9, 0.9], 40)
    ask(world, "One that failed by chance?", [0.1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9], 50)
    assert world.jobs.run_insights(world.at(100)) == RunResult(read=62, raised=2)
    first, second = database.rows("SELECT * FROM insights FINAL ORDER BY JSONExtractUInt(attributes, 'rank')")
    told = json.loads(first["attributes"])
    assert (told["asked"], told["failed"], told["metrics"]) == (6, 5, {"quality.good": 5})
    assert (told["rest_asked"], told["rest_failed"]) == (56, 8)
    others = fisher_exact([[5, 1], [8, 48]], alternative="greater").pvalue
    assert told["p"] == pytest.approx(4 * others)  # of five questions one was asked too rarely
    assert [told[name] for name in ("models", "failing_models", "hours", "failing_hours")] == [1, 1, 1, 1]
    assert set(first["examples"]) == set(failing) - {failing[3]}
    assert told["question_hash"] == KEYED
    assert first["description"].startswith("shop (prod): number 1 of the weakest questions failed 5 of 6 times")
    assert (first["type"], first["app"]) == ("weak_point", "shop")
    assert json.loads(second["attributes"])["failed_share"] == pytest.approx(5 / 7)
    assert set(second["examples"]) == set(often[:5])
    assert "secret" not in json.dumps([first, second], default=str).lower()
    assert first["period_start"] <= world.at(0) < first["period_end"]


def test_stated_again_they_are_the_same_insights(database: Database) -> None:
    world = World(database)
    ask(world, "one?", [0.1] * 3, 0)
    ask(world, "another?", [0.9] * 30, 50)
    world.jobs.run_insights(world.at(100))
    world.elect()
    ask(world, "one?", [0.1] * 3, 10)
    world.jobs.run_insights(world.at(200))
    (insight,) = database.rows("SELECT * FROM insights FINAL")
    assert json.loads(insight["attributes"])["asked"] == 6
    assert insight["epoch"] == world.term.epoch


def test_what_a_later_look_does_not_find_is_taken_back_until_it_is_found_again(database: Database) -> None:
    world = World(database, settings=JobSettings(insights_every_s=60))
    ask(world, "another?", [0.9] * 30, 50)
    asked = []
    for look, answers in enumerate(([0.1] * 3, [0.9] * 20, [0.1] * 20)):
        ask(world, "one?", answers, 100 * (look + 1))
        world.jobs.run_insights(world.at(100 * (look + 2)))
        asked.append([json.loads(one.attributes)["asked"] for one in current_insights(database, world.at(0))])
    assert asked == [[3], [], [43]]


def test_without_a_hash_there_are_none_though_texts_are_stored(database: Database) -> None:
    world = World(database, settings=JobSettings(insights_min_traces=1))
    rows = world.scores(0, [0.1] * 5)
    world.database.insert("trace_texts", [text_row(row, "one?") for row in rows])
    assert world.jobs.run_insights(world.at(100)).raised == 0
