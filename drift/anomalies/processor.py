"""Takes a batch from tick to tick: baselines anew once a day, states kept to go back to. Deterministic.

Run in many pieces, with restarts and late windows between them, a batch ends as it would after one run over all of it.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ragtide.drift.anomalies import dispatch, queries
from ragtide.drift.anomalies.batch import Batch, BatchSnapshot, Fitted
from ragtide.drift.anomalies.learner import BaselineLearner
from ragtide.drift.anomalies.queries import TickRange, WindowCells
from ragtide.drift.anomalies.state_store import BaselineVersion, StateStore, checkpoint_slot
from ragtide.drift.detectors.arrays import Integers
from ragtide.drift.detectors.baseline import Baseline, WarmUp
from ragtide.drift.stats import calendar
from ragtide.sinks.clickhouse.database import Database

_AWAITING_S = 2 * calendar.DAY_S  # a baseline is learned anew each day anyway
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchProcessor:
    """Runs batches; `checkpoint_interval_s`: how often a state is kept to go back to. `saw` hears of each tick that was
    looked at.

    `stopped`: whether to leave off after the hour that a batch is at.
    """

    database: Database
    learner: BaselineLearner
    checkpoint_interval_s: int
    store: StateStore
    on_tick: Callable[[BatchSnapshot], None]
    stopped: Callable[[], bool]

    def advance(self, batch: Batch, end: int) -> Fitted:
        """The batch has looked at all ticks before `end`; by which baselines it is judged then. Not stored yet.

        Once `stopped`, at least its baselines are there, and `batch.until` says how far it is.
        """
        versions = self.store.load_baselines(batch.key, batch.processed_until)
        while True:
            now = self._baseline_for_tick(batch, versions)
            if batch.processed_until >= end or self.stopped():
                return now.baselines
            self._run(batch, now.baselines, min(end, self._next_stop(batch)))

    def rebase(self, batch: Batch, places: Integers) -> None:
        """Series of which people said what theirs rests on have baselines of that at once, and start anew."""
        versions = self.store.load_baselines(batch.key, batch.processed_until)
        if not versions:
            return
        last = versions[-1].baselines
        rests_on, fresh = self.learner.learn_series(batch, places, batch.processed_until, versions[-1])
        mixed, basis = last.baselines_for(batch.rows, batch.key.kind), last.baseline_sources_for(batch.rows)
        mixed, basis[places] = dispatch.replace_rows(mixed, places, fresh), rests_on
        batch.reset(places, mixed)
        fitted = Fitted(batch.rows.ids.copy(), batch.rows.fingerprint.copy(), basis, mixed)
        self.store.save_baseline(batch.key, BaselineVersion(versions[-1].effective_from, fitted))

    def awaiting_baseline(self, batch: Batch) -> Integers:
        """Series of which a change was accepted in the last days that have no baseline of it yet: at whole hours."""
        basis = batch.rows.basis
        young = (basis > 0) & (basis > batch.processed_until - _AWAITING_S)
        if not young.any() or batch.processed_until % calendar.HOUR_S >= self.learner.tick_s:
            return np.empty(0, np.int64)
        versions = self.store.load_baselines(batch.key, batch.processed_until)
        warming = (
            versions[-1].baselines.baselines_for(batch.rows, batch.key.kind).warming
            if versions
            else np.zeros(len(basis))
        )
        return np.flatnonzero(young & (warming != WarmUp.READY))

    def _next_stop(self, batch: Batch) -> int:
        """The end of the hour that the batch is at, or the tick from which other baselines hold."""
        tick_s = self.learner.tick_s
        hour = calendar.ceil(calendar.ceil(batch.processed_until + 1, calendar.HOUR_S), tick_s)
        return min(hour, calendar.next_fit(batch.key.number, batch.processed_until + 1, tick_s))

    def _baseline_for_tick(self, batch: Batch, versions: list[BaselineVersion]) -> BaselineVersion:
        """The baseline for the next tick; made, and added to those held, where it is time for it."""
        past = [one for one in versions if one.effective_from <= batch.processed_until]
        due = batch.processed_until == calendar.next_fit(batch.key.number, batch.processed_until, self.learner.tick_s)
        due = due and bool(batch.series)  # all of them may have gone for good
        due = due and not batch.key.is_rollout  # what they succeed is learned once
        if past and not (due and past[-1].effective_from != batch.processed_until):
            now, before = past[-1], past[-2] if len(past) > 1 else None
        else:
            before = past[-1] if past else None
            now = self._learn(batch, before)
            versions.append(now)
        if now.effective_from == batch.processed_until:
            self._reset_changed(batch, before, now)
        return now

    def _learn(self, batch: Batch, before: BaselineVersion | None) -> BaselineVersion:
        fitted = self.learner.learn(batch, batch.processed_until, before)
        made = BaselineVersion(batch.processed_until, fitted)
        kind, lane, number = batch.key
        logger.info("baselines of %d series are learned (%s, lane %s, batch %d)", len(batch.series), kind, lane, number)
        self.store.save_baseline(batch.key, made)
        return made

    def _reset_changed(self, batch: Batch, before: BaselineVersion | None, now: BaselineVersion) -> None:
        """Who was not watched before, or is not from now on, starts anew; who is gone for good goes."""
        after = now.baselines.baselines_for(batch.rows, batch.key.kind)
        anew = after.warming != WarmUp.READY
        if before is None:
            batch.reset(np.flatnonzero(anew), after)
            return
        anew |= before.baselines.baselines_for(batch.rows, batch.key.kind).warming != WarmUp.READY
        batch.reset(np.flatnonzero(anew), after)
        batch.retain((after.warming != WarmUp.NO_RECORDS) | (batch.rows.basis != 0))

    def _run(self, batch: Batch, fitted: Fitted, stop: int) -> None:
        if not batch.series:
            batch.processed_until = stop
            return
        learner, kind = self.learner, batch.key.kind
        span = TickRange(learner.base_s, learner.tick_s, batch.processed_until, stop)
        baseline = learner.effective(fitted, batch)
        levels = batch.rows.labels if kind == "category" else baseline.bins
        cells = queries.window_cells(self.database, kind, learner.monitored, batch.series, batch.rows.ids, levels, span)
        cells = cells[np.argsort(cells["at"], kind="stable")]
        borders = np.searchsorted(cells["at"], [*span.ticks, stop])
        for tick, first, last in zip(span.ticks, borders, borders[1:], strict=False):
            baseline = self._process_tick(batch, fitted, baseline, int(tick), cells[first:last])
            batch.processed_until = int(tick) + learner.tick_s
            if batch.processed_until // self.checkpoint_interval_s != int(tick) // self.checkpoint_interval_s:
                self.store.save(batch, checkpoint_slot(batch.processed_until, self.checkpoint_interval_s))
            self.on_tick(BatchSnapshot(batch, baseline))

    def _process_tick(
        self, batch: Batch, fitted: Fitted, baseline: Baseline, tick: int, cells: WindowCells
    ) -> Baseline:
        learner, kind = self.learner, batch.key.kind
        mine, switched = batch.match_versions(cells)
        if len(switched):
            baseline = learner.effective(fitted, batch)
            batch.reset(switched, baseline)
        cells = cells[mine]
        start = np.array([tick], np.int64)
        place = batch.places_of(cells["series"])
        some = dispatch.to_windows(
            kind, cells, place, len(batch.series), start, batch.rows.labels, learner.scale(batch.series)
        )
        before = batch.rows.state.alarms.on.copy()
        dispatch.run(baseline, batch.rows.state, some)
        batch.record_alarms(before, tick, learner.tick_s, tick - learner.history_s - learner.lateness_s)
        return baseline
