"""Read record batches for every consumer, and continue after a batch that cannot be read.

aiokafka decompresses without a limit, and raises where a header name is not UTF-8 or a batch does not decompress: at
every start again, since the record stays where it is. Here a batch expands to a limited size, header names keep their
bytes, and a batch that cannot be taken apart becomes one record that stands for it (`ragtide.stream.ingest.records`).

The names of aiokafka that are replaced or used are held by tests/stream/core/test_driver_contract.py.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.consumer import consumer as consumer_module
from aiokafka.consumer import fetcher as fetcher_module
from aiokafka.consumer.fetcher import Fetcher, FetchResult, PartitionRecords
from aiokafka.errors import CorruptRecordException, UnsupportedCodecError
from aiokafka.record.default_records import DefaultRecord, DefaultRecordBatch
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import decode_varint as decode_varint_unbounded

from ragtide.stream.ingest.records import UnreadableBatch
from ragtide.stream.kafka.client import client_options
from ragtide.stream.kafka.expansion import CorruptError, TooLargeError, codec_name, expand
from ragtide.stream.settings.sections import KafkaSettings

_LENGTH = struct.Struct(">i")
_LENGTH_AT = 8
_AFTER_LENGTH = 12
_ATTRIBUTES = struct.Struct(">h")
_ATTRIBUTES_AT = 21
_COUNT_AT = 57
_HEADER_BYTES = 61
_CODEC = 0x07
_VARINT_BYTES = 10  # at most
_LEGACY = struct.Struct(">qiIbb")  # offset, size, CRC, magic, attributes: message formats 0 and 1
_LEGACY_FAULTS = (CorruptRecordException, UnsupportedCodecError, AssertionError, RuntimeError, struct.error)
_FAULTS = (UnicodeDecodeError, CorruptRecordException, OverflowError)  # as aiokafka's reader raises them
MEMORY_PER_HEADER = 128  # bytes; in a batch it may have 2
_HEADERS_UNCOUNTED = 1 << 18  # bytes; a smaller batch has no more headers than memory has room for
_LARGEST = 32 << 20  # of consumers that nobody gave a limit
_TOO_LARGE = (
    "takes more memory than kafka.max_batch_bytes = {} once it is expanded: have the producer send smaller batches, "
    "or raise the setting and read these offsets with `ragtide replay --offsets`"
)
NO_TIMESTAMP = -1
_LIMIT = "largest_batch"  # attribute of a consumer's client, which its fetcher is given


class Allowance:
    """Bytes that a batch may expand to, and bytes that the batches of one poll have expanded to so far."""

    def __init__(self, largest: int) -> None:
        self.largest = largest
        self.spent = 0

    def begin_poll(self) -> None:
        """Let the next batches expand."""
        self.spent = 0

    def spend_all(self) -> None:
        """End the poll after this batch."""
        self.spent = self.largest

    @property
    def used_up(self) -> bool:
        """Whether no further batch is expanded in this poll."""
        return self.spent >= self.largest


class RecordBatches:
    """Replaces aiokafka's `MemoryRecords`: the batches of a fetch, one after the other.

    A poll that has expanded enough ends here; what is left of the fetch is fetched again.
    """

    __slots__ = ("_again", "_at", "_batch", "_batches", "_data", "_given", "_passed", "allowance")

    def __init__(self, data: bytes) -> None:
        self.allowance = Allowance(_LARGEST)
        self._data = data
        self._batches = MemoryRecords(data)
        self._batch: Any = None  # given last
        self._again = False
        self._given = 0  # batches
        self._passed = 0  # batches that end before `_at`
        self._at = 0

    def size_in_bytes(self) -> int:
        """Of the whole fetch."""
        return len(self._data)

    def has_next(self) -> bool:
        """Whether another whole batch is here and may be expanded in this poll."""
        return (self._batches.has_next() or self._again) and not self.allowance.used_up

    def next_batch(self) -> Any:
        """Like aiokafka's batches; a small uncompressed one is aiokafka's own, at no extra cost."""
        if self._again:
            self._again, data = False, self._bytes()
            self._batch = StoredBatch(DefaultRecordBatch(data), data, self.allowance)
            return self._batch
        self._batch = batch = self._batches.next_batch()
        self._given += 1
        data = self._bytes()
        if type(batch) is not DefaultRecordBatch:
            self._batch = LegacyBatch(batch, data, self.allowance)
        elif batch.attributes & _CODEC or len(data) > _HEADERS_UNCOUNTED:
            self._batch = StoredBatch(batch, data, self.allowance)
        return self._batch

    def read_again(self) -> bool:
        """Give the last batch again, to be read byte by byte; False: it was."""
        self._again = type(self._batch) is DefaultRecordBatch
        return self._again

    def _bytes(self) -> memoryview:
        """The bytes of the batch given last."""
        while True:
            end = self._at + _AFTER_LENGTH + int(_LENGTH.unpack_from(self._data, self._at + _LENGTH_AT)[0])
            if self._passed == self._given - 1:
                return memoryview(self._data)[self._at : end]
            self._at, self._passed = end, self._passed + 1


class StoredBatch:
    """A batch of message format 2 as aiokafka's fetcher uses it."""

    __slots__ = ("_allowance", "_batch", "_data", "base_offset", "is_control_batch", "producer_id", "validate_crc")

    def __init__(self, batch: Any, data: memoryview, allowance: Allowance) -> None:
        self._data = data
        self._allowance = allowance
        self._batch = batch
        self.base_offset = batch.base_offset
        self.producer_id = batch.producer_id
        self.is_control_batch = batch.is_control_batch
        self.validate_crc = batch.validate_crc

    @property
    def next_offset(self) -> int:
        """After the last record that the batch ever had."""
        return int(self._batch.next_offset)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self._batch.is_transactional)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over every record; those before a fault may come again, and the fetcher skips them."""
        batch, allowance = self._batch, self._allowance
        codec = batch.attributes & _CODEC
        try:
            data: bytearray | memoryview = self._data
            if codec:
                data = self._expanded(codec)
                batch = DefaultRecordBatch(data)
            with suppress(*_FAULTS):
                yield from self._bounded(iter(batch), data)
                return
            yield from self._bounded(_records(self._batch, bytearray(data)), data)
        except TooLargeError:
            allowance.spend_all()  # even to see that it is too large takes a while
            yield self._stand_in("batch_too_large", codec, _TOO_LARGE.format(allowance.largest))
        except CorruptError as error:
            allowance.spend_all()
            yield self._stand_in("batch_corrupt", codec, f"cannot be read ({error})")

    def _expanded(self, codec: int) -> bytearray:
        """The uncompressed batch; raises like `expand`, also for too many headers."""
        allowance = self._allowance
        expanded = expand(codec, self._data[_HEADER_BYTES:], allowance.largest)
        allowance.spent += len(expanded)
        plain = bytearray(self._data[:_HEADER_BYTES])
        _ATTRIBUTES.pack_into(plain, _ATTRIBUTES_AT, self._batch.attributes & ~_CODEC)
        plain += expanded
        return plain

    def _bounded(self, records: Iterator[Any], plain: bytearray | memoryview) -> Iterator[Any]:
        """The records; raises `TooLargeError` before their headers take more memory than the batch may expand to.

        A record is looked at only when it is its turn: a batch may have millions, and the others wait meanwhile.
        """
        allowance, at, spent = self._allowance, _HEADER_BYTES, 0
        many = len(plain) > _HEADERS_UNCOUNTED
        while True:
            if many:
                at, count = _headers_of(plain, at)
                if spent + count * MEMORY_PER_HEADER > allowance.largest:
                    raise TooLargeError
            record = next(records, None)
            if record is None:
                return
            if headers := record.headers:
                spent += len(headers) * MEMORY_PER_HEADER
                allowance.spent += len(headers) * MEMORY_PER_HEADER
            yield record

    def _stand_in(self, reason: str, codec: int, what: str) -> Any:
        batch, (count,) = self._batch, _LENGTH.unpack_from(self._data, _COUNT_AT)
        stored = bytes(self._data[_HEADER_BYTES:])
        first, last, kind = batch.base_offset, batch.next_offset - 1, batch.timestamp_type
        return _stand_in(reason, what, first, last, count, codec, stored, batch.max_timestamp, kind)


class LegacyBatch:
    """A message, or a compressed set of messages, of format 0 or 1 as aiokafka's fetcher uses it."""

    producer_id = None
    is_control_batch = False
    is_transactional = False

    def __init__(self, batch: Any, data: memoryview, allowance: Allowance) -> None:
        self._data = bytes(data)
        self._allowance = allowance
        self._batch = batch
        self.next_offset = batch.next_offset
        self.validate_crc = batch.validate_crc

    def __iter__(self) -> Iterator[Any]:
        """Every record; a message of format 0 has no timestamp."""
        offset, *_, magic, attributes = _LEGACY.unpack_from(self._data)
        codec = attributes & _CODEC
        try:
            if codec:  # aiokafka expands it once more: such messages are rare
                self._allowance.spent += len(expand(codec, memoryview(self._value(magic)), self._allowance.largest))
            for record in self._batch:
                timestamp = NO_TIMESTAMP if record.timestamp is None else record.timestamp
                yield DefaultRecord(record.offset, timestamp, 0, record.key, record.value, [])
        except TooLargeError:
            self._allowance.spend_all()
            yield self._stand_in("batch_too_large", _TOO_LARGE.format(self._allowance.largest), offset, codec)
        except (CorruptError, *_LEGACY_FAULTS) as error:
            yield self._stand_in("batch_corrupt", f"cannot be read ({type(error).__name__})", offset, codec)

    def _value(self, magic: int) -> bytes:
        at = _LEGACY.size + (8 if magic else 0)
        (key,) = _LENGTH.unpack_from(self._data, at)
        at += 4 + max(0, key)
        (size,) = _LENGTH.unpack_from(self._data, at)
        return self._data[at + 4 : at + 4 + max(0, size)]

    def _stand_in(self, reason: str, what: str, offset: int, codec: int) -> Any:
        """The offset of a set of messages is that of its last one; the first is known only once it is expanded."""
        return _stand_in(reason, what, offset, offset, 1, codec, self._data[_LEGACY.size :], NO_TIMESTAMP, 0)


