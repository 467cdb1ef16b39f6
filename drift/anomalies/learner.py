"""Learn the baselines of a batch from history without its anomalies, or from a pinned reference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ragtide.drift.anomalies import queries
from ragtide.drift.anomalies.batch import BaselineSet, Batch
from ragtide.drift.anomalies.cells import MAX_LABELS, Scale, replace_rows, to_windows
from ragtide.drift.anomalies.exclusions import before_accepted, excluded_ticks, without_recurring
from ragtide.drift.anomalies.known_times import KnownTimes
from ragtide.drift.anomalies.metrics import MonitoredMetric
from ragtide.drift.anomalies.queries import BIN_OFFSET, TickRange, WindowCells
from ragtide.drift.anomalies.references import FROM_HISTORY, BaselinePin, ReferenceOverrides
from ragtide.drift.anomalies.state_store import BaselineVersion
from ragtide.drift.array_types import Integers, Numbers
from ragtide.drift.detectors import (
    SEASONAL_DAYS,
    Baseline,
    WarmUp,
    Windows,
    exclude_windows,
    fit_baseline,
    quantile_bins,
    record_counts,
    relevel_baseline,
    select_series,
    serialization,
)
from ragtide.drift.rules import Series
from ragtide.drift.settings import DriftSettings, WindowSettings
from ragtide.drift.stats import calendar
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE

FULL_WEEK_S = 7 * calendar.DAY_S  # after an accepted change: hours and days of the week are known by then
_MAX_REFERENCE_S = 28 * calendar.DAY_S  # of a longer pin its end counts
_SEASONAL_S = SEASONAL_DAYS * calendar.DAY_S  # a shorter pin gives one level for all hours
_MAX_BINS = 10_000  # between the lowest and the highest value of a series


@dataclass(frozen=True, slots=True)
class BaselineLearner:
    """Learns baselines. `excluded_intervals`: when a series had a problem, [since, until) in seconds since 1970."""

    database: Database
    monitored: Mapping[str, MonitoredMetric]
    overrides: ReferenceOverrides
    excluded_intervals: Mapping[Series, Sequence[tuple[int, int]]]
    windows: WindowSettings
    settings: DriftSettings

    @property
    def tick_s(self) -> int:
        """Seconds of a tick."""
        return calendar.tick_size(self.windows.base_s)

    @property
    def history_s(self) -> int:
        """Seconds of history to learn from."""
        return self.settings.history_days * calendar.DAY_S

    @property
    def lateness_s(self) -> int:
        """Seconds after which late records no longer change windows; checkpoints are as far apart."""
        return calendar.checkpoint_interval(self.windows.allowed_lateness_s)

    def ticks(self, first: int, end: int) -> TickRange:
        """Ticks of live base windows."""
        return TickRange(self.windows.base_s, self.tick_s, first, end)

    def clock_changes(self, batch: Batch, since: int, until: int) -> list[int]:
        """Return the first ticks after the clock of any of the batch's applications changed in (since, until]."""
        found = KnownTimes.of(batch.series, self.settings).clock_changes(since, until + 1)
        return [calendar.ceil(at, self.tick_s) for at in found]

    def learn(self, batch: Batch, at: int, before: BaselineVersion | None) -> BaselineSet:
        """Learn the baselines of all series of the batch, as `learn_series` does."""
        return BaselineSet.of(batch.rows, *self.learn_series(batch, np.arange(len(batch.series)), at, before))

    def learn_series(
        self, batch: Batch, places: Integers, at: int, before: BaselineVersion | None
    ) -> tuple[Integers, Baseline]:
        """Learn the baselines of these series that apply from tick `at` on, and return their sources too.

        A pinned series whose reference is too small has history. A complete reference stays as it is in `before`.
        """
        basis = np.maximum(batch.rows.baseline_source[places], FROM_HISTORY)
        found = self._learn_from_history(batch, places, at).baseline
        for pin, pinned in self.overrides.places_by_pin(batch.series).items():
            rows = np.flatnonzero(np.isin(places, pinned))
            if len(rows):
                reference = self._learn_reference(batch, places[rows], pin, at, before)
                ready = np.flatnonzero(reference.warming == WarmUp.READY)
                found = replace_rows(found, rows[ready], serialization.take(reference, ready))
                basis[rows[ready]] = pin.baseline_source
        return basis, found

    def effective(self, fitted: BaselineSet, batch: Batch) -> Baseline:
        """Return the baselines of the batch with the tolerances of its applications' settings.

        Those of rollouts had them when they were copied.
        """
        found = fitted.aligned_to(batch).baseline
        factor = np.array([self.settings.of(series.app).margin for series in batch.series])
        if (factor == 1).all() or batch.key.is_rollout:
            return found
        return replace(found, margin=found.margin * factor[:, None, None], tolerance=found.tolerance * factor[:, None])

    def learn_from_pin(self, batch: Batch, places: Integers, pin: BaselinePin, at: int) -> Baseline:
        """Learn baselines of these series from a pinned reference.

        A reference shorter than a day gives the level alone; hours and noise are those of the history before `at`.
        """
        ticks = self.tick_range(pin)
        some, levels = self._load(batch, places, ticks, at)
        seasonal = pin.run_id == LIVE and ticks.end - ticks.first >= _SEASONAL_S
        found = fit_baseline(some, levels, seasonal=seasonal)
        short = np.flatnonzero((found.warming == WarmUp.READY) & (self._durations_s(some) < calendar.DAY_S))
        if not len(short):
            return found
        history = self._learn_from_history(batch, places[short], at)
        now = self._windows(batch, places[short], ticks, history.baseline.level_bins, at)
        return replace_rows(found, short, _releveled(history, now, WarmUp.LESS_THAN_A_DAY))

    def tick_range(self, pin: BaselinePin) -> TickRange:
        """Return the ticks of a pinned reference."""
        end = calendar.ceil(pin.until.timestamp(), self.tick_s)
        first = max(calendar.floor(pin.since.timestamp(), self.tick_s), end - _MAX_REFERENCE_S)
        return replace(self.ticks(first, max(end, first + 2 * self.tick_s)), run_id=pin.run_id)

    def _learn_reference(
        self, batch: Batch, places: Integers, pin: BaselinePin, at: int, before: BaselineVersion | None
    ) -> Baseline:
        if before is None:
            return self.learn_from_pin(batch, places, pin, at)
        last = before.baselines.aligned_to(batch)
        found = serialization.take(last.baseline, places)
        known = (found.warming == WarmUp.READY) & (last.baseline_source[places] == pin.baseline_source)
        if before.effective_from < pin.complete_at.timestamp() or self.clock_changes(batch, before.effective_from, at):
            fresh = self.learn_from_pin(batch, places, pin, at)
            rest = np.flatnonzero(~known | (fresh.warming == WarmUp.READY))
            return replace_rows(found, rest, serialization.take(fresh, rest))
        rest = np.flatnonzero(~known)
        if not len(rest):
            return found
        return replace_rows(found, rest, self.learn_from_pin(batch, places[rest], pin, at))

    def _learn_from_history(self, batch: Batch, places: Integers, at: int) -> "_TrainingResult":
        """Learn from the days before tick `at`; after an accepted change from the days since, once these are a week."""
        end = calendar.floor(at - self.lateness_s, self.tick_s)
        ticks = self.ticks(calendar.ceil(end - self.history_s, self.tick_s), end)
        some, levels = self._load(batch, places, ticks, at)
        basis, present = batch.rows.baseline_source[places], record_counts(some) > 0
        known = KnownTimes.of([batch.series[place] for place in places], self.settings)
        accepted = np.array([known.moved(nth, one, at) if one > 0 else one for nth, one in enumerate(basis.tolist())])
        before = before_accepted(accepted, ticks)
        anomalies = [
            (nth, known.moved(nth, since, at), known.moved(nth, until, at))
            for nth, since, until in self._anomalies(batch, places, end)
        ]
        excluded = excluded_ticks(anomalies, accepted, ticks, before, present)
        young = np.flatnonzero((basis > 0) & (basis > end - FULL_WEEK_S) & before.any(axis=1))
        past = exclude_windows(select_series(some, young), ~before[young] | excluded[young])
        some = exclude_windows(some, before | excluded)
        found = fit_baseline(some, levels)
        if len(young):
            old = _TrainingResult(fit_baseline(past, levels[young]), past)
            moved = _releveled(old, select_series(some, young))
            ready = np.flatnonzero(moved.warming == WarmUp.READY)
            found = replace_rows(found, young[ready], serialization.take(moved, ready))
        return _TrainingResult(found, some)

    def _anomalies(self, batch: Batch, places: Integers, end: int) -> list[tuple[int, int, int]]:
        """List alarms and problems of these series (index in `places`, since, until)."""
        index = {id_: nth for nth, id_ in enumerate(batch.rows.ids[places].tolist())}
        found = [
            (index[one.series], one.since, one.until or end)
            for one in without_recurring(batch.alarm_intervals)
            if one.series in index
        ]
        for nth, place in enumerate(places.tolist()):
            found += [(nth, *interval) for interval in self.excluded_intervals.get(batch.series[place], ())]
        return found

    def _load(self, batch: Batch, places: Integers, ticks: TickRange, at: int) -> tuple[Windows, Integers]:
        """Load windows to learn from, and choose what they count: channels of labels, and the bins [S, 2] returned."""
        levels = np.zeros((len(places), 2), np.int64)
        if batch.key.kind == "category":
            self._choose_labels(batch, places, ticks)
        elif batch.key.kind == "positive" and len(places):
            series, rows = [batch.series[place] for place in places], serialization.take(batch.rows, places)
            bins, place = rows.matching_version(queries.histograms(self.database, series, rows.ids, ticks.as_one_tick))
            for one in np.unique(place):
                levels[one] = _quantile_levels(bins[place == one])
        return self._windows(batch, places, ticks, levels, at), levels

    def _windows(self, batch: Batch, places: Integers, ticks: TickRange, bins: Numbers, at: int) -> Windows:
        """Load windows without known events, by the clocks of `at`."""
        known = KnownTimes.of([batch.series[place] for place in places], self.settings)
        return load_windows(self.database, self.monitored, batch, places, ticks, bins, known, at)

    def _durations_s(self, some: Windows) -> Integers:
        """Seconds from the first record to the last of each series [S]."""
        present = record_counts(some) > 0
        first, last = np.argmax(present, axis=1), present.shape[1] - np.argmax(present[:, ::-1], axis=1)
        found: Integers = (last - first) * self.tick_s
        return found

    def _choose_labels(self, batch: Batch, places: Integers, ticks: TickRange) -> None:
        """Give free channels to the most frequent labels without one. A label never loses its channel."""
        ids = batch.rows.ids[places]
        place_of = dict(zip(ids.tolist(), places.tolist(), strict=True))
        series = [batch.series[place] for place in places]
        for row in queries.frequent_labels(self.database, series, ids, ticks, MAX_LABELS):
            place = place_of[row["series"]]
            known = batch.labels[place]
            if row["label"] not in known and len(known) < MAX_LABELS:
                batch.rows.labels[place, len(known)] = row["hash"]
                known.append(row["label"])


