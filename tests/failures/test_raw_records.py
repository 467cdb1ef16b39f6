"""What a producer that builds its own bytes may put on a topic: it is stored or a dead letter, and reading goes on."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ragtide.sinks.clickhouse.database import Database
from tests.chaos.processes import Ragtide
from tests.failures.bad_records import trace
from tests.failures.site import Site, of
from tests.infra.kafka_node import KafkaNode
from tests.infra.raw_producer import CODECS, RawRecord, batch, body_of, compress, corrupt_lz4, produce, raw_batch
from tests.stream.core.traffic import read

pytestmark = [pytest.mark.kafka, pytest.mark.clickhouse, pytest.mark.timeout(240)]

LARGEST_BATCH = 16 << 20
BOMB_BYTES = 64 << 20
NOT_UTF8 = [(b"\xff\xfe", b"1"), (b"plain", None), (b"caf\xe9", b""), (b"plain", b"2")]


class Hostile(NamedTuple):
    """A batch of one record, and the reason of its dead letter; empty: it is stored."""

    batch: bytes
    reason: str = ""


def bomb(codec: str) -> bytes:
    """One record of zeros, a few hundred KB compressed."""
    return raw_batch(compress(codec, body_of([RawRecord(bytes(BOMB_BYTES))])), 1, now_ms(), CODECS[codec])


def now_ms() -> int:
    return int(time.time() * 1000)


def hostile() -> dict[str, Hostile]:
    """By name; a good trace has its name as its id."""
    repeated = [(b"same", str(n).encode()) for n in range(1000)]
    kinds = {
        "nothing": Hostile(batch([RawRecord()], now_ms()), "no_value"),
        "nothing but a header": Hostile(batch([RawRecord(headers=NOT_UTF8)], now_ms()), "header_not_utf8"),
        "tombstone": Hostile(batch([RawRecord(key=b"gone")], now_ms()), "no_value"),
        "header not UTF-8": Hostile(batch([RawRecord(trace("x"), b"k", NOT_UTF8)], now_ms()), "header_not_utf8"),
        "corrupt": Hostile(corrupt_lz4([RawRecord(trace("x") * 20)], now_ms()), "batch_corrupt"),
        "a thousand headers": Hostile(batch([RawRecord(trace("a thousand headers"), None, repeated)], now_ms())),
        "a header without value": Hostile(
            batch([RawRecord(trace("a header without value"), None, [(b"", None)])], now_ms())
        ),
        "a large key": Hostile(batch([RawRecord(trace("a large key"), b"k" * (1 << 20))], now_ms())),
        "no timestamp": Hostile(batch([RawRecord(trace("no timestamp"))]), "no_timestamp"),
        "a timestamp before 1970": Hostile(batch([RawRecord(trace("before 1970"))], -5), "no_timestamp"),
    }
    for codec in ("gzip", "snappy", "snappy_raw", "lz4", "zstd"):
        kinds[f"bomb {codec}"] = Hostile(bomb(codec), "batch_too_large")
        kinds[codec] = Hostile(batch([RawRecord(trace(codec))], now_ms(), codec))
    return kinds


@pytest.fixture
def site(kafka: KafkaNode, database: Database, tmp_path: Path) -> Iterator[Site]:
    sections = {"kafka": {"max_batch_bytes": LARGEST_BATCH}, "worker": {"in_flight_bytes": 64 << 20}}
    made = of(tmp_path, kafka, database, sections)
    made.partitions = 1
    with made.up(largest_record=16 << 20):
        yield made


def test_hostile_records_are_stored_or_dead_letters_and_reading_goes_on(site: Site, database: Database) -> None:
    kinds = hostile()
    offsets = produce(site.broker.bootstrap, site.topic, [kind.batch for kind in kinds.values()])
    produce(site.broker.bootstrap, site.topic, [batch([RawRecord(trace("last"))], now_ms())])
    site.worker()
    site.until(lambda: site.committed() == offsets[-1] + 2, "every offset committed", 90)

    stored = {row["trace_id"] for row in database.rows("SELECT trace_id FROM traces FINAL")}
    assert stored == {name for name, kind in kinds.items() if not kind.reason} | {"last"}
    dead = {offset: kind.reason for offset, kind in zip(offsets, kinds.values(), strict=True) if kind.reason}
    rows = database.rows("SELECT offset, reason FROM dead_letters FINAL")
    assert {row["offset"]: row["reason"] for row in rows} == dead
    letters = {
        int(headers_of(letter)["dlq.offset"]): letter for letter in read(site.broker, site.dead_topic, len(dead))
    }
    assert letters.keys() == dead.keys()
    at = dict(zip(kinds, offsets, strict=True))
    assert (letters[at["nothing"]].key, letters[at["nothing"]].value) == (None, None)
    assert (letters[at["tombstone"]].key, letters[at["tombstone"]].value) == (b"gone", None)
    assert letters[at["header not UTF-8"]].key == b"k"
    told = json.loads(letters[at["bomb zstd"]].value)
    assert (told["offset"], told["first_offset"], told["records"]) == (at["bomb zstd"], at["bomb zstd"], 1)
    assert headers_of(letters[at["bomb zstd"]])["dlq.omitted"] == b"batch"


def headers_of(letter: Any) -> dict[str, bytes]:
    return dict(letter.headers)


def test_batches_that_expand_to_gigabytes_take_no_memory(kafka: KafkaNode, database: Database, tmp_path: Path) -> None:
    """Six of 200 MB in one fetch, and twenty that just fit; by the settings that a worker has unless told otherwise."""
    too_large = raw_batch(compress("zstd", body_of([RawRecord(bytes(200 << 20))])), 1, now_ms(), CODECS["zstd"])
    fits = raw_batch(compress("zstd", body_of([RawRecord(bytes(30 << 20))])), 1, now_ms(), CODECS["zstd"])
    made = of(tmp_path, kafka, database)
    made.partitions = 1
    with made.up():
        produce(kafka.bootstrap, made.topic, [batch([RawRecord(trace("first"))], now_ms())])
        worker = made.worker()
        made.until(lambda: made.committed() == 1, "the first trace committed", 60)
        before = peak_bytes(worker)
        last = batch([RawRecord(trace("last"))], now_ms())
        produce(kafka.bootstrap, made.topic, [too_large] * 6 + [fits] * 20 + [last])
        made.until(lambda: made.committed() == 28, "every offset committed", 90)
        taken = peak_bytes(worker) - before
        assert worker.stop() == 0, made.logs()
    assert taken < 400 << 20, f"{taken >> 20} MiB for batches that expand to 1,800 MiB"
    assert {row["trace_id"] for row in database.rows("SELECT trace_id FROM traces FINAL")} == {"first", "last"}
    reasons = database.rows("SELECT reason, count() AS n FROM dead_letters FINAL GROUP BY reason ORDER BY reason")
    assert reasons == [{"reason": "batch_too_large", "n": 6}, {"reason": "too_big", "n": 20}]


def peak_bytes(process: Ragtide) -> int:
    """Most memory that the process ever had."""
    [line] = [line for line in Path(f"/proc/{process.process.pid}/status").read_text().splitlines() if "VmHWM" in line]
    return int(line.split()[1]) << 10
