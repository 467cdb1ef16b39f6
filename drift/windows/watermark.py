"""Watermarks: up to which event time a lane has stored what a topic holds. A stored watermark never goes back."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ragtide.drift.settings import WindowSettings
from ragtide.sinks.clickhouse.database import Database

FAST = "fast"


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """How far a lane's worker said it was in a partition, and when it last said so (server time)."""

    lane: str
    topic: str
    partition: int
    newest: datetime
    offset: int
    lag: int
    heartbeat_at: datetime


class Watermark(NamedTuple):
    """Up to `at` all is stored; `incomplete` where that no longer waits for a stuck partition."""

    at: datetime
    incomplete: bool


class WatermarkRow(NamedTuple):
    """Table `watermarks`."""

    lane: str
    topic: str
    watermark: datetime


@dataclass(slots=True)
class Idleness:
    """Since when a partition had nothing new, by its worker's own heartbeats; one per leader's term.

    A new leader knows nothing yet and calls nobody idle: it waits rather than closes early.
    """

    _since: dict[tuple[str, str, int], tuple[int, datetime]] = field(default_factory=dict)

    def idle_s(self, progress: PartitionProgress) -> float:
        """Seconds of heartbeats over which the offset stood still; 0 where the partition lags."""
        key = (progress.lane, progress.topic, progress.partition)
        offset, since = self._since.get(key, (-1, progress.heartbeat_at))
        if progress.lag or progress.offset != offset:
            self._since[key] = (progress.offset, progress.heartbeat_at)
            return 0.0
        return (progress.heartbeat_at - since).total_seconds()


def watermarks(
    progress: Iterable[PartitionProgress], now: datetime, idleness: Idleness, settings: WindowSettings
) -> dict[tuple[str, str], Watermark]:
    """The watermark of each (lane, topic) that some worker spoke of lately.

    The oldest of its partitions' newest stored event times, less the out-of-orderness. A partition without heartbeats
    is stuck: it holds the others back for a bounded time, then the watermark says incomplete; later it is gone. A live
    partition without lag or news is idle and left out. Where all are idle, all up to their heartbeats is stored.
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
    unused = progress.newest.timestamp() <= 0 and progress.lag == 0  # nothing ever came
    return unused or (progress.lag == 0 and quiet_s > 0 and quiet_s >= settings.idle_after_s)


def monotonic(
    fresh: Mapping[tuple[str, str], Watermark], stored: Mapping[tuple[str, str], datetime]
) -> dict[tuple[str, str], Watermark]:
    """The fresh watermarks, none below what was stored before."""
    return {key: Watermark(max(one.at, stored.get(key, one.at)), one.incomplete) for key, one in fresh.items()}


def lane_watermarks(watermarks: Mapping[tuple[str, str], Watermark]) -> dict[str, Watermark]:
    """Up to when windows of each lane may close: the lower of its own and `fast`'s watermarks over all topics.

    `fast` counts what was seen; without it nothing closes.
    """
    lanes: dict[str, Watermark] = {}
    for (lane, _), watermark in watermarks.items():
        lanes[lane] = _lower(lanes.get(lane, watermark), watermark)
    fast = lanes.get(FAST)
    return {} if fast is None else {lane: _lower(own, fast) for lane, own in lanes.items()}


def closed_until(database: Database, settings: WindowSettings, now: datetime) -> dict[str, datetime]:
    """Up to when windows of each lane are closed, as roll-ups stored it; of lanes that somebody ran lately."""
    live = {
        (one.lane, one.topic)
        for one in read_progress(database)
        if (now - one.heartbeat_at).total_seconds() < settings.partition_expiry_s
    }
    stored = {key: Watermark(at, False) for key, at in read_stored(database).items() if key in live}
    return {lane: one.at for lane, one in lane_watermarks(stored).items()}


def _lower(one: Watermark, other: Watermark) -> Watermark:
    return Watermark(min(one.at, other.at), one.incomplete or other.incomplete)


def read_progress(database: Database) -> list[PartitionProgress]:
    """The latest word on each partition."""
    rows = database.rows(
        "SELECT lane, topic, partition, newest, offset, lag, heartbeat_at FROM progress FINAL ORDER BY ALL"
    )
    return [PartitionProgress(**row) for row in rows]


def read_stored(database: Database) -> dict[tuple[str, str], datetime]:
    """The watermarks of earlier roll-ups."""
    rows = database.rows("SELECT lane, topic, max(watermark) AS watermark FROM watermarks GROUP BY lane, topic")
    return {(row["lane"], row["topic"]): row["watermark"].astimezone(UTC) for row in rows}


def store(database: Database, watermarks: Mapping[tuple[str, str], Watermark]) -> None:
    """Keep the watermarks for the next roll-up and for the next leader."""
    database.insert("watermarks", [WatermarkRow(lane, topic, one.at) for (lane, topic), one in watermarks.items()])