def _stand_in(
    reason: str, what: str, first: int, last: int, count: int, codec: int, stored: bytes, timestamp: int, kind: int
) -> Any:
    """The record that represents a batch, at its last offset: whatever offset is read from, the whole batch is done."""
    name = codec_name(codec)
    detail = f"the batch of offsets {first} to {last} ({count:,} records, {name}, {len(stored):,} bytes) {what}"
    batch = UnreadableBatch(reason, detail, first, last, count, name)
    return DefaultRecord(last, timestamp, kind, None, stored, [batch.header()])


def _varint(plain: bytearray | memoryview, at: int) -> tuple[int, int]:
    """The varint at `at`, and where it ends; `IndexError` if that is not within `plain`, `ValueError` if it never ends.

    aiokafka's decoder reads whatever memory `at` points to.
    """
    if at + _VARINT_BYTES <= len(plain):
        found: tuple[int, int] = decode_varint_unbounded(plain, at)
        return found
    value, size = decode_varint_unbounded(bytes(plain[at:]).ljust(_VARINT_BYTES, b"\x00"), 0)
    if at + size > len(plain):
        raise IndexError(at)
    return value, at + size


def _headers_of(plain: bytearray | memoryview, at: int) -> tuple[int, int]:
    """End of the record at `at`, and its stated number of headers; unknown if it is corrupt."""
    try:
        length, at = _varint(plain, at)
        end = at + length
        at += 1  # past the attributes
        for _ in range(2):  # past the deltas of timestamp and offset
            _, at = _varint(plain, at)
        for _ in range(2):  # past key and value
            size, at = _varint(plain, at)
            at += max(0, size)
        count, _ = _varint(plain, at)
    except (IndexError, ValueError):
        return len(plain), 0
    return max(at, end), min(max(0, count), len(plain) - at)


