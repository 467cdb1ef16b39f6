"""A range of a topic becomes a run, on the embedded broker and on Apache Kafka."""

import asyncio
import json
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import sha256

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from click.testing import CliRunner

from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.cli import main
from ragtide.stream.pipeline import Interval
from ragtide.stream.replay.loop import ReplayProgress, ReplaySource
from ragtide.stream.replay.runs import Runs
from tests.infra.fresh_database import reached
from tests.infra.kafka_node import KafkaNode
from tests.stream.pipe.replaying import (
    BASE_MS,
    Fastidious,
    Stopped,
    everything,
    fields,
    go,
    rows,
    settings,
    traces,
)

pytestmark = pytest.mark.clickhouse


def produce(bootstrap: str, topic: str, values: Sequence[tuple[int, bytes]], partitions: int = 2) -> None:
    from ragtide.stream.local.topics import create_topics

    async def send() -> None:
        await create_topics(bootstrap, {topic: partitions})
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
        await producer.start()
        try:
            for n, (timestamp_ms, value) in enumerate(values):
                await producer.send(topic, value, partition=n % partitions, timestamp_ms=timestamp_ms)
            await producer.flush()
        finally:
            await producer.stop()

    asyncio.run(send())


def on_topic(bootstrap: str, topic: str, values: Sequence[tuple[int, bytes]]) -> Callable[..., ReplaySource]:
    from ragtide.stream.replay.topic import TopicSource

    produce(bootstrap, topic, values)
    kafka = settings(kafka={"bootstrap_servers": bootstrap}).kafka

    def source(period: Interval | None = None, late_s: float = 3600.0) -> ReplaySource:
        return TopicSource(kafka, [topic], period, ahead_s=600.0, late_s=late_s, batch_records=7)

    return source


def test_a_topic_becomes_a_run(database: Database, bootstrap: str) -> None:
    values = [(BASE_MS + n * 1000, json.dumps(trace).encode()) for n, trace in enumerate(traces(50))]
    source = on_topic(bootstrap, f"t-{uuid.uuid4().hex}", [*values, (BASE_MS, b"poison")])
    done = go(database, source())
    assert (done.traces, done.dead_letters) == (50, 1)
    before = everything(database)
    assert len(before["traces"]) == 50
    assert {row["partition"] for row in before["traces"]} == {0, 1}
    assert go(database, source()).traces == 50
    assert everything(database) == before


@pytest.mark.parametrize("partition", [0, 1])
def test_records_of_two_partitions_with_one_offset_and_one_timestamp_are_told_apart(
    database: Database, bootstrap: str, partition: int
) -> None:
    """In one block, both traces lie at offset 0 and came in the same millisecond."""
    values = [(BASE_MS, json.dumps(trace).encode()) for trace in traces(2)]
    source = on_topic(bootstrap, f"t-{uuid.uuid4().hex}", values)
    done = go(database, source(), sink=Fastidious(database, f"t-{partition}"), block_rows=1000)
    assert (done.traces, done.dead_letters) == (2, 1)
    [letter] = rows(database, "dead_letters")
    assert (letter["partition"], letter["offset"], letter["reason"]) == (partition, 0, "refused")
    assert letter["sha256"] == sha256(values[partition][1]).hexdigest()
    assert {row["trace_id"] for row in rows(database, "trace_texts")} == {f"t-{1 - partition}"}


AROUND_A_MINUTE = [
    (broker, json.dumps(fields(trace_id=name, time=at)).encode())
    for broker, name, at in (
        (BASE_MS - 3_600_000, "early", BASE_MS - 3_600_000),
        (BASE_MS - 500_000, "clock ahead", BASE_MS + 1),  # event time 8 min ahead of the broker's
        (BASE_MS, "first", BASE_MS),
        (BASE_MS + 50_000, "just before", BASE_MS - 1),
        (BASE_MS + 60_000, "at the end", BASE_MS + 60_000),
        (BASE_MS + 3_000_000, "late", BASE_MS + 59_999),  # arrived 49 min after its event time
    )
]


def test_a_period_of_a_topic_is_by_event_time(database: Database, bootstrap: str) -> None:
    source = on_topic(bootstrap, f"t-{uuid.uuid4().hex}", AROUND_A_MINUTE)
    period = Interval(BASE_MS / 1000, BASE_MS / 1000 + 60)
    done = go(database, source(period), period=period)
    assert [row["trace_id"] for row in rows(database, "traces")] == ["clock ahead", "first", "late"]
    assert done.traces == 3


@pytest.mark.kafka
def test_the_command_reads_the_period_of_every_topic_that_is_named(database: Database, kafka: KafkaNode) -> None:
    topics = [f"t-{uuid.uuid4().hex}" for _ in range(2)]
    for n, topic in enumerate(topics):
        produce(kafka.bootstrap, topic, AROUND_A_MINUTE[n::2])  # "clock ahead" and "late" on the other one than "first"
    start, end = (datetime.fromtimestamp(BASE_MS / 1000 + s, UTC).isoformat() for s in (0, 60))
    period = ("--topic", topics[0], "--topic", topics[1], "--from", start, "--to", end)
    variables = {**reached(database), "RAGTIDE_CONFIG": None, "RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": kafka.bootstrap}

    def replayed(run_id: str, *more: str) -> list[str]:
        args = ["replay", "--run", run_id, *period, "--evaluators", "inputs", *more]
        told = CliRunner().invoke(main, args, env=variables)
        assert told.exit_code == 0, told.output
        found = [row["trace_id"] for row in rows(database, "traces", run_id)]
        assert f"run {run_id}: {len(found)} traces, 0 dead letters, from topic {topics[0]}, {topics[1]} " in told.output
        return found

    assert replayed("r") == ["clock ahead", "first", "late"]
    assert replayed("in-time", "--late", "0") == ["clock ahead", "first"]
    assert replayed("late", "--late", "3000") == ["clock ahead", "first", "late"]


