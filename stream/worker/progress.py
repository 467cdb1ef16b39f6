"""Progress of a lane in each partition: the rows that watermarks and lag are computed from. No I/O."""

import os
import socket
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from ragtide.sinks.rows import ProgressRow
from ragtide.stream.ingest.records import Record
from ragtide.stream.kafka.offsets import Lag, Partition

NOTHING_STORED = datetime(1970, 1, 1, tzinfo=UTC)


class _PartitionProgress(NamedTuple):
    next_offset: int
    newest: datetime
    timestamp_ms: int  # of the broker, of the last record


class LaneProgress:
    """Makes rows whose `newest` and `offset` cover only what was passed to the writer before them.

    The writer keeps the order and a sink writes progress last, so all that a stored row covers is stored.
    `newest` never goes back, and is never ahead of `clock` (aware, UTC).
    """

    def __init__(self, lane: str, worker: str, clock: Callable[[], datetime]) -> None:
        self._lane = lane
        self._worker = worker
        self._clock = clock
        self._by_partition: dict[Partition, _PartitionProgress] = {}

    def advance(self, at: Partition, last: Record, newest: datetime | None, lag: Lag | None) -> ProgressRow:
        """Make the row for a slice that ends with `last`; `newest` is the slice's, None if it has no trace."""
        before = self._by_partition.get(at)
        times = [before.newest] if before else []
        if newest is not None:
            times.append(min(newest, self._clock()))
        next_offset = last.offset + 1
        self._by_partition[at] = _PartitionProgress(next_offset, max(times, default=NOTHING_STORED), last.timestamp)
        return self._row(at, lag or Lag(next_offset, 0))

    def age_s(self, at: Partition) -> float | None:
        """Age of the latest processed record in seconds; None before the first."""
        latest = self._by_partition.get(at)
        return None if latest is None else max(0.0, self._clock().timestamp() - latest.timestamp_ms / 1000)

    def heartbeat(self, lags: Iterable[tuple[Partition, Lag]]) -> list[ProgressRow]:
        """Make a row for each partition with a known end."""
        return [self._row(at, lag) for at, lag in lags]

    def _row(self, at: Partition, lag: Lag) -> ProgressRow:
        next_offset, newest, _ = self._by_partition.get(at, _PartitionProgress(0, NOTHING_STORED, 0))
        end = lag.offset + lag.records
        # Records passed to the writer count as done; a commit by another owner may be further, a new topic shorter.
        offset = min(max(next_offset, lag.offset), max(end, lag.offset))
        return ProgressRow(self._lane, *at, self._worker, newest, offset, max(0, end - offset))


def worker_name(lane: str) -> str:
    """Name of this process for people: host, process id and lane."""
    return f"{socket.gethostname()}:{os.getpid()}:{lane}"