def _records(batch: Any, plain: bytearray) -> Iterator[Any]:
    """The records of a batch that is not compressed, with the bytes of every header name.

    Raises `CorruptError`.
    """
    try:
        at = _HEADER_BYTES
        (count,) = _LENGTH.unpack_from(plain, _COUNT_AT)
        for _ in range(count):
            record, at = _record(batch, plain, at)
            yield record
    except (IndexError, ValueError) as error:
        raise CorruptError(f"records: {type(error).__name__}") from None
    if at != len(plain):
        raise CorruptError("records: more bytes than records")


def _record(batch: Any, plain: bytearray, at: int) -> tuple[Any, int]:
    length, at = _varint(plain, at)
    end = at + length
    if not at < end <= len(plain):
        raise ValueError(length)
    time_delta, at = _varint(plain, at + 1)  # past the attributes
    offset_delta, at = _varint(plain, at)
    key, at = _bytes(plain, at, end)
    value, at = _bytes(plain, at, end)
    count, at = _varint(plain, at)
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, at = _bytes(plain, at, end)
        content, at = _bytes(plain, at, end)
        headers.append(((name or b"").decode("utf-8", "surrogateescape"), content))
    if at != end:
        raise ValueError(length)
    timestamp = batch.max_timestamp if batch.timestamp_type else batch.first_timestamp + time_delta
    return DefaultRecord(batch.base_offset + offset_delta, timestamp, batch.timestamp_type, key, value, headers), end


