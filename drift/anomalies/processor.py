"""Run detectors over a batch tick by tick, with new baselines once a day and checkpoints to rewind to.

Deterministic: many small runs with restarts and late windows leave what one run over everything leaves."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ragtide.drift.anomalies import queries
from ragtide.drift.anomalies.batch import BaselineSet, Batch, BatchSnapshot
from ragtide.drift.anomalies.cells import replace_rows, to_windows
from ragtide.drift.anomalies.known_times import KnownTimes
from ragtide.drift.anomalies.learner import BaselineLearner, scale_of
from ragtide.drift.anomalies.queries import WindowCells
from ragtide.drift.anomalies.state_store import BaselineVersion, StateStore, checkpoint_slot
from ragtide.drift.array_types import Integers
from ragtide.drift.detectors import Baseline, WarmUp, run_detector
from ragtide.drift.stats import calendar

_AWAITING_S = 2 * calendar.DAY_S  # a baseline is learned anew each day anyway
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchProcessor:
    """Runs batches. Calls `on_tick` after each tick, and asks `stopped` after each hour of a batch."""

    learner: BaselineLearner
    store: StateStore
    on_tick: Callable[[BatchSnapshot], None]
    stopped: Callable[[], bool]

    def advance(self, batch: Batch, end: int) -> BaselineSet:
        """Process all ticks before `end`, and return the baselines at the end. The batch is not stored yet.

        Once `stopped`, at least its baselines are there, and `batch.processed_until` says how far it is.
        """
        versions = self._versions(batch)
        while True:
            now = self._baseline_for_tick(batch, versions)
            if batch.processed_until >= end or self.stopped():
                return now.baselines
            self._run(batch, now.baselines, min(end, self._next_stop(batch)))

    def rebase(self, batch: Batch, places: Integers) -> None:
        """Learn new baselines at once for series whose source an operator changed, and start them anew."""
        versions = self._versions(batch)
        if not versions:
            return
        last = versions[-1]
        basis, fresh = self.learner.learn_series(batch, places, batch.processed_until, last)
        before = last.baselines.aligned_to(batch)
        before.baseline_source[places] = basis
        rebased = replace(before, baseline=replace_rows(before.baseline, places, fresh))
        batch.reset(places, rebased.baseline)
        self._save(batch, last._replace(baselines=rebased))

    def awaiting_baseline(self, batch: Batch) -> Integers:
        """Find series without a baseline of a change that was accepted in the last days; at whole hours only."""
        basis = batch.rows.baseline_source
        young = (basis > 0) & (basis > batch.processed_until - _AWAITING_S)
        due = young.any() and batch.processed_until % calendar.HOUR_S < self.learner.tick_s
        versions = self._versions(batch) if due else []
        if not versions:
            return np.empty(0, np.int64)
        return np.flatnonzero(young & (versions[-1].baselines.aligned_to(batch).baseline.warming != WarmUp.READY))

    def _versions(self, batch: Batch) -> list[BaselineVersion]:
        return self.store.load_baselines(batch.key, batch.processed_until)

    def _next_stop(self, batch: Batch) -> int:
        """Return the end of the batch's hour, or the tick from which other baselines apply."""
        tick_s = self.learner.tick_s
        hour = calendar.ceil(calendar.ceil(batch.processed_until + 1, calendar.HOUR_S), tick_s)
        changes = self.learner.clock_changes(batch, batch.processed_until, hour - 1)
        return min(hour, calendar.next_fit(batch.key.number, batch.processed_until + 1, tick_s), *changes)

    def _baseline_for_tick(self, batch: Batch, versions: list[BaselineVersion]) -> BaselineVersion:
        """Return the baseline for the next tick. If one is due, learn it and add it to the versions."""
        tick = batch.processed_until
        past = [one for one in versions if one.effective_from <= tick]
        tick_s = self.learner.tick_s
        due = tick == calendar.next_fit(batch.key.number, tick, tick_s)
        due = due or tick in self.learner.clock_changes(batch, tick - tick_s, tick)
        due = due and bool(batch.series)  # all of them may be gone
        due = due and not batch.key.is_rollout  # a rollout's are copied once
        if not past or (due and past[-1].effective_from != tick):
            learned = self._learn(batch, past[-1] if past else None)
            versions.append(learned)
            past.append(learned)
        if past[-1].effective_from == tick:
            self._reset_changed(batch, past[-2] if len(past) > 1 else None, past[-1])
        return past[-1]

    def _learn(self, batch: Batch, before: BaselineVersion | None) -> BaselineVersion:
        learned = BaselineVersion(batch.processed_until, self.learner.learn(batch, batch.processed_until, before))
        kind, lane, number = batch.key
        logger.info("learned baselines of %d series (%s, lane %s, batch %d)", len(batch.series), kind, lane, number)
        self._save(batch, learned)
        return learned

    def _save(self, batch: Batch, version: BaselineVersion) -> None:
        self.store.save_baseline(batch.key, version)
        self.store.save_expected_levels(batch, version, self.learner.monitored)

    def _reset_changed(self, batch: Batch, before: BaselineVersion | None, now: BaselineVersion) -> None:
        """Start series anew that were not ready before, or are not from now on; drop those without any history."""
        after = now.baselines.aligned_to(batch).baseline
        anew = after.warming != WarmUp.READY
        if before is not None:
            anew |= before.baselines.aligned_to(batch).baseline.warming != WarmUp.READY
        batch.reset(np.flatnonzero(anew), after)
        if before is not None:
            batch.retain((after.warming != WarmUp.NO_RECORDS) | (batch.rows.baseline_source != 0))

    def _run(self, batch: Batch, fitted: BaselineSet, stop: int) -> None:
        if not batch.series:
            batch.processed_until = stop
            return
        learner, kind = self.learner, batch.key.kind
        ticks, every_s = learner.ticks(batch.processed_until, stop), learner.lateness_s
        baseline = learner.effective(fitted, batch)
        levels = batch.rows.labels if kind == "category" else baseline.level_bins
        cells = queries.window_cells(
            learner.database, kind, learner.monitored, batch.series, batch.rows.ids, levels, ticks
        )
        cells = cells[KnownTimes.of(batch.series, learner.settings).not_excluded(cells, batch.places_of(cells), ticks)]
        cells = cells[np.argsort(cells["at"], kind="stable")]
        borders = np.searchsorted(cells["at"], [*ticks.ticks, stop])
        for tick, first, last in zip(ticks.ticks.tolist(), borders, borders[1:], strict=False):
            baseline = self._process_tick(batch, fitted, baseline, tick, cells[first:last])
            batch.processed_until = tick + learner.tick_s
            if batch.processed_until // every_s != tick // every_s:
                self.store.save(batch, checkpoint_slot(batch.processed_until, every_s))
            self.on_tick(BatchSnapshot(batch, baseline))

    def _process_tick(
        self, batch: Batch, fitted: BaselineSet, baseline: Baseline, tick: int, cells: WindowCells
    ) -> Baseline:
        learner = self.learner
        cells, place, switched = batch.match_versions(cells)
        if len(switched):
            baseline = learner.effective(fitted, batch)
            batch.reset(switched, baseline)
        scale, start = scale_of(learner.monitored, batch.series), np.array([tick], np.int64)
        some = to_windows(batch.key.kind, cells, place, start, batch.rows.labels, scale)
        before = batch.rows.state.alarms.on.copy()
        run_detector(baseline, batch.rows.state, some)
        batch.record_alarms(before, tick, learner.tick_s, tick - learner.history_s - learner.lateness_s)
        return baseline
