"""Fetched bytes become records, whatever a producer made of them."""

import struct
import time
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder

from ragtide.evaluators.errors import BadRecord
from ragtide.stream.ingest.records import check_readable, unreadable_batch
from ragtide.stream.kafka.batches import Allowance, ReadRecords, RecordBatches, StoredBatch
from tests.infra.raw_producer import CODECS, RawRecord, batch, body_of, compress, corrupt_lz4, raw_batch

AT = TopicPartition("t", 0)
LARGEST = 100_000


def fetch(batches: Sequence[bytes]) -> bytes:
    """As a broker stores them: one behind the other, from offset 0 on."""
    stored, offset = b"", 0
    for one in batches:
        stored += struct.pack(">q", offset) + one[8:]
        offset += struct.unpack_from(">i", one, 23)[0] + 1
    return stored


def reader(data: bytes, offset: int = 0, largest: int = LARGEST) -> Any:
    made = RecordBatches(data)
    made.allowance = Allowance(largest)
    return ReadRecords(AT, made, [], offset, None, None, True, 1)


def read(data: bytes, offset: int = 0, largest: int = LARGEST) -> list[Any]:
    return list(reader(data, offset, largest))


@pytest.mark.parametrize("codec", CODECS)
def test_names_of_headers_keep_their_bytes(codec: str) -> None:
    names = [b"\xff\xfe", b"plain", b"", "gr\u00fc\u00df".encode(), b"caf\xe9"]
    odd = RawRecord(b"v", b"k", [(name, None) for name in names])
    found = read(fetch([batch([RawRecord(b"1"), odd, RawRecord(None, b"3")], 5, codec), batch([RawRecord(b"4")], 6)]))
    assert [(one.offset, one.key, one.value, one.timestamp) for one in found] == [
        (0, None, b"1", 5),
        (1, b"k", b"v", 5),
        (2, b"3", None, 5),
        (3, None, b"4", 6),
    ]
    assert [name.encode("utf-8", "surrogateescape") for name, _ in found[1].headers] == names
    with pytest.raises(BadRecord, match="header 0") as raised:
        check_readable(found[1])
    assert raised.value.reason == "header_not_utf8"
    for one in (found[0], found[2], found[3]):
        check_readable(one)


@pytest.mark.parametrize("offset", [0, 1, 3])
def test_a_batch_that_cannot_be_read_is_one_record_wherever_reading_begins(offset: int) -> None:
    four = [RawRecord(b"x" * 1000)] * 4
    for unreadable, reason in (
        (batch([RawRecord(bytes(LARGEST))] * 4, 7, "zstd"), "batch_too_large"),
        (corrupt_lz4(four, 7), "batch_corrupt"),
        (raw_batch(b"garbage", 4, 7, 6), "batch_corrupt"),
        (raw_batch(body_of(four[:3]), 4, 7), "batch_corrupt"),
        (raw_batch(compress("gzip", b"\x05records" * 9), 4, 7, CODECS["gzip"]), "batch_corrupt"),
    ):
        data = fetch([unreadable, batch([RawRecord(b"good")])])
        found = read(data, offset)
        found += read(fetch_from(data, 4), 4) if found[-1].offset == 3 else []
        found = [one for one in found if one.value != b"x" * 1000]  # what was read of it before the fault
        assert [one.offset for one in found] == [3, 4], reason
        about = unreadable_batch(found[0])
        assert about is not None
        assert (about.reason, about.first_offset, about.last_offset, about.records) == (reason, 0, 3, 4)
        assert found[0].timestamp == 7
        with pytest.raises(BadRecord, match="offsets 0 to 3"):
            check_readable(found[0])
        assert found[1].value == b"good"


def test_bytes_behind_the_last_record_stop_nothing() -> None:
    four = raw_batch(body_of([RawRecord(b"x")] * 4) + b"rest", 4, 7)
    records = reader(fetch([four]))
    assert [one.value for one in records] == [b"x"] * 4
    assert records.next_fetch_offset == 4


def test_nobody_can_send_the_header_of_a_batch_that_cannot_be_read() -> None:
    [stand_in] = read(fetch([corrupt_lz4([RawRecord(b"x" * 1000)])]))
    [(name, value)] = stand_in.headers
    sent = name.encode("utf-8", "surrogatepass")
    [forged] = read(fetch([batch([RawRecord(b"v", None, [(sent, value)])])]))
    assert unreadable_batch(forged) is None


