"""Which topic models hold, how old they are, and how much is asked of each topic: as people are told."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from click.testing import CliRunner

from ragtide.drift.jobs import JobContext
from ragtide.drift.topics import store
from ragtide.drift.topics.model import Topic, TopicModel
from ragtide.drift.topics.store import TopicView, current_models, fitted_at
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.rows import EmbeddingRow
from ragtide.stream.cli import main
from ragtide.stream.job_schedule import topic_job
from ragtide.stream.settings.loader import Settings
from ragtide.stream.telemetry.registry import Telemetry
from tests.drift.world import World
from tests.infra.fresh_database import fresh_database, reached

pytestmark = pytest.mark.clickhouse
NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)


def model(app: str, encoder: str, version: int, age: timedelta, *topics: tuple[int, str, int]) -> TopicModel:
    direction = np.array([1.0, 0.0], np.float32)
    made = tuple(Topic(id_, name, direction, 0.9, size) for id_, name, size in topics)
    return TopicModel(app, encoder, version, NOW - age, 60, made)


def placed(app: str, topic: str, count: int, at: datetime, run: str = "live") -> list[EmbeddingRow]:
    return [
        EmbeddingRow(run, app, "prod", at, f"{app}-{topic}-{run}-{at:%d}-{i}", 1, "e@2", [1.0, 0.0], topic, 7)
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def database(clickhouse_server: EmbeddedClickHouse) -> Iterator[Database]:
    with fresh_database(clickhouse_server) as made:
        for one in (
            model("docs", "e@1", 5, DAY, (1, "json", 40)),
            model("docs", "e@2", 6, 3 * DAY, (2, "csv", 30)),
            model("docs", "e@2", 7, timedelta(hours=2), (2, "csv", 30), (3, "xml, xslt", 10), (4, "gone", 0)),
            model("shop", "e@2", 8, DAY, (1, "refund", 50)),
            model("quiet", "e@2", 9, DAY, (1, "old", 50)),
        ):
            store.save_model(made, one, epoch=1)
        made.insert(
            "embeddings",
            [
                *placed("docs", "csv", 6, NOW),
                *placed("docs", "other", 3, NOW),
                *placed("docs", "gone", 1, NOW),
                *placed("docs", "", 9, NOW),  # before there was a model
                *placed("docs", "xml, xslt", 9, NOW, run="replay"),
                *placed("docs", "csv", 4, NOW - 2 * DAY),
                *placed("shop", "refund", 1, NOW - 2 * DAY),
            ],
        )
        yield made


def test_the_newest_model_of_each_application_holds_whichever_encoder(database: Database) -> None:
    docs, quiet, shop = current_models(database, NOW - DAY)
    assert (docs.app, docs.encoder, docs.version, docs.questions) == ("docs", "e@2", 7, 60)
    assert docs.fitted_at == NOW - timedelta(hours=2)
    assert docs.topics == (
        TopicView(2, "csv", 30, 6, 0.6),
        TopicView(None, "other", 0, 3, 0.3),
        TopicView(4, "gone", 0, 1, 0.1),
        TopicView(3, "xml, xslt", 10, 0, 0.0),
    )
    assert [one.share for one in (*quiet.topics, *shop.topics)] == [None] * 4


def test_ages_are_of_applications_that_still_ask(database: Database) -> None:
    assert fitted_at(database, NOW - 3 * DAY) == {"docs": NOW - timedelta(hours=2), "shop": NOW - DAY}
    assert set(fitted_at(database, NOW - DAY)) == {"docs"}


def test_the_job_tells_how_old_they_are(database: Database) -> None:
    telemetry = Telemetry()
    telemetry.topic_model_age_seconds.labels("removed").set(1)
    jobs: JobContext = World(database).jobs
    assert topic_job(Settings(), database, telemetry)(jobs, NOW) is not None
    ages = {
        one.labels["app"]: one.value
        for family in telemetry.registry.collect()
        if family.name == "ragtide_topic_model_age_seconds"
        for one in family.samples
    }
    assert ages == {"docs": 7200.0, "shop": 86400.0}


def test_topics_are_told_on_a_terminal(database: Database) -> None:
    def run(*words: str, status: int = 0) -> str:
        told = CliRunner().invoke(
            main, ["insights", "topics", *words], env={"RAGTIDE_CONFIG": None, **reached(database)}
        )
        assert told.exit_code == status, told.output
        return told.output

    shown = run("--app", "docs").splitlines()
    assert shown[0] == f"docs: version 7, fitted {NOW - timedelta(hours=2):%Y-%m-%d %H:%M} UTC on 60 questions by e@2"
    assert [line.split() for line in shown[2:]] == [
        ["csv", "2", "30", "6", "60", "%"],
        ["other", "-", "0", "3", "30", "%"],
        ["gone", "4", "0", "1", "10", "%"],
        ["xml,", "xslt", "3", "10", "0", "0", "%"],
    ]
    found = json.loads(run("--days", "3", "--json"))
    assert {one["app"]: next(topic["asked"] for topic in one["topics"]) for one in found} == {
        "docs": 10, "quiet": 0, "shop": 1,
    }  # fmt: skip
    assert "there is no 'nobody'" in run("--app", "nobody", status=2)
