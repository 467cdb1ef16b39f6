"""Baselines of a batch: learned from history with what is known to be no example left out, or from what was pinned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ragtide.drift.anomalies import dispatch, queries
from ragtide.drift.anomalies.batch import Batch, Fitted, Rows
from ragtide.drift.anomalies.dispatch import MAX_LABELS, Scale
from ragtide.drift.anomalies.exclusions import without_recurring
from ragtide.drift.anomalies.metrics import MonitoredMetric
from ragtide.drift.anomalies.queries import BIN_OFFSET, TickRange, WindowCells
from ragtide.drift.anomalies.references import FROM_HISTORY, BaselinePin, ReferenceOverrides
from ragtide.drift.anomalies.state_store import BaselineVersion
from ragtide.drift.detectors import serialization
from ragtide.drift.detectors.arrays import Flags, Integers, Numbers, quantile_bins
from ragtide.drift.detectors.baseline import Baseline, WarmUp
from ragtide.drift.detectors.outlier_hours import MAX_OUTLIERS
from ragtide.drift.detectors.season import SEASONAL_DAYS
from ragtide.drift.rules.model import Series
from ragtide.drift.settings import DriftSettings
from ragtide.drift.stats import calendar
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE

_MAX_REFERENCE_S = 28 * calendar.DAY_S  # of what is pinned the end counts
_SEASONAL_S = SEASONAL_DAYS * calendar.DAY_S  # what is pinned of less has one level for all hours
FULL_WEEK_S = 7 * calendar.DAY_S  # after an accepted change: hours and days of the week are known by then
_MAX_EXCLUDED = 1 - MAX_OUTLIERS  # of a history: the little that is left then is what is odd in it
_MAX_BINS = 10_000  # between the least and the greatest value of a series


@dataclass(frozen=True)
class BaselineLearner:
    """Fits baselines. `left_out`: when a series was known to be in trouble, [since, until) in seconds since 1970."""

    database: Database
    monitored: Mapping[str, MonitoredMetric]
    overrides: ReferenceOverrides
    excluded_intervals: Mapping[Series, Sequence[tuple[int, int]]]
    base_s: int
    history_s: int
    lateness_s: int
    settings: DriftSettings = field(default_factory=DriftSettings)

    @cached_property
    def tick_s(self) -> int:
        """Seconds of a tick."""
        return calendar.tick_size(self.base_s)

    def learn(self, batch: Batch, at: int, before: BaselineVersion | None) -> Fitted:
        """Baselines of all series of the batch, as `learn_series` says."""
        basis, found = self.learn_series(batch, np.arange(len(batch.series)), at, before)
        return Fitted(batch.rows.ids.copy(), batch.rows.fingerprint.copy(), basis, found)

    def learn_series(
        self, batch: Batch, places: Integers, at: int, before: BaselineVersion | None
    ) -> tuple[Integers, Baseline]:
        """Baselines of these series that hold from tick `at` on, and what each rests on. From windows that no late
        record changes any more (to speak of).

        Where what was pinned does not tell enough of a series, its history does: else nobody would watch it. A complete
        reference stays as `before` has it.
        """
        basis = np.maximum(batch.rows.basis[places], FROM_HISTORY)
        found = self._learn_from_history(batch, places, at).baseline
        for pin, pinned in self.series_by_pin(batch).items():
            rows = np.flatnonzero(np.isin(places, pinned))
            if len(rows):
                reference = self._learn_reference(batch, places[rows], pin, at, before)
                ready = np.flatnonzero(reference.warming == WarmUp.READY)
                found = dispatch.replace_rows(found, rows[ready], serialization.take(reference, ready))
                basis[rows[ready]] = pin.baseline_source
        return basis, found

    def effective(self, fitted: Fitted, batch: Batch) -> Baseline:
        """The baselines of a batch as its series are judged by them: with the margins that settings ask for.

        Those of successors had them when they were taken over.
        """
        found = fitted.baselines_for(batch.rows, batch.key.kind)
        factor = np.array([self.settings.of(series.app).margin for series in batch.series])
        if (factor == 1).all() or batch.key.is_rollout:
            return found
        return replace(found, margin=found.margin * factor[:, None, None], near=found.near * factor[:, None])

    def series_by_pin(self, batch: Batch) -> dict[BaselinePin, Integers]:
        """Where the series stand for which a pin holds, by pin."""
        found: dict[BaselinePin, list[int]] = {}
        for place, series in enumerate(batch.series):
            pin = self.overrides.pin_of(series)
            if pin is not None:
                found.setdefault(pin, []).append(place)
        return {pin: np.array(places) for pin, places in found.items()}

    def learn_from_pin(self, batch: Batch, places: Integers, pin: BaselinePin, at: int) -> Baseline:
        """Baselines of these series by what was pinned, whichever pin holds for them.

        Of less than a day nobody knows the other hours: those, and the noise, are of the history until `at`.
        """
        span = self.tick_range(pin)
        some, levels = self._load_windows(batch, places, span)
        seasonal = pin.run_id == LIVE and len(span.ticks) * span.tick_s >= _SEASONAL_S
        found = dispatch.fit(some, levels if batch.key.kind == "positive" else None, seasonal)
        short = np.flatnonzero((found.warming == WarmUp.READY) & (self._durations_s(some) < calendar.DAY_S))
        if not len(short):
            return found
        history = self._learn_from_history(batch, places[short], at)
        now, _ = self._load_windows(batch, places[short], span, history.baseline.bins)
        return dispatch.replace_rows(found, short, _releveled(history, now, WarmUp.LESS_THAN_A_DAY))

    def tick_range(self, pin: BaselinePin) -> TickRange:
        """The windows of the reference."""
        end = calendar.ceil(pin.until.timestamp(), self.tick_s)
        first = max(calendar.floor(pin.since.timestamp(), self.tick_s), end - _MAX_REFERENCE_S)
        return TickRange(self.base_s, self.tick_s, first, max(end, first + 2 * self.tick_s), pin.run_id)

    def scale(self, series: Sequence[Series]) -> Scale:
        """Lowest value and range of each."""
        watches = [self.monitored[one.metric] for one in series]
        return Scale(np.array([one.low for one in watches]), np.array([one.span for one in watches]))

    def _learn_reference(
        self, batch: Batch, places: Integers, pin: BaselinePin, at: int, before: BaselineVersion | None
    ) -> Baseline:
        if before is None:
            return self.learn_from_pin(batch, places, pin, at)
        rows = serialization.take(batch.rows, places)
        found = before.baselines.baselines_for(rows, batch.key.kind)
        held = (found.warming == WarmUp.READY) & (before.baselines.baseline_sources_for(rows) == pin.baseline_source)
        if before.effective_from < pin.complete_at.timestamp():
            fresh = self.learn_from_pin(batch, places, pin, at)
            rest = np.flatnonzero(~held | (fresh.warming == WarmUp.READY))
            return dispatch.replace_rows(found, rest, serialization.take(fresh, rest))
        rest = np.flatnonzero(~held)
        return (
            dispatch.replace_rows(found, rest, self.learn_from_pin(batch, places[rest], pin, at))
            if len(rest)
            else found
        )

    def _learn_from_history(self, batch: Batch, places: Integers, at: int) -> "_TrainingResult":
        """By the days before tick `at`, and after an accepted change by its days alone as soon as those are a week."""
        end = calendar.floor(at - self.lateness_s, self.tick_s)
        span = TickRange(self.base_s, self.tick_s, calendar.ceil(end - self.history_s, self.tick_s), end)
        kind = batch.key.kind
        some, levels = self._load_windows(batch, places, span)
        before, excluded = self._exclusions(batch, places, span, dispatch.has_records(some))
        known = levels if kind == "positive" else None
        basis = batch.rows.basis[places]
        young = np.flatnonzero((basis > 0) & (basis > end - FULL_WEEK_S) & before.any(axis=1))
        past = dispatch.exclude(kind, dispatch.select_series(some, young), ~before[young] | excluded[young])
        some = dispatch.exclude(kind, some, before | excluded)
        found = dispatch.fit(some, known, seasonal=True)
        if len(young):
            old = _TrainingResult(dispatch.fit(past, None if known is None else known[young], seasonal=True), past)
            moved = _releveled(old, dispatch.select_series(some, young))
            ready = np.flatnonzero(moved.warming == WarmUp.READY)
            found = dispatch.replace_rows(found, young[ready], serialization.take(moved, ready))
        return _TrainingResult(found, some)

    def _load_windows(
        self, batch: Batch, places: Integers, span: TickRange, bins: Numbers | None = None
    ) -> tuple[dispatch.Windows, Numbers]:
        """Those of these series' own fingerprints, and the levels that they are counted by: `bins` where given."""
        series, rows = [batch.series[place] for place in places], serialization.take(batch.rows, places)
        levels = self._counting_levels(batch, places, series, rows, span) if bins is None else bins
        levels = batch.rows.labels[places] if batch.key.kind == "category" else levels
        cells = queries.window_cells(self.database, batch.key.kind, self.monitored, series, rows.ids, levels, span)
        cells, place = matching_version(cells, rows)
        labels, scale = batch.rows.labels[places], self.scale(series)
        return dispatch.to_windows(batch.key.kind, cells, place, len(series), span.ticks, labels, scale), levels

    def _durations_s(self, some: dispatch.Windows) -> Integers:
        """Seconds from the first record to the last of each series [S]."""
        present = dispatch.has_records(some)
        first, last = np.argmax(present, axis=1), present.shape[1] - np.argmax(present[:, ::-1], axis=1)
        found: Integers = (last - first) * self.tick_s
        return found

    def _counting_levels(
        self, batch: Batch, places: Integers, series: Sequence[Series], rows: Rows, span: TickRange
    ) -> Numbers:
        """What cells are counted by: bins of positives; of categories the labels, which are chosen here."""
        if batch.key.kind == "category":
            self._choose_labels(batch, places, span)
            return batch.rows.labels[places]
        levels = np.zeros((len(series), 2), np.int64)
        if batch.key.kind == "positive" and len(series):
            bins, place = matching_version(queries.merged_bins(self.database, series, rows.ids, span), rows)
            for one in np.unique(place):
                levels[one] = _quantile_levels(bins[place == one])
        return levels

    def _choose_labels(self, batch: Batch, places: Integers, span: TickRange) -> None:
        """A label keeps its channel once it has one; the most frequent of the others get what is free."""
        place_of = dict(zip(batch.rows.ids[places].tolist(), places.tolist(), strict=True))
        series = [batch.series[place] for place in places]
        for row in queries.frequent_labels(self.database, series, batch.rows.ids[places], span, MAX_LABELS):
            place = place_of[row["series"]]
            known = batch.labels[place]
            if row["label"] not in known and len(known) < MAX_LABELS:
                batch.rows.labels[place, len(known)] = row["hash"]
                known.append(row["label"])

    def _exclusions(self, batch: Batch, places: Integers, span: TickRange, present: Flags) -> tuple[Flags, Flags]:
        """Ticks [S, T] before a series was accepted as it is now, and those in which it was in trouble.

        Trouble in nearly all that was `has_records` since then is how the series is: it would never be watched
        otherwise.
        """
        ids, basis = batch.rows.ids[places].tolist(), batch.rows.basis[places]
        excluded, before = np.zeros(present.shape, bool), np.zeros(present.shape, bool)
        for place in np.flatnonzero(basis > 0).tolist():
            begins = (calendar.ceil(int(basis[place]), self.tick_s) - span.first) // self.tick_s
            before[place, : max(begins, 0)] = True
        place_of = {id_: place for place, id_ in enumerate(ids)}
        known = [
            (place_of[one.series], one.since, one.until or span.end)
            for one in without_recurring(batch.alarm_intervals)
            if one.series in place_of
        ]
        for place, at in enumerate(places.tolist()):
            known += [(place, *time) for time in self.excluded_intervals.get(batch.series[at], ())]
        for place, since, until in known:
            if not since <= basis[place] < until:  # what was accepted is an example again
                first, last = ((at - span.first) // self.tick_s for at in (since, until + self.tick_s - 1))
                excluded[place, max(first, 0) : max(last, 0)] = True
        since_then = present & ~before
        stands = (excluded & since_then).sum(axis=1) > _MAX_EXCLUDED * since_then.sum(axis=1)
        return before, excluded & (before | ~stands[:, None])


class _TrainingResult(NamedTuple):
    """Baselines and the windows that they were learned from."""

    baseline: Baseline
    windows: dispatch.Windows


def _releveled(old: _TrainingResult, now: dispatch.Windows, too_short: WarmUp | None = None) -> Baseline:
    """Old baselines at the level of `now`; not watched where that has too few records, or the old one was not."""
    known = dispatch.record_counts(old.windows).sum(axis=1)
    found, enough = dispatch.relevel(old.baseline, now, known)
    was_watched = old.baseline.warming == WarmUp.READY
    why = old.baseline.warming if too_short is None else np.full_like(old.baseline.warming, too_short)
    warming = np.where(was_watched, np.where(enough, old.baseline.warming, WarmUp.TOO_FEW_RECORDS), why)
    active = found.active & (warming == WarmUp.READY)[:, None]
    return replace(found, warming=warming.astype(old.baseline.warming.dtype), active=active)


def matching_version(cells: WindowCells, rows: Rows) -> tuple[WindowCells, Numbers]:
    """Cells of these series' own fingerprints, and where the series of each stands."""
    order = np.argsort(rows.ids)
    place = order[np.searchsorted(rows.ids, cells["series"], sorter=order)]
    mine = cells["fingerprint"] == rows.fingerprint[place]
    return cells[mine], place[mine]


def _quantile_levels(bins: WindowCells) -> Numbers:
    """The bins that hold the quantiles of one series' records."""
    index = bins["at"].astype(np.int64) - BIN_OFFSET
    low = max(int(index.min()), int(index.max()) - _MAX_BINS)
    merged = np.bincount(np.maximum(index, low) - low, bins["n"].astype(np.float64))
    levels: Numbers = quantile_bins(merged[None])[0] + low
    return levels