def _bytes(plain: bytearray, at: int, end: int) -> tuple[bytes | None, int]:
    size, at = _varint(plain, at)
    if size < 0:
        return None, at
    if at + size > end:
        raise ValueError(size)
    return bytes(plain[at : at + size]), at + size


class ReadRecords(PartitionRecords):  # type: ignore[misc]  # aiokafka has no types
    """aiokafka's records of a partition; a batch that it cannot read is read again byte by byte."""

    def _unpack_records(self) -> Iterator[Any]:
        while True:
            try:
                yield from super()._unpack_records()
            except _FAULTS:
                if not self._records.read_again():
                    raise
            else:
                return


class RecordFetcher(Fetcher):  # type: ignore[misc]  # aiokafka has no types
    """aiokafka's fetcher with one allowance for all that it reads."""

    def __init__(self, client: Any, *arguments: Any, **options: Any) -> None:
        self._allowance = Allowance(getattr(client, _LIMIT, _LARGEST))
        super().__init__(client, *arguments, **options)

    async def _proc_fetch_request(self, assignment: Any, node_id: int, request: Any) -> bool:
        came = await super()._proc_fetch_request(assignment, node_id, request)
        for topic, partitions in request.topics:
            for partition, *_ in partitions:
                fetched = self._records.get(TopicPartition(topic, partition))
                if isinstance(fetched, FetchResult) and fetched.has_more():
                    fetched._partition_records._records.allowance = self._allowance
        return bool(came)

    async def fetched_records(self, partitions: Any, timeout: float = 0, max_records: int | None = None) -> Any:
        """As aiokafka does, over batches that expand to about one allowance."""
        self._allowance.begin_poll()
        return await super().fetched_records(partitions, timeout, max_records)

    async def next_record(self, partitions: Any) -> Any:
        """As aiokafka does."""
        self._allowance.begin_poll()
        return await super().next_record(partitions)


def consumer_of(kafka: KafkaSettings, *topics: str, role: str = "", **options: Any) -> AIOKafkaConsumer:
    """Make a consumer that connects like all clients, with batches that expand to `kafka.largest_batch` at most."""
    consumer = AIOKafkaConsumer(*topics, **options, **client_options(kafka, role))
    limit_batches(consumer, kafka.largest_batch)
    return consumer


def limit_batches(consumer: AIOKafkaConsumer, largest: int) -> None:
    """Set how many bytes a batch may expand to, before the consumer starts."""
    setattr(consumer._client, _LIMIT, largest)


fetcher_module.MemoryRecords = RecordBatches
fetcher_module.PartitionRecords = ReadRecords
consumer_module.Fetcher = RecordFetcher
