"""One worker reads topics that are made anew, grow, are compacted or written in transactions: every trace counts once.

In the end its group is set back to the earliest records, and the same rows are there.
"""

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from aiokafka import TopicPartition

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.chaos.processes import Ragtide
from tests.failures import topics
from tests.failures.site import Sections, Site, of
from tests.infra.fresh_database import fresh_database
from tests.infra.kafka_node import KafkaNode
from tests.stream.core.traffic import committed, make_topics, trace

pytestmark = [pytest.mark.kafka, pytest.mark.clickhouse, pytest.mark.chaos, pytest.mark.timeout(240)]

NAMES = ("anew", "grown", "compacted", "transactions")
SIZES = {"grown": 3}  # partitions in the end, where not one
SEGMENT_S = 0.5
# Cleaned as soon as a segment is full of what is written over.
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": f"{1000 * SEGMENT_S:.0f}",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "500",
}


@dataclass
class Scene:
    """Topics by their name here, and the worker that reads them all."""

    site: Site
    database: Database
    topics: dict[str, str]
    worker: Ragtide

    def stored(self, prefix: str) -> list[str]:
        """Trace ids with that beginning, each as often as it counts."""
        rows = self.database.rows(
            "SELECT trace_id FROM traces FINAL WHERE startsWith(trace_id, {prefix:String}) ORDER BY trace_id",
            {"prefix": prefix},
        )
        return [row["trace_id"] for row in rows]

    def committed(self, name: str, partitions: int = 1) -> dict[int, int]:
        return committed(self.site.broker, f"{self.site.topic}-fast", self.topics[name], partitions)

    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(topic, at) for name, topic in self.topics.items() for at in range(SIZES.get(name, 1))]

    def all_committed(self) -> dict[tuple[str, int], int]:
        return {(name, at): end for name in NAMES for at, end in self.committed(name, SIZES.get(name, 1)).items()}

    def lags(self, name: str) -> list[int]:
        rows = self.database.rows(
            "SELECT lag FROM progress FINAL WHERE topic = {topic:String}", {"topic": self.topics[name]}
        )
        return [row["lag"] for row in rows]

    def until_stored(self, ids: Sequence[str], prefix: str) -> None:
        self.site.until(lambda: self.stored(prefix) == sorted(ids), f"{prefix} stored, each once")


@pytest.fixture(scope="module")
def scene(
    kafka: KafkaNode, clickhouse_server: EmbeddedClickHouse, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """Every topic is there, with one partition; the compacted one holds what compaction takes out."""
    names = {name: f"rag.{name}.{uuid.uuid4().hex[:8]}" for name in NAMES}
    for name, topic in names.items():
        make_topics(kafka, {topic: 1}, COMPACTED if name == "compacted" else None)
    _send(kafka, names["compacted"], [f"compacted-{number % 20}" for number in range(200)])
    time.sleep(SEGMENT_S)
    _send(kafka, names["compacted"], ["compacted-end"])  # begins a segment, so that the one before is cleaned
    sections: Sections = {
        "kafka": {"topics": list(names.values()), "metadata_max_age_s": 1.0},
        "evaluators": {"enabled": ["operations", "inputs"]},
    }
    with fresh_database(clickhouse_server) as database:
        site = of(tmp_path_factory.mktemp("topics"), kafka, database, sections)
        with site.up():
            yield Scene(site, database, names, site.worker())


def test_a_topic_made_anew_is_read_from_its_earliest_record(scene: Scene, kafka: KafkaNode) -> None:
    topic = scene.topics["anew"]
    old, new = _ids("old", 300), _ids("new", 40)
    _send(kafka, topic, old)
    scene.until_stored(old, "old")
    scene.site.until(lambda: scene.committed("anew") == {0: 300}, "committed")
    topics.delete(kafka, topic)
    topics.make_again(kafka, topic)
    _send(kafka, topic, new)
    scene.until_stored(new, "new")
    scene.site.until(lambda: scene.committed("anew") == {0: 40}, "committed anew")
    assert scene.stored("old") == sorted(old)
    assert f"{topic}/0 begins again at offset 0; 300 was committed" in scene.site.logs()
    scene.site.until(lambda: scene.worker.metric("ragtide_partitions_begun_anew_total") == 1, "counted")


def test_partitions_that_are_added_are_read_from_their_earliest_record(scene: Scene, kafka: KafkaNode) -> None:
    ids = _ids("grown", 60)
    topics.grow(kafka, scene.topics["grown"], 3)
    for partition in range(3):
        _send(kafka, scene.topics["grown"], ids[partition::3], partition)
    scene.until_stored(ids, "grown")
    scene.site.until(lambda: scene.committed("grown", 3) == {0: 20, 1: 20, 2: 20}, "committed")


def test_what_a_transaction_took_back_is_not_stored_and_its_marks_are_no_lag(scene: Scene, kafka: KafkaNode) -> None:
    topic = scene.topics["transactions"]
    kept, taken_back = _ids("kept", 20), _ids("taken-back", 10)
    for part in (kept[:10], kept[10:]):
        topics.send_as_one(kafka, topic, _values(taken_back), keep=False)
        topics.send_as_one(kafka, topic, _values(part), keep=True)
    scene.until_stored(kept, "kept")
    topics.send_as_one(kafka, topic, _values(taken_back), keep=False)
    scene.site.until(lambda: scene.lags("transactions") == [0], "no lag, though the last records are taken back")
    assert scene.stored("taken-back") == []


def test_a_group_set_back_to_the_earliest_leaves_the_same_rows(scene: Scene, kafka: KafkaNode) -> None:
    compacted = scene.topics["compacted"]
    scene.until_stored([*(f"compacted-{number}" for number in range(20)), "compacted-end"], "compacted-")
    scene.site.until(lambda: len(topics.offsets_in(kafka, compacted, 201)) < 201, "compacted")
    ends = {(name, at): topics.end_of(kafka, scene.topics[name], at) for name, at in scene.all_committed()}
    scene.site.until(lambda: scene.all_committed() == ends, "everything read")
    counts = _rows(scene.database)
    assert scene.worker.stop() == 0, scene.site.logs()
    topics.reset(kafka, f"{scene.site.topic}-fast", scene.partitions())
    assert sum(scene.all_committed().values()) == 0
    again = scene.site.worker()
    scene.site.until(lambda: scene.all_committed() == ends, "everything read once more")
    assert _rows(scene.database) == counts
    assert again.stop() == 0, scene.site.logs()


def _ids(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{number}" for number in range(count)]


def _values(ids: Sequence[str]) -> list[tuple[bytes, bytes]]:
    at = datetime.now(UTC) - timedelta(minutes=5)
    return [
        (one.encode(), trace(one, time=at.isoformat(), answer=f"message {number}")) for number, one in enumerate(ids)
    ]


def _send(broker: KafkaNode, topic: str, ids: Sequence[str], partition: int = 0) -> None:
    topics.send_to(broker, topic, partition, _values(ids))


def _rows(database: Database) -> list[list[dict[str, object]]]:
    """What counts."""
    return [
        database.rows("SELECT * EXCEPT (ingested_at) FROM traces FINAL ORDER BY trace_id"),
        database.rows("SELECT * EXCEPT (ingested_at) FROM scores FINAL ORDER BY trace_id, evaluator"),
    ]
