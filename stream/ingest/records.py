"""The consumed record as the pipeline needs it; aiokafka's ConsumerRecord fits as it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

import msgspec

from ragtide.evaluators.errors import BadRecord

_LAST_MS = 4_291_747_199_999  # 2105-12-31T23:59:59.999Z
_BATCH = "\ud800batch"  # no bytes decode to this header name, so that no producer can send it

Header = tuple[str, bytes | None]
Headers = Sequence[Header]


class Record(Protocol):
    """A message of a topic. `timestamp` is the broker's, in ms; negative or 0: none.

    Header names that are not UTF-8 have lone surrogates; see `check_readable`.
    """

    @property
    def topic(self) -> str:
        """Where it lay."""
        ...

    @property
    def partition(self) -> int:
        """Where it lay."""
        ...

    @property
    def offset(self) -> int:
        """Where it lay."""
        ...

    @property
    def timestamp(self) -> int:
        """The broker's, in ms since 1970."""
        ...

    @property
    def key(self) -> bytes | None:
        """As sent."""
        ...

    @property
    def value(self) -> bytes | None:
        """As sent."""
        ...

    @property
    def headers(self) -> Headers:
        """As sent."""
        ...


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record that is not from Kafka: a line of a file (partition 0, offset = line, timestamp 0)."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class DeadLetter(NamedTuple):
    """A record that cannot be used, and why; `detail` never quotes it."""

    record: Record
    reason: str
    stage: str
    detail: str


class UnreadableBatch(NamedTuple):
    """A batch that cannot be read: its offsets, the number of records in its header, and the reason."""

    reason: str
    detail: str
    first_offset: int
    last_offset: int
    records: int
    codec: str

    def header(self) -> Header:
        """The only header of the record that represents the batch, at its last offset, with its bytes as value."""
        return _BATCH, msgspec.json.encode(self)


def unreadable_batch(record: Record) -> UnreadableBatch | None:
    """The unreadable batch that the record represents; None for an ordinary record."""
    headers = record.headers
    if not headers or headers[0][0] != _BATCH:
        return None
    return msgspec.json.decode(headers[0][1] or b"", type=UnreadableBatch)


def check_readable(record: Record) -> None:
    """Raise `BadRecord` for a record that represents an unreadable batch, and for a header name that is not UTF-8.

    Bytes that are not UTF-8 are lone surrogates in a name (`surrogateescape`), so that none is lost.
    """
    batch = unreadable_batch(record)
    if batch is not None:
        raise BadRecord(batch.reason, batch.detail)
    for at, (name, _) in enumerate(record.headers):
        if not name.isascii() and not is_utf8(name):
            raise BadRecord("header_not_utf8", f"the name of header {at} is not UTF-8; have the producer correct it")


def is_utf8(name: str) -> bool:
    """Whether a header name has no lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def sent_headers(record: Record) -> Headers:
    """The headers as sent: none for a record that represents an unreadable batch."""
    return record.headers if unreadable_batch(record) is None else ()


def broker_time(record: Record) -> datetime:
    """The broker's timestamp: 1970 without one, the end of 2105 if it is later than tables can hold."""
    return datetime.fromtimestamp(min(max(record.timestamp, 0), _LAST_MS) / 1000, UTC)
