"""Watermarks: the event time up to which a lane has stored a topic. A stored watermark never goes back."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ragtide.drift.settings import WindowSettings
from ragtide.sinks.clickhouse.database import Database

FAST_LANE = "fast"


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """A worker's last report on its progress in a partition, at `heartbeat_at` (server time)."""

    lane: str
    topic: str
    partition: int
    newest: datetime
    offset: int
    lag: int
    heartbeat_at: datetime


class Watermark(NamedTuple):
    """Everything up to `at` is stored; `incomplete`: except a stuck partition that is no longer waited for."""

    at: datetime
    incomplete: bool


class WatermarkRow(NamedTuple):
    """Table `watermarks`."""

    lane: str
    topic: str
    watermark: datetime


@dataclass(slots=True)
class Idleness:
    """Since when partitions have nothing new, by their workers' own heartbeats; one per leader's term.

    To a new leader no partition is idle: it waits rather than closes early.
    """

    _since: dict[tuple[str, str, int], tuple[int, datetime]] = field(default_factory=dict)

    def idle_s(self, progress: PartitionProgress) -> float:
        """Return the seconds of heartbeats without a new offset; 0 if the partition lags."""
        key = (progress.lane, progress.topic, progress.partition)
        offset, since = self._since.get(key, (-1, progress.heartbeat_at))
        if progress.lag or progress.offset != offset:
            self._since[key] = (progress.offset, progress.heartbeat_at)
            return 0.0
        return (progress.heartbeat_at - since).total_seconds()


def watermarks(
    progress: Iterable[PartitionProgress], now: datetime, idleness: Idleness, settings: WindowSettings
) -> dict[tuple[str, str], Watermark]:
    """Return the watermark of each (lane, topic) with recent heartbeats.

    It is the oldest of the partitions' newest stored event times, less the out-of-orderness. A partition without
    heartbeats is stuck: it holds the others back for a bounded time, then the watermark is incomplete, and later the
    partition has expired. A live partition without lag or new records is idle and left out. If all are idle, everything
    up to their heartbeats is stored.
    """
    groups: dict[tuple[str, str], list[PartitionProgress]] = {}
    for one in progress:
        if (now - one.heartbeat_at).total_seconds() < settings.partition_expiry_s:
            groups.setdefault((one.lane, one.topic), []).append(one)
    slack = timedelta(seconds=settings.out_of_orderness_s)
    found = {}
    for key, partitions in groups.items():
        active, idle, given_up = [], [], []
        for one in partitions:
            silent_s = (now - one.heartbeat_at).total_seconds()
            if silent_s > settings.heartbeat_timeout_s + settings.stuck_wait_s:
                given_up.append(one)
            elif silent_s > settings.heartbeat_timeout_s or not _is_idle(one, idleness, settings):
                active.append(one)
            else:
                idle.append(one)
        if active:
            at = min(one.newest for one in active)
        elif idle:
            at = min(one.heartbeat_at for one in idle)
        else:
            at = max(one.newest for one in given_up)
        found[key] = Watermark(at - slack, bool(given_up))
    return found


def _is_idle(progress: PartitionProgress, idleness: Idleness, settings: WindowSettings) -> bool:
    quiet_s = idleness.idle_s(progress)
    unused = progress.newest.timestamp() <= 0 and progress.lag == 0  # no record ever came
    return unused or (progress.lag == 0 and quiet_s > 0 and quiet_s >= settings.idle_after_s)


def monotonic(
    fresh: Mapping[tuple[str, str], Watermark], stored: Mapping[tuple[str, str], datetime]
) -> dict[tuple[str, str], Watermark]:
    """Return the fresh watermarks, none below the stored ones."""
    return {key: Watermark(max(one.at, stored.get(key, one.at)), one.incomplete) for key, one in fresh.items()}


def lane_watermarks(watermarks: Mapping[tuple[str, str], Watermark]) -> dict[str, Watermark]:
    """Return until when windows of each lane may close: the lower of its own and `fast`'s watermarks over all topics.

    `fast` counts the traces seen; without it nothing closes.
    """
    lanes: dict[str, Watermark] = {}
    for (lane, _), watermark in watermarks.items():
        lanes[lane] = _lower(lanes.get(lane, watermark), watermark)
    fast = lanes.get(FAST_LANE)
    return {} if fast is None else {lane: _lower(own, fast) for lane, own in lanes.items()}


def closed_until(database: Database, settings: WindowSettings, now: datetime) -> dict[str, datetime]:
    """Return until when windows of each lane are closed, as stored by roll-ups, for lanes with recent heartbeats."""
    live = {
        (one.lane, one.topic)
        for one in read_progress(database)
        if (now - one.heartbeat_at).total_seconds() < settings.partition_expiry_s
    }
    stored = {key: Watermark(at, False) for key, at in read_watermarks(database).items() if key in live}
    return {lane: one.at for lane, one in lane_watermarks(stored).items()}


def _lower(one: Watermark, other: Watermark) -> Watermark:
    return Watermark(min(one.at, other.at), one.incomplete or other.incomplete)


def read_progress(database: Database) -> list[PartitionProgress]:
    """Load the last report on each partition."""
    rows = database.rows(
        "SELECT lane, topic, partition, newest, offset, lag, heartbeat_at FROM progress FINAL ORDER BY ALL"
    )
    return [PartitionProgress(**row) for row in rows]


def read_watermarks(database: Database) -> dict[tuple[str, str], datetime]:
    """Load the watermarks of earlier roll-ups."""
    rows = database.rows("SELECT lane, topic, max(watermark) AS watermark FROM watermarks GROUP BY lane, topic")
    return {(row["lane"], row["topic"]): row["watermark"].astimezone(UTC) for row in rows}


def store(database: Database, watermarks: Mapping[tuple[str, str], Watermark]) -> None:
    """Store the watermarks for the next roll-up and the next leader."""
    database.insert("watermarks", [WatermarkRow(lane, topic, one.at) for (lane, topic), one in watermarks.items()])
