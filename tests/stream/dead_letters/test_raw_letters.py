"""Dead letters of records that no client library sends: they are shown, replayed and found again with all bytes."""

import asyncio
import time

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.dead_letters.letters import Letters, Wanted
from ragtide.stream.dead_letters.values import RecordFinder
from ragtide.stream.ingest.records import Record
from tests.failures.bad_records import trace
from tests.infra.kafka_node import KafkaNode
from tests.infra.raw_producer import CODECS, RawRecord, batch, body_of, compress, corrupt_lz4, produce, raw_batch
from tests.stream.dead_letters.scene import Scene

pytestmark = [pytest.mark.clickhouse, pytest.mark.kafka, pytest.mark.timeout(240)]

HEADERS = [(b"\xff\xfe", b"1"), (b"plain", None), (b"caf\xe9", b"2"), (b"dlq.header_names", b"theirs")]
RECORDS = {
    "nothing": (RawRecord(), "no_value"),
    "tombstone": (RawRecord(key=b"gone"), "no_value"),
    "header": (RawRecord(trace("odd header"), b"k", HEADERS), "header_not_utf8"),
    "nothing but headers": (RawRecord(headers=HEADERS), "header_not_utf8"),
}
LARGE = RawRecord(bytes(64 << 20))


@pytest.fixture
def scene(kafka: KafkaNode, database: Database) -> Scene:
    """Every kind on partition 0, in order; then two batches that cannot be read, and a good trace."""
    made = Scene(kafka, database)
    now_ms = int(time.time() * 1000)
    batches = [batch([record], now_ms) for record, _ in RECORDS.values()]
    batches.append(raw_batch(compress("zstd", body_of([LARGE])), 1, now_ms, CODECS["zstd"]))
    batches.append(corrupt_lz4([RawRecord(b"x" * 1000)] * 3, now_ms))
    batches.append(batch([RawRecord(trace("good"))], now_ms))
    produce(kafka.bootstrap, made.topic, batches)
    made.take_in()
    return made


def places_of_batches() -> dict[int, str]:
    first = len(RECORDS)
    return {first: "batch_too_large", first + 3: "batch_corrupt"}


def found(scene: Scene) -> dict[int, Record]:
    letters = Letters(scene.database).find(Wanted())

    async def read() -> list[Record]:
        values = RecordFinder(scene.settings().kafka, batch_records=100)
        return [record async for records in values.read(letters) for record in records]

    return {record.offset: record for record in asyncio.run(read())}


def test_every_byte_of_them_is_found_again(scene: Scene) -> None:
    letters = {letter.offset: letter.reason for letter in Letters(scene.database).find(Wanted())}
    assert letters == {**{at: reason for at, (_, reason) in enumerate(RECORDS.values())}, **places_of_batches()}
    assert [row["trace_id"] for row in scene.stored()["traces"]] == ["good"]
    records = found(scene)
    assert records.keys() == letters.keys()
    for at, (sent, _) in enumerate(RECORDS.values()):
        names = [(name.encode("utf-8", "surrogateescape"), value) for name, value in records[at].headers]
        assert (records[at].key, records[at].value, names) == (sent.key, sent.value, list(sent.headers))


def test_they_are_shown_with_escapes(scene: Scene) -> None:
    shown = scene.command("show", f"{scene.topic}/0/2")
    assert shown.exit_code == 0, shown.output
    assert "header \\xff\\xfe: 1" in shown.output
    assert "header caf\\xe9: 2" in shown.output
    assert "odd header" in shown.output
    for at, reason in places_of_batches().items():
        shown = scene.command("show", f"{scene.topic}/0/{at}")
        assert shown.exit_code == 0, shown.output
        assert reason in shown.output
        assert f"offsets {4 if at == 4 else 5} to {at}" in shown.output
        assert "header" not in shown.output


def test_replayed_they_stay_with_their_reason_and_stop_no_other(scene: Scene) -> None:
    before = scene.stored()
    told = scene.command("replay")
    assert told.exit_code == 0, told.output
    assert "0 of 6 dead letters replayed, 6 failed again, 0 in no topic any more" in told.output
    assert scene.stored() == before
    scene.take_in()  # the topic is read once more, as a replay of it does
    assert scene.stored() == before
