"""A trace gets its topic where its question is embedded: on that lane's scores, and beside its vector."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from ragtide.drift.settings import WindowSettings
from ragtide.drift.topics import store
from ragtide.drift.topics.model import OTHER_TOPIC, Topic, TopicModel
from ragtide.evaluators import registry
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.plan import prepare
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.spec import Lane
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.sinks.rows import Block
from ragtide.stream.assembly import assemble
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.pipeline import Pipeline
from ragtide.stream.settings.loader import Settings
from ragtide.stream.telemetry.registry import Telemetry
from ragtide.stream.topic_model_cache import TopicModelCache
from tests.drift.world import World
from tests.stream.pipe.records import clock, record

JSON, CSV, ELSE = "What does json.dumps return?", "How does csv.reader read a file?", "Who are you, and why?"
ENCODER = HashingEncoder(64)
AT = datetime.now(UTC).replace(microsecond=0)  # what is old has expired


def model(version: int = 5, app: str = "docs", encoder: str = ENCODER.revision) -> TopicModel:
    vectors = ENCODER.encode([JSON, CSV])
    topics = (Topic(1, "json", vectors[0], 0.99, 50), Topic(2, "csv", vectors[1], 0.99, 40))
    return TopicModel(app, encoder, version, AT, 100, topics)


def process(records: Sequence[StoredRecord], models: Mapping[str, TopicModel], lane: Lane | None = "model") -> Block:
    settings = Settings.model_validate({"evaluators": {"enabled": ["answer_relevancy_sentence", "rouge"]}})
    plan = prepare(registry.load(), settings.evaluators, lane, ENCODER)
    pipeline = Pipeline(
        plan.prepared, Resources(ENCODER), settings, lane=lane, timely=False, topics=lambda: models, new_mark=lambda: ""
    )
    return pipeline.process(records).block


def asked(*questions: str | None) -> list[StoredRecord]:
    return [
        record(offset=i, trace_id=f"t{i}", question=question or ..., answer="It is so.")
        for i, question in enumerate(questions)
    ]


def topics(block: Block) -> dict[str, str | None]:
    return {row.trace_id: row.segments.get("topic") for row in block.scores}


def test_scores_and_the_vector_have_the_topic_and_the_vector_its_version() -> None:
    block = process(asked(JSON, CSV, ELSE, None), {"docs": model()})
    assert topics(block) == {"t0": "json", "t1": "csv", "t2": OTHER_TOPIC, "t3": None}
    assert [(row.topic, row.topic_version) for row in block.embeddings] == [
        ("json", 5),
        ("csv", 5),
        (OTHER_TOPIC, 5),
        ("", 0),
    ]
    assert all(row.segments["tenant"] == "acme" for row in block.scores)


@pytest.mark.parametrize("models", [{}, {"another": model()}])
def test_without_a_model_of_the_application_there_is_no_topic(models: Mapping[str, TopicModel]) -> None:
    block = process(asked(JSON), models)
    assert topics(block) == {"t0": None}
    assert (block.embeddings[0].topic, block.embeddings[0].topic_version) == ("", 0)


def test_the_lane_fast_knows_no_topic() -> None:
    block = process(asked(JSON), {"docs": model()}, lane="fast")
    assert topics(block) == {"t0": None}
    assert "topic" not in block.traces[0].segments


def test_a_replay_of_all_lanes_has_topics_on_scores_alone() -> None:
    block = process(asked(JSON), {"docs": model()}, lane=None)
    assert {row.segments["topic"] for row in block.scores} == {"json"}
    assert "topic" not in block.traces[0].segments
    assert '"topic"' not in block.texts[0].rest


def test_a_trace_that_names_its_topic_keeps_it() -> None:
    block = process([record(segments={"topic": "mine"})], {"docs": model()})
    assert topics(block) == {"t-1": "mine"}
    assert block.embeddings[0].topic == "json"


@pytest.mark.parametrize("size", [1, 2, 5])
def test_however_cut_and_however_often_read_the_topics_are_the_same(size: int) -> None:
    records = asked(JSON, CSV, ELSE, JSON, None)
    whole = process(records, {"docs": model()})
    parts = [process(records[at : at + size], {"docs": model()}) for at in range(0, 5, size)]
    assert [row for part in parts for row in part.embeddings] == whole.embeddings
    assert sorted(map(repr, (row for part in parts for row in part.scores))) == sorted(map(repr, whole.scores))
    assert repr(process(records, {"docs": model()})) == repr(whole)


def await_that(holds: Callable[[], bool], database: Database) -> None:
    for _ in range(1_000):
        if holds():
            return
        database.rows("SELECT sleep(0.01)")
    raise AssertionError("it never held")


@pytest.mark.clickhouse
def test_a_worker_takes_a_newer_model_without_a_restart(database: Database) -> None:
    holding = TopicModelCache(database, ENCODER.revision, refresh_s=0.01)
    holding.refresh()
    assert holding.current() == {}
    store.save_model(database, model(version=1 << 32), epoch=1)
    store.save_model(database, model(version=9 << 32, encoder="another@1"), epoch=9)
    holding.refresh()
    assert {app: found.version for app, found in holding.current().items()} == {"docs": 1 << 32}
    assert np.array_equal(holding.current()["docs"].topics[0].centroid, model().topics[0].centroid)
    store.save_model(database, model(version=2 << 32), epoch=2)
    with holding.refresh_in_background():
        await_that(lambda: holding.current()["docs"].version == 2 << 32, database)


def test_while_the_database_is_away_the_last_models_hold(caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings.model_validate({"clickhouse": {"url": "http://127.0.0.1:9", "timeout_s": 1}})
    holding = TopicModelCache(Database(settings.clickhouse), ENCODER.revision, refresh_s=60)
    holding.refresh()
    assert holding.current() == {}
    assert "could not read topic models" in caplog.text
    telemetry = Telemetry()
    holding.count_failures(telemetry.topic_model_failures.labels("model"))
    holding.refresh()
    told = telemetry.registry.get_sample_value("ragtide_topic_model_failures_total", {"lane": "model"})
    assert told == 2, "the one before anybody counted too"


@pytest.mark.clickhouse
def test_a_row_that_is_not_sound_ends_no_look_for_newer_models(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    holding, telemetry = TopicModelCache(database, ENCODER.revision, refresh_s=0.01), Telemetry()
    holding.count_failures(telemetry.topic_model_failures.labels("model"))
    store.save_model(database, model(version=1 << 32), epoch=1)
    holding.refresh()
    unsound = store.TopicModelRow("docs", ENCODER.revision, 2 << 32, 2, AT, 9, [1, 2], ["json"], [], [], [])
    database.insert("topic_models", [unsound])

    def failures() -> float | None:
        return telemetry.registry.get_sample_value("ragtide_topic_model_failures_total", {"lane": "model"})

    with holding.refresh_in_background():
        await_that(lambda: (failures() or 0) >= 2, database)
        assert holding.current()["docs"].version == 1 << 32
        assert "ValueError" in caplog.text
        store.save_model(database, model(version=3 << 32), epoch=3)
        await_that(lambda: holding.current()["docs"].version == 3 << 32, database)


@pytest.mark.clickhouse
def test_windows_are_cut_by_topic(database: Database) -> None:
    """Three of json, one of csv and one of none; what the lane fast scored has no topic."""
    world = World(database, windows=WindowSettings(out_of_orderness_s=0, segments={"topic": ()}))
    block = process(asked(JSON, JSON, JSON, CSV, ELSE), {"docs": model()}, lane=None)
    at = world.at(1)
    database.insert("embeddings", [row._replace(time=at) for row in block.embeddings])
    database.insert("traces", [row._replace(time=at) for row in block.traces])
    name = "meaning"
    rows = [row._replace(time=at, evaluator=name, status="scored", metrics={"near": 0.9}) for row in block.scores]
    rows = list({row.trace_id: row for row in rows}.values())
    world.store(rows, "model", traces=False)
    world.progress(61)
    world.progress(61, lane="model")
    world.watch(61)
    cut = database.rows(
        "SELECT segment_value, seen, scored FROM windows FINAL WHERE metric = 'meaning.near' AND size_s = 60 "
        "AND segment = 'topic' ORDER BY segment_value"
    )
    assert [(row["segment_value"], row["seen"], row["scored"]) for row in cut] == [
        ("csv", 1, 1),
        ("json", 3, 3),
        ("other", 1, 1),
    ]


@pytest.mark.clickhouse
def test_read_again_under_a_newer_model_a_trace_has_one_row_with_its_topic(database: Database) -> None:
    newer = model(version=6)
    renamed = tuple(replace(topic, name=f"new {topic.name}") for topic in newer.topics)
    sink = ClickHouseSink(database)
    for models in ({"docs": model()}, {"docs": model()}, {"docs": replace(newer, topics=renamed)}):
        sink.write(process([record(question=JSON, time=AT.isoformat())], models))
    scores = database.rows("SELECT evaluator, segments['topic'] AS topic FROM scores FINAL WHERE notEmpty(segments)")
    assert scores == [{"evaluator": "answer_relevancy_sentence", "topic": "new json"}]
    vectors = database.rows("SELECT topic, topic_version FROM embeddings FINAL")
    assert vectors == [{"topic": "new json", "topic_version": 6}]


@pytest.mark.clickhouse
@pytest.mark.onnx
def test_a_pipeline_places_questions_where_it_is_told_to(database: Database) -> None:
    chosen = {
        "evaluators": {
            "enabled": ["answer_relevancy_sentence"],
            "encoder": {"backend": "onnx", "model": "all-MiniLM-L6-v2"},
        }
    }
    made = assemble(Settings.model_validate(chosen), "model", database=database, clock=clock)
    assert made.resources.encoder is not None
    vector = made.resources.encoder.encode([JSON])[0]
    topics_ = (Topic(1, "json", vector, 0.99, 50),)
    store.save_model(database, TopicModel("docs", made.resources.encoder.revision, 1, AT, 100, topics_), epoch=1)
    assert made.topics is not None
    made.topics.refresh()
    assert topics(made.pipeline.process(asked(JSON, CSV)).block) == {"t0": "json", "t1": OTHER_TOPIC}
    off = {**chosen, "topics": {"enabled": False}}
    assert assemble(Settings.model_validate(off), "model", database=database).topics is None
