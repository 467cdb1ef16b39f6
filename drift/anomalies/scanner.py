"""Scan every series for changes up to its lane's watermark, from where its state ended.

A scan's context is the running system here; a backtest has its own."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import numpy as np

from ragtide.drift.anomalies import queries
from ragtide.drift.anomalies.batch import MOST_SERIES, Batch, BatchKey, BatchSnapshot
from ragtide.drift.anomalies.learner import BaselineLearner
from ragtide.drift.anomalies.metrics import MonitoredMetric, group_by_lane, monitored_metrics
from ragtide.drift.anomalies.processor import BatchProcessor
from ragtide.drift.anomalies.queries import NewSeries, TickRange, WindowCells
from ragtide.drift.anomalies.references import ReferenceOverrides, load_overrides, problem_intervals
from ragtide.drift.anomalies.rollouts import RolloutMonitor, re_add_after_rewind
from ragtide.drift.anomalies.state_store import NEWEST, ClickHouseStateStore, StateStore
from ragtide.drift.detectors.baseline import WarmUp
from ragtide.drift.job_history import StopRequested
from ragtide.drift.settings import DriftSettings, WindowSettings
from ragtide.drift.stats import calendar
from ragtide.drift.windows import watermark
from ragtide.evaluators.spec import Evaluator, Lane
from ragtide.sinks.clickhouse.database import Database


class ScanContext(Protocol):
    """How far lanes are closed, what people said, and where states are kept."""

    @property
    def store(self) -> StateStore:
        """States and baselines."""
        ...

    def closed_until(self, now: datetime) -> Mapping[str, datetime]:
        """Up to when windows of each lane are closed, of lanes that somebody runs."""
        ...

    def overrides(self, now: datetime) -> ReferenceOverrides:
        """All that people had said by then."""
        ...

    def on_tick(self, seen: BatchSnapshot) -> None:
        """A batch has looked at one more tick. It goes on with the next: what is to be kept of it is copied."""
        ...


@dataclass(frozen=True, slots=True)
class LiveContext:
    """Of the system that runs; `version()` says whose word it is (see `Term.next_version`)."""

    database: Database
    windows: WindowSettings
    version: Callable[[], int]

    @property
    def store(self) -> ClickHouseStateStore:
        """In the database."""
        return ClickHouseStateStore(self.database, self.version)

    def closed_until(self, now: datetime) -> Mapping[str, datetime]:
        """As roll-ups stored it."""
        return watermark.closed_until(self.database, self.windows, now)

    def overrides(self, now: datetime) -> ReferenceOverrides:
        """By now."""
        return load_overrides(self.database)

    def on_tick(self, seen: BatchSnapshot) -> None:
        """What is told is told of the end of a look."""


logger = logging.getLogger(__name__)
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ScanResult:
    """What a look found. `late` ticks had changed and were looked at again, `left` ones had changed too late for it.

    `rollouts` are series of models that are judged by the days of another one; those are among the `snapshots` too.
    """

    snapshots: tuple[BatchSnapshot, ...]
    reprocessed: int
    too_late: int
    rollouts: tuple[BatchSnapshot, ...] = ()

    @property
    def series(self) -> int:
        """How many are watched, or will be."""
        return sum(len(one.batch.series) for one in self.snapshots)

    @property
    def warming_up(self) -> int:
        """How many of them have too little history yet."""
        return sum(int((one.baseline.warming != WarmUp.READY).sum()) for one in self.snapshots)

    @property
    def alarms(self) -> int:
        """How many are in alarm."""
        return sum(int(one.batch.rows.state.alarms.on.sum()) for one in self.snapshots)


@dataclass(slots=True)
class Scanner:
    """Looks, and keeps what it has seen where its bearings say."""

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
        """All ticks that every lane has closed were looked at, and the states are stored, when this returns.

        `progress` is called after each of the batches, with how many are done and how many there are. `stopped` is
        asked between the hours of a batch: once it says so, raises `StopRequested` with the batch stored as far as it
        is.
        """
        ends = self._lane_ends(now)
        stored = self.context.store.load_batches(self.monitored)
        for batch in stored:
            self._drop_unmonitored(batch)
        batches = [batch for batch in stored if batch.key.lane in ends and batch.series]
        position = queries.newest_version(
            self.database, self.windows.base_s, min((batch.windows_version for batch in batches), default=0)
        )
        overrides = self.context.overrides(now)
        processor, rollout_monitor = self._processor(overrides, stopped), self._rollout_monitor(overrides)
        changed = self._changed_cells(batches)
        batches, reprocessed, too_late = self._rewind(batches, changed)
        touched = {key for key, cells in changed.items() if len(cells)}
        rollouts = [batch for batch in batches if batch.key.is_rollout]
        touched |= {batch.key for batch in rollouts if rollout_monitor.drop_finished(batch)}
        batches = [batch for batch in batches if not batch.key.is_rollout]
        for batch in batches:
            basis = np.array([overrides.baseline_source(series) for series in batch.series], np.int64)
            other = np.flatnonzero(basis != batch.rows.basis)
            batch.rows.basis[:] = basis
            other = np.union1d(other, processor.awaiting_baseline(batch))
            if len(other):
                processor.rebase(batch, other)
                touched.add(batch.key)
        batches = self._add_new_series(batches, [batch.key for batch in stored], ends, overrides)
        first_seen = {batch.key for batch in batches if not batch.windows_version}

        def advanced(some: Sequence[Batch], before: int = 0) -> Iterator[BatchSnapshot]:
            for done, batch in enumerate(some, start=before + 1):
                behind = batch.processed_until < ends[batch.key.lane]
                fitted = processor.advance(batch, ends[batch.key.lane])
                batch.windows_version = position
                if behind or batch.key in touched:
                    self.context.store.save(batch, NEWEST)
                if batch.series:  # all of them may be gone, or too new for their first baselines
                    yield BatchSnapshot(batch, processor.learner.effective(fitted, batch))
                progress(done, before + len(some))
                if stopped():
                    raise StopRequested(f"{done} of {before + len(some)} batches of series were looked at")

        snapshots = list(advanced(batches))
        rollouts = rollout_monitor.add_new(rollouts, snapshots, first_seen, {batch.key for batch in stored})
        if too_late:
            logger.warning("%d ticks changed after so long that detectors do not look at them again", too_late)
        return ScanResult(tuple(snapshots), reprocessed, too_late, tuple(advanced(rollouts, len(batches))))

    def _processor(self, overrides: ReferenceOverrides, stopped: Callable[[], bool]) -> BatchProcessor:
        learner = BaselineLearner(
            database=self.database,
            monitored=self.monitored,
            overrides=overrides,
            excluded_intervals=problem_intervals(self.database),
            base_s=self.windows.base_s,
            history_s=self.settings.history_days * calendar.DAY_S,
            lateness_s=self.checkpoint_interval_s,
            settings=self.settings,
        )
        return BatchProcessor(
            self.database, learner, self.checkpoint_interval_s, self.context.store, self.context.on_tick, stopped
        )

    def _rollout_monitor(self, overrides: ReferenceOverrides) -> RolloutMonitor:
        return RolloutMonitor(
            database=self.database,
            monitored=self.monitored,
            accepted_changes=overrides.accepted_changes.keys(),
            base_s=self.windows.base_s,
            history_s=self.settings.history_days * calendar.DAY_S,
            store=self.context.store,
        )

    def _lane_ends(self, now: datetime) -> dict[Lane, int]:
        """Up to which tick each lane is closed, of those that somebody runs."""
        lanes = {metric.lane for metric in self.monitored.values()}
        closed = self.context.closed_until(now)
        ends = {lane: calendar.floor(closed[lane].timestamp(), self.tick_s) for lane in lanes if lane in closed}
        return {lane: end for lane, end in ends.items() if end > calendar.DAY_S}

    def _drop_unmonitored(self, batch: Batch) -> None:
        """Series go whose application is watched no more, or not for that metric."""
        monitored = np.array([self.settings.monitors(one.app, one.metric) for one in batch.series], bool)
        if not monitored.all():
            batch.retain(monitored)

    def _changed_cells(self, batches: Sequence[Batch]) -> dict[BatchKey, WindowCells]:
        """Ticks of each batch with windows that are newer than when it looked at them."""
        if not batches:
            return {}
        span = TickRange(self.windows.base_s, self.tick_s, 0, max(batch.processed_until for batch in batches))
        cells = queries.changed_ticks(
            self.database, span, self.monitored, min(batch.windows_version for batch in batches)
        )
        found = {}
        for batch in batches:
            mine = cells[np.isin(cells["series"], batch.rows.ids)]
            found[batch.key] = mine[(mine["at"] < batch.processed_until) & (mine["version"] > batch.windows_version)]
        return found

    def _rewind(
        self, batches: Sequence[Batch], changed: Mapping[BatchKey, WindowCells]
    ) -> tuple[list[Batch], int, int]:
        """Batches as they were before the first tick that changed since they looked at it; ticks gone back to, and
        those that no state is kept for, or whose windows are frozen.
        """
        reprocessed = too_late = 0
        found = []
        for batch in batches:
            mine = changed[batch.key]
            alive = mine[(mine["alive"] == 1) & (mine["at"] >= batch.processed_until - 2 * self.checkpoint_interval_s)]
            past = (
                self.context.store.load_checkpoint(batch.key, int(alive["at"].min()), self.monitored)
                if len(alive)
                else None
            )
            if past is not None:
                self._drop_unmonitored(past)
            gone_back = len(alive) if past is not None else 0
            if not batch.key.is_rollout:  # each of their series is counted in its own batch
                reprocessed, too_late = reprocessed + gone_back, too_late + len(mine) - gone_back
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
        """The batches, and those of series that none of them has; nothing of them was looked at yet."""
        found = list(batches)
        for (kind, lane), metrics in group_by_lane(self.monitored).items():
            if lane not in ends:
                continue
            group = [batch for batch in found if batch.key[:2] == (kind, lane)]
            begin = min(
                (batch.processed_until for batch in group),
                default=calendar.floor(ends[lane] - self.checkpoint_interval_s, self.tick_s),
            )
            first = begin if group else ends[lane] - calendar.DAY_S
            span = TickRange(self.windows.base_s, self.tick_s, first, ends[lane])
            if span.first >= span.end:
                continue
            ids = queries.series_ids(self.database, span, metrics)
            ids = ids[~np.isin(ids, np.concatenate([batch.rows.ids for batch in group]))] if group else ids
            new = queries.load_series(self.database, span, metrics, ids) if len(ids) else {}
            new = {id_: one for id_, one in new.items() if self.settings.monitors(one.series.app, one.series.metric)}
            numbers = [key.number for key in (*taken, *(one.key for one in found)) if not key.is_rollout]
            number = max(numbers, default=-1) + 1
            for batch, some in self._assign_batches(BatchKey(kind, lane, number), group, new, begin):
                # A batch of their own has baselines at once: of all series at first, or where that was cut short.
                batch.add(some, self.tick_s, known_before=batch not in group)
                batch.rows.basis[:] = [overrides.baseline_source(series) for series in batch.series]
                found += [] if batch in group else [batch]
        return found

    def _assign_batches(
        self, key: BatchKey, group: list[Batch], new: Mapping[int, NewSeries], begin: int
    ) -> Iterator[tuple[Batch, dict[int, NewSeries]]]:
        """Newcomers by batch: the last one while it has room, then new ones from `key` on."""
        rest = list(new.items())
        if rest and group and (room := MOST_SERIES - len(group[-1].series)) > 0:
            yield group[-1], dict(rest[:room])
            rest = rest[room:]
        for first in range(0, len(rest), MOST_SERIES):
            new_key = key._replace(number=key.number + first // MOST_SERIES)
            yield Batch.empty(new_key, self.tick_s, begin, 0), dict(rest[first : first + MOST_SERIES])