@pytest.mark.kafka
def test_a_partition_that_ends_in_a_transactions_mark_is_read_to_its_end(database: Database, kafka: KafkaNode) -> None:
    """The last offset of each partition holds no record that a consumer is ever given."""
    topic = f"t-{uuid.uuid4().hex}"
    source = on_topic(kafka.bootstrap, topic, [])

    async def send() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id=topic)
        await producer.start()
        try:
            async with producer.transaction():
                for n, trace in enumerate(traces(20)):
                    await producer.send(topic, json.dumps(trace).encode(), partition=n % 2, timestamp_ms=BASE_MS)
        finally:
            await producer.stop()

    asyncio.run(send())
    told: list[ReplayProgress] = []
    done = go(database, source(), report=told.append)
    assert (done.state, done.traces, done.dead_letters) == ("completed", 20, 0)
    assert told[-1] == ReplayProgress(22, 22, 20, 0)


@pytest.mark.kafka
def test_records_gone_by_retention_before_it_goes_on_are_told_and_the_rest_is_read(
    database: Database, kafka: KafkaNode, caplog: pytest.LogCaptureFixture
) -> None:
    topic = f"t-{uuid.uuid4().hex}"
    source = on_topic(kafka.bootstrap, topic, [(BASE_MS, json.dumps(trace).encode()) for trace in traces(40)])

    def stop(progress: ReplayProgress) -> None:
        if progress.traces >= 10:
            raise Stopped

    with pytest.raises(Stopped):
        go(database, source(), report=stop, block_rows=10)

    async def lose() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
        await admin.start()
        try:
            await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=18)})
        finally:
            await admin.close()

    asyncio.run(lose())
    left = Runs(database).find("r")
    assert left is not None
    read = left.where["next"][f"{topic}/0"]
    # A block may have been written whose end was not yet noted as the place to go on.
    written = {(row["partition"], row["offset"]) for row in rows(database, "traces")}
    assert {(0, at) for at in range(read)} <= written
    done = go(database, source())
    assert done.state == "completed"
    offsets = {(row["partition"], row["offset"]) for row in rows(database, "traces")}
    assert offsets == written | {(0, 18), (0, 19)} | {(1, at) for at in range(20)}
    assert (
        f"{topic}/0: retention deleted {18 - read} records of the range; the replay continues after them"
        in caplog.messages
    )


@pytest.mark.kafka
def test_what_came_later_than_asked_for_is_not_waited_for(database: Database, kafka: KafkaNode) -> None:
    late_s = (0, 3600, 3601)
    values = [(BASE_MS + 1000 * s, json.dumps(fields(trace_id=f"{s} s late", time=BASE_MS)).encode()) for s in late_s]
    source = on_topic(kafka.bootstrap, f"t-{uuid.uuid4().hex}", values)
    period = Interval(BASE_MS / 1000, BASE_MS / 1000 + 0.5)
    assert go(database, source(period, late_s=3600.0), period=period).traces == 2


def test_the_end_of_the_range_is_settled_at_the_first_start(database: Database, bootstrap: str) -> None:
    topic = f"t-{uuid.uuid4().hex}"
    values = [(BASE_MS, json.dumps(trace).encode()) for trace in traces(30)]
    source = on_topic(bootstrap, topic, values)

    def stop(progress: ReplayProgress) -> None:
        if progress.traces >= 20:
            raise Stopped

    with pytest.raises(Stopped):
        go(database, source(), report=stop, block_rows=10)
    produce(bootstrap, topic, [(BASE_MS, json.dumps(fields(trace_id="later")).encode())])
    done = go(database, source())
    assert done.traces == 30
    assert "later" not in {row["trace_id"] for row in rows(database, "traces")}


def test_a_topic_that_is_not_there_is_told(database: Database, bootstrap: str) -> None:
    from ragtide.stream.replay.topic import TopicSource

    kafka = settings(kafka={"bootstrap_servers": bootstrap}).kafka
    source = TopicSource(kafka, ["nowhere"], None, ahead_s=0, late_s=0, batch_records=7)
    with pytest.raises(ConfigError, match="has no topic nowhere"):
        go(database, source)


def test_no_broker_is_told(database: Database) -> None:
    from ragtide.stream.replay.topic import TopicSource

    kafka = settings(kafka={"bootstrap_servers": "127.0.0.1:9", "request_timeout_s": 1}).kafka
    source = TopicSource(kafka, ["t"], None, ahead_s=0, late_s=0, batch_records=7)
    with pytest.raises(Transient, match=r"127\.0\.0\.1:9"):
        go(database, source)