class _TrainingResult(NamedTuple):
    """Baselines and the windows that they were learned from."""

    baseline: Baseline
    windows: Windows


def load_windows(
    database: Database,
    monitored: Mapping[str, MonitoredMetric],
    batch: Batch,
    places: Integers,
    ticks: TickRange,
    bins: Numbers,
    known: KnownTimes | None = None,
    at: int = 0,
) -> Windows:
    """Load windows of these series' own evaluator versions; positives are counted above `bins` [S, 2].

    With `known`, without known events, and by the clocks of `at`.
    """
    kind, series = batch.key.kind, [batch.series[place] for place in places]
    rows = serialization.take(batch.rows, places)
    levels = rows.labels if kind == "category" else bins
    cells = queries.window_cells(database, kind, monitored, series, rows.ids, levels, ticks)
    cells, place = rows.matching_version(cells)
    shifts = None
    if known is not None:
        kept = known.not_excluded(cells, place, ticks)
        cells, place = cells[kept], place[kept]
        shifts = known.shifts(cells, place, ticks, at)
    return to_windows(kind, cells, place, ticks.ticks, rows.labels, scale_of(monitored, series), shifts)


def scale_of(monitored: Mapping[str, MonitoredMetric], series: Sequence[Series]) -> Scale:
    """Return the lowest value and the range of each series."""
    metrics = [monitored[one.metric] for one in series]
    return Scale(np.array([one.low for one in metrics]), np.array([one.width for one in metrics]))


def _releveled(old: _TrainingResult, now: Windows, too_short: WarmUp | None = None) -> Baseline:
    """Return old baselines at the level of `now`; warming up if that has too few records or the old one was."""
    known = record_counts(old.windows).sum(axis=1)
    found, enough = relevel_baseline(old.baseline, now, known)
    was_ready = old.baseline.warming == WarmUp.READY
    why = old.baseline.warming if too_short is None else np.full_like(old.baseline.warming, too_short)
    warming = np.where(was_ready, np.where(enough, old.baseline.warming, WarmUp.TOO_FEW_RECORDS), why)
    active = found.active & (warming == WarmUp.READY)[:, None]
    return replace(found, warming=warming.astype(old.baseline.warming.dtype), active=active)


def _quantile_levels(bins: WindowCells) -> Numbers:
    """Return the bins that hold the quantiles of one series' records."""
    index = bins["label"].astype(np.int64) - BIN_OFFSET
    low = max(int(index.min()), int(index.max()) - _MAX_BINS)
    merged = np.bincount(np.maximum(index, low) - low, bins["n"].astype(np.float64))
    levels: Numbers = quantile_bins(merged[None])[0] + low
    return levels