def test_a_poll_expands_about_one_allowance_and_the_next_goes_on() -> None:
    data = fetch([batch([RawRecord(bytes(LARGEST // 2))], 1, "zstd")] * 10)
    offset, polls = 0, []
    while offset < 10:
        records = reader(data, offset)
        spent = records._records.allowance
        found = [one.offset for one in records]
        polls.append(found)
        assert spent.spent <= 2 * LARGEST
        offset, data = records.next_fetch_offset, fetch_from(data, records.next_fetch_offset)
    assert [one for poll in polls for one in poll] == list(range(10))
    assert len(polls) == 5


def test_headers_that_take_more_memory_than_bytes_count_by_their_memory() -> None:
    many = batch([RawRecord(b"v", None, [(b"", b"")] * 600_000)] * 2, 1, "zstd")
    some = batch([RawRecord(b"v", None, [(b"", b"")] * 100_000)], 1, "zstd")
    assert len(many) < 1000
    [stand_in] = read(fetch([many]), largest=32 << 20)
    about = unreadable_batch(stand_in)
    assert about is not None
    assert (about.reason, about.records) == ("batch_too_large", 2)
    assert len(read(fetch([some] * 20), largest=32 << 20)) == 3, "records of one poll; the others come with the next"


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("name", [b"", b"\xff"])
def test_headers_of_one_record_are_counted_before_they_are_made(codec: str, name: bytes) -> None:
    records = [RawRecord(b"1"), RawRecord(b"2", None, [(b"\xff", None)])]
    records.append(RawRecord(b"3", None, [(name, None)] * 300_000))
    found = read(fetch([batch(records, 1, codec), batch([RawRecord(b"good")])]), largest=16 << 20)
    assert [one.value for one in found[:2]] == [b"1", b"2"]
    about = unreadable_batch(found[2])
    assert about is not None
    assert (found[2].offset, about.reason) == (2, "batch_too_large")


def test_a_lie_about_a_records_length_hides_no_headers() -> None:
    record = bytearray(body_of([RawRecord(b"v", None, [(b"", None)] * 400_000)]))
    told, length = record.index(b"\x00\x00\x00"), 10  # from the attributes on
    lie = bytes([length << 1]) + bytes(record[told:])
    [stand_in] = read(fetch([raw_batch(compress("zstd", lie), 1, 1, CODECS["zstd"])]), largest=16 << 20)
    about = unreadable_batch(stand_in)
    assert about is not None
    assert about.reason == "batch_too_large"


LIES = (1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1)  # lengths beyond the batch, beyond memory, beyond any address


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("padding", [0, 300_000], ids=["small", "large"])
@pytest.mark.parametrize("lie", ["key", "value", "name of a header"])
def test_a_length_that_points_far_outside_is_a_batch_that_cannot_be_read(lie: str, padding: int, codec: str) -> None:
    for length in LIES:
        of = dict.fromkeys(("key", "value", "name of a header"), 1) | {lie: length}
        content = b"\x00\x00\x00" + varint(of["key"]) + b"k" + varint(of["value"]) + b"v"
        content += varint(1) + varint(of["name of a header"]) + b"h" + varint(-1) + bytes(padding)
        body = compress(codec, varint(len(content)) + content)
        [stand_in] = read(fetch([raw_batch(body, 1, 1, CODECS[codec])]), largest=16 << 20)
        about = unreadable_batch(stand_in)
        assert about is not None
        assert about.reason == "batch_corrupt"


def test_nothing_behind_a_large_batch_is_read() -> None:
    """Memory after a batch holds anything: a length that was read from there pointed anywhere."""
    plain = memoryview(fetch([batch([RawRecord(bytes(300_000))])]) + varint(1 << 40) * 10)
    end = len(plain) - 10 * len(varint(1 << 40))
    made = StoredBatch(DefaultRecordBatch(plain[:end]), plain[:end], Allowance(16 << 20))
    assert [len(one.value) for one in made] == [300_000]


def varint(number: int) -> bytes:
    """As Kafka writes lengths."""
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*out, left))


def test_millions_of_records_in_a_batch_are_handed_over_one_by_one() -> None:
    """Nothing that a fetch waits for takes time by the number of records."""
    body = body_of([RawRecord()]) * 1_000_000
    records = reader(fetch([raw_batch(compress("zstd", body), 1_000_000, 1, CODECS["zstd"])]), largest=32 << 20)
    began = time.process_time()
    assert next(records).value is None
    assert time.process_time() - began < 0.5


def test_after_a_batch_that_is_too_large_a_poll_ends() -> None:
    data = fetch([batch([RawRecord(bytes(2 * LARGEST))], 1, "zstd")] * 5)
    assert [one.offset for one in read(data)] == [0]


def fetch_from(data: bytes, offset: int) -> bytes:
    """Without the batches before `offset`, as the broker sends it."""
    while data and struct.unpack_from(">q", data)[0] < offset:
        data = data[12 + struct.unpack_from(">i", data, 8)[0] :]
    return data


def test_bytes_that_changed_since_they_were_sent_are_no_records() -> None:
    """The broker may have them right: they are fetched again."""
    damaged = bytearray(fetch([batch([RawRecord(b"value")])]))
    damaged[-3] ^= 1
    with pytest.raises(CorruptRecordException, match="Invalid CRC"):
        read(bytes(damaged))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1, 2])
def test_messages_of_earlier_formats_are_read_and_limited(magic: int, codec: int) -> None:
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    for offset in range(3):
        builder.append(offset, 5, b"k", b"v" * 100)
    data = bytes(builder.build())
    if codec:
        data = struct.pack(">q", 2) + data[8:]
    found = read(data)
    assert [(one.offset, one.key, one.value, one.headers) for one in found] == [
        (offset, b"k", b"v" * 100, ()) for offset in range(3)
    ]
    assert [one.timestamp for one in found] == [5 if magic else -1] * 3
    if codec:
        [stand_in] = read(data, largest=200)
        about = unreadable_batch(stand_in)
        assert (stand_in.offset, about and about.reason) == (2, "batch_too_large")
