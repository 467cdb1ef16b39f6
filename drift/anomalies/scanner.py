"""Scan every series for changes, from the end of its stored state up to its lane's watermark."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from ragtide.drift.anomalies import queries
from ragtide.drift.anomalies.batch import MAX_SERIES, Batch, BatchKey, BatchSnapshot
from ragtide.drift.anomalies.learner import BaselineLearner
from ragtide.drift.anomalies.metrics import MonitoredMetric, group_by_lane, monitored_metrics
from ragtide.drift.anomalies.processor import BatchProcessor
from ragtide.drift.anomalies.queries import NewSeries, TickRange, WindowCells
from ragtide.drift.anomalies.references import ReferenceOverrides, load_overrides, problem_intervals
from ragtide.drift.anomalies.rollouts import RolloutMonitor, re_add_after_rewind
from ragtide.drift.anomalies.state_store import NEWEST, ClickHouseStateStore, StateStore
from ragtide.drift.detectors import WarmUp
from ragtide.drift.job_history import StopRequested
from ragtide.drift.settings import DriftSettings, WindowSettings
from ragtide.drift.stats import calendar
from ragtide.drift.windows import closed_until
from ragtide.evaluators.spec import Evaluator, Lane
from ragtide.sinks.clickhouse.database import Database

logger = logging.getLogger(__name__)
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ScanContext:
    """What a scan needs besides windows: of the running system (`live_context`), or as of a past instant.

    `closed_until` returns the watermark of each lane that workers run, `overrides` the operator actions, both at a
    time. `on_tick` is called after each tick of a batch, and copies what it keeps: the batch goes on.
    """

    store: StateStore
    closed_until: Callable[[datetime], Mapping[str, datetime]]
    overrides: Callable[[datetime], ReferenceOverrides]
    on_tick: Callable[[BatchSnapshot], None] = lambda snapshot: None


def live_context(database: Database, windows: WindowSettings, version: Callable[[], int]) -> ScanContext:
    """Return the context of the running system; its states are stored with `version()` (see `Term.next_version`)."""
    return ScanContext(
        store=ClickHouseStateStore(database, version),
        closed_until=lambda now: closed_until(database, windows, now),
        overrides=lambda now: load_overrides(database),
    )


@dataclass(frozen=True, slots=True)
class ScanResult:
    """What a scan found. `reprocessed` ticks had changed since the last one, `too_late` ones can no longer be.

    `rollouts` are series that are compared with another model; they are in `snapshots` too.
    """

    snapshots: tuple[BatchSnapshot, ...]
    reprocessed: int
    too_late: int
    rollouts: tuple[BatchSnapshot, ...] = ()

    @property
    def series(self) -> int:
        """Number of series."""
        return sum(len(one.batch.series) for one in self.snapshots)

    @property
    def warming_up(self) -> int:
        """Number of series with too little history."""
        return sum(int((one.baseline.warming != WarmUp.READY).sum()) for one in self.snapshots)

    @property
    def alarms(self) -> int:
        """Number of series in alarm."""
        return sum(int(one.batch.rows.state.alarms.on.sum()) for one in self.snapshots)


@dataclass(slots=True)
class Scanner:
    """Scans with stored states, and stores them again."""

    database: Database
    evaluators: Mapping[str, Evaluator]
    windows: WindowSettings
    settings: DriftSettings
    context: ScanContext
    monitored: Mapping[str, MonitoredMetric] = field(init=False)
    tick_s: int = field(init=False)
    checkpoint_interval_s: int = field(init=False)

    def __post_init__(self) -> None:
        self.monitored = monitored_metrics(self.evaluators.values(), self.settings.ignored_everywhere)
        self.tick_s = calendar.tick_size(self.windows.base_s)
        self.checkpoint_interval_s = calendar.checkpoint_interval(self.windows.allowed_lateness_s)

    def run(
        self, now: datetime, progress: Progress = lambda done, of: None, stopped: Callable[[], bool] = lambda: False
    ) -> ScanResult:
        """Process all ticks that every lane has closed, and store the states.

        Calls `progress` after each batch with the number of batches done and of all. Asks `stopped` between the hours
        of a batch; once true, raises `StopRequested` with the batch stored as far as it is.
        """
        ends = self._lane_ends(now)
        stored = self.context.store.load_batches(self.monitored)
        for batch in stored:
            self._drop_unmonitored(batch)
        batches = [batch for batch in stored if batch.key.lane in ends and batch.series]
        version = queries.newest_version(
            self.database, self.windows.base_s, min((batch.windows_version for batch in batches), default=0)
        )
        overrides = self.context.overrides(now)
        learner = BaselineLearner(
            self.database, self.monitored, overrides, problem_intervals(self.database), self.windows, self.settings
        )
        processor = BatchProcessor(learner, self.context.store, self.context.on_tick, stopped)
        rollout_monitor = RolloutMonitor(learner, self.context.store)
        changed = self._changed_cells(batches)
        touched = {key for key, cells in changed.items() if len(cells)}
        batches, reprocessed, too_late = self._rewind(batches, changed)
        rollouts = [batch for batch in batches if batch.key.is_rollout]
        touched |= {batch.key for batch in rollouts if rollout_monitor.drop_finished(batch)}
        batches = [batch for batch in batches if not batch.key.is_rollout]
        for batch in batches:
            basis = np.array([overrides.baseline_source(series) for series in batch.series], np.int64)
            rebased = np.flatnonzero(basis != batch.rows.baseline_source)
            batch.rows.baseline_source[:] = basis
            rebased = np.union1d(rebased, processor.awaiting_baseline(batch))
            if len(rebased):
                processor.rebase(batch, rebased)
                touched.add(batch.key)
        batches = self._add_new_series(batches, [batch.key for batch in stored], ends, overrides)
        first_seen = {batch.key for batch in batches if not batch.windows_version}

        def advanced(some: Sequence[Batch], before: int = 0) -> Iterator[BatchSnapshot]:
            for done, batch in enumerate(some, start=before + 1):
                behind = batch.processed_until < ends[batch.key.lane]
                fitted = processor.advance(batch, ends[batch.key.lane])
                batch.windows_version = version
                if behind or batch.key in touched:
                    self.context.store.save(batch, NEWEST)
                if batch.series:  # all of them may be gone, or too new for their first baselines
                    yield BatchSnapshot(batch, learner.effective(fitted, batch))
                progress(done, before + len(some))
                if stopped():
                    raise StopRequested(f"{done} of {before + len(some)} batches of series were looked at")

        snapshots = list(advanced(batches))
        rollouts = rollout_monitor.add_new(rollouts, snapshots, first_seen, {batch.key for batch in stored})
        if too_late:
            logger.warning("%d ticks changed too late for detectors to process them again", too_late)
        return ScanResult(tuple(snapshots), reprocessed, too_late, tuple(advanced(rollouts, len(batches))))

    def _lane_ends(self, now: datetime) -> dict[Lane, int]:
        """Return the tick up to which each lane that workers run is closed."""
        closed = self.context.closed_until(now)
        lanes = {metric.lane for metric in self.monitored.values() if metric.lane in closed}
        ends = {lane: calendar.floor(closed[lane].timestamp(), self.tick_s) for lane in lanes}
        return {lane: end for lane, end in ends.items() if end > calendar.DAY_S}

    def _drop_unmonitored(self, batch: Batch) -> None:
        """Drop series of applications or metrics that the settings no longer monitor."""
        monitored = np.array([self.settings.monitors(one.app, one.metric) for one in batch.series], bool)
        if not monitored.all():
            batch.retain(monitored)

    def _changed_cells(self, batches: Sequence[Batch]) -> dict[BatchKey, WindowCells]:
        """Find the processed ticks of each batch with windows that are newer than its state."""
        if not batches:
            return {}
        ticks = TickRange(self.windows.base_s, self.tick_s, 0, max(batch.processed_until for batch in batches))
        oldest = min(batch.windows_version for batch in batches)
        cells = queries.changed_ticks(self.database, ticks, self.monitored, oldest)
        found = {}
        for batch in batches:
            own = cells[np.isin(cells["series"], batch.rows.ids)]
            found[batch.key] = own[(own["at"] < batch.processed_until) & (own["version"] > batch.windows_version)]
        return found

    def _rewind(
        self, batches: Sequence[Batch], changed: Mapping[BatchKey, WindowCells]
    ) -> tuple[list[Batch], int, int]:
        """Rewind batches to before their first changed tick; count the ticks to reprocess, and those that cannot be.

        A tick cannot be reprocessed if its windows are frozen or no checkpoint goes so far back.
        """
        reprocessed = too_late = 0
        found = []
        for batch in batches:
            cells = changed[batch.key]
            oldest = batch.processed_until - 2 * self.checkpoint_interval_s
            alive = cells[(cells["alive"] == 1) & (cells["at"] >= oldest)]
            past = None
            if len(alive):
                past = self.context.store.load_checkpoint(batch.key, int(alive["at"].min()), self.monitored)
            if past is not None:
                self._drop_unmonitored(past)
            rewound = len(alive) if past is not None else 0
            if not batch.key.is_rollout:  # each of their series is counted in its own batch
                reprocessed, too_late = reprocessed + rewound, too_late + len(cells) - rewound
            elif past is not None:
                re_add_after_rewind(past, batch, self.tick_s)
            found.append(past or batch)
        return found, reprocessed, too_late

    def _add_new_series(
        self,
        batches: Sequence[Batch],
        taken: Sequence[BatchKey],
        ends: Mapping[Lane, int],
        overrides: ReferenceOverrides,
    ) -> list[Batch]:
        """Return the batches with series that none of them has, in the last batch of a kind or in new ones."""
        found = list(batches)
        for (kind, lane), metrics in group_by_lane(self.monitored).items():
            if lane not in ends:
                continue
            group = [batch for batch in found if batch.key[:2] == (kind, lane)]
            first_begin = calendar.floor(ends[lane] - self.checkpoint_interval_s, self.tick_s)
            begin = min((batch.processed_until for batch in group), default=first_begin)
            first = begin if group else ends[lane] - calendar.DAY_S
            ticks = TickRange(self.windows.base_s, self.tick_s, first, ends[lane])
            if ticks.first >= ticks.end:
                continue
            known = [id_ for batch in group for id_ in batch.rows.ids.tolist()]
            ids = np.setdiff1d(queries.series_ids(self.database, ticks, metrics), np.array(known, np.uint64))
            new = {
                id_: one
                for id_, one in queries.load_series(self.database, ticks, metrics, ids).items()
                if self.settings.monitors(one.series.app, one.series.metric)
            }
            numbers = [key.number for key in (*taken, *(one.key for one in found)) if not key.is_rollout]
            number = max(numbers, default=-1) + 1
            for batch, some in _assign(BatchKey(kind, lane, number), group, new, begin, self.tick_s):
                # A new batch has baselines at once: of all series at first, or of those that a cut scan left over.
                batch.add(some, self.tick_s, known_before=batch not in group)
                batch.rows.baseline_source[:] = [overrides.baseline_source(series) for series in batch.series]
                found += [] if batch in group else [batch]
        return found


def _assign(
    key: BatchKey, group: Sequence[Batch], new: Mapping[int, NewSeries], begin: int, tick_s: int
) -> Iterator[tuple[Batch, dict[int, NewSeries]]]:
    """Assign new series to the last batch of the group while it has room, then to new batches from `key` on."""
    rest = list(new.items())
    if rest and group and (room := MAX_SERIES - len(group[-1].series)) > 0:
        yield group[-1], dict(rest[:room])
        rest = rest[room:]
    for nth, first in enumerate(range(0, len(rest), MAX_SERIES)):
        batch = Batch.empty(key._replace(number=key.number + nth), tick_s, begin)
        yield batch, dict(rest[first : first + MAX_SERIES])
