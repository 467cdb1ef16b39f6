"""What the pipeline needs to know of a consumed record; aiokafka's ConsumerRecord fits as it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

_LAST_MS = 4_291_747_199_999  # 2105-12-31T23:59:59.999Z

Headers = Sequence[tuple[str, bytes | None]]


class Record(Protocol):
    """One message as it lay on its topic. `timestamp` is the broker's, in ms; negative or 0: there was none."""

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
    """A record that came from somewhere else than Kafka: a line of a file (partition 0, offset = line, timestamp 0)."""

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


def broker_time(record: Record) -> datetime:
    """The broker's timestamp; 1970 where there was none, the end of 2105 where it is later than tables can hold."""
    return datetime.fromtimestamp(min(max(record.timestamp, 0), _LAST_MS) / 1000, UTC)
