"""Baselines of a batch: learned from history with what is known to be no example left out, or from what was pinned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from drift.detectors import stored
from drift.detectors.baseline import Baseline, Warming
from drift.detectors.incidents import MOST_INCIDENTS
from drift.detectors.season import SEASONAL_DAYS
from drift.detectors.series import Flags, Integers, Numbers, quantile_bins
from drift.rules.series import Series
from drift.settings import DriftSettings
from drift.watching import detecting, grid, reading
from drift.watching.batch import Batch, Fitted, Rows
from drift.watching.detecting import LABELS, Scale
from drift.watching.habits import passing
from drift.watching.kept import Held
from drift.watching.kinds import Watch
from drift.watching.reading import BIN_OFFSET, Cells, Span
from drift.watching.reference import HISTORY, Pin, References
from sinks.clickhouse.database import Database
from sinks.rows import LIVE

_LONGEST_REFERENCE_S = 28 * grid.DAY_S  # of what is pinned the end counts
_SEASONAL_S = SEASONAL_DAYS * grid.DAY_S  # what is pinned of less has one level for all hours
WHOLE_S = 7 * grid.DAY_S  # after an accepted change: hours and days of the week are known by then
_MOST_TROUBLE = 1 - MOST_INCIDENTS  # of a history: the little that is left then is what is odd in it
_FEW_BINS = 10_000  # between the least and the greatest value of a series


@dataclass(frozen=True)
class Fitter:
    """Fits baselines. `left_out`: when a series was known to be in trouble, [since, until) in seconds since 1970."""

    database: Database
    watched: Mapping[str, Watch]
    references: References
    left_out: Mapping[Series, Sequence[tuple[int, int]]]
    base_s: int
    history_s: int
    lateness_s: int
    settings: DriftSettings = field(default_factory=DriftSettings)

    @cached_property
    def tick_s(self) -> int:
        """Seconds of a tick."""
        return grid.tick_s(self.base_s)

    def fit(self, batch: Batch, at: int, before: Held | None) -> Fitted:
        """Baselines of all series of the batch, as `baselines` says."""
        basis, found = self.baselines(batch, np.arange(len(batch.series)), at, before)
        return Fitted(batch.rows.ids.copy(), batch.rows.fingerprint.copy(), basis, found)

    def baselines(self, batch: Batch, places: Integers, at: int, before: Held | None) -> tuple[Integers, Baseline]:
        """Baselines of these series that hold from tick `at` on, and what each rests on. From windows that no late
        record changes any more (to speak of).

        Where what was pinned does not tell enough of a series, its history does: else nobody would watch it. A complete
        reference stays as `before` has it.
        """
        basis = np.maximum(batch.rows.basis[places], HISTORY)
        found = self._of_history(batch, places, at).baseline
        for pin, pinned in self.pinned(batch).items():
            rows = np.flatnonzero(np.isin(places, pinned))
            if len(rows):
                reference = self._reference(batch, places[rows], pin, at, before)
                told = np.flatnonzero(reference.warming == Warming.WATCHED)
                found = detecting.replaced(found, rows[told], stored.take(reference, told))
                basis[rows[told]] = pin.basis
        return basis, found

    def judging(self, fitted: Fitted, batch: Batch) -> Baseline:
        """The baselines of a batch as its series are judged by them: with the margins that settings ask for.

        Those of successors had them when they were taken over.
        """
        found = fitted.matched(batch.rows, batch.key.kind)
        factor = np.array([self.settings.of(series.app).margin for series in batch.series])
        if (factor == 1).all() or batch.key.of_successors:
            return found
        return replace(found, margin=found.margin * factor[:, None, None], near=found.near * factor[:, None])

    def pinned(self, batch: Batch) -> dict[Pin, Integers]:
        """Where the series stand for which a pin holds, by pin."""
        found: dict[Pin, list[int]] = {}
        for place, series in enumerate(batch.series):
            pin = self.references.pin_of(series)
            if pin is not None:
                found.setdefault(pin, []).append(place)
        return {pin: np.array(places) for pin, places in found.items()}

    def by_pin(self, batch: Batch, places: Integers, pin: Pin, at: int) -> Baseline:
        """Baselines of these series by what was pinned, whichever pin holds for them.

        Of less than a day nobody knows the other hours: those, and the noise, are of the history until `at`.
        """
        span = self.span(pin)
        some, levels = self._windows(batch, places, span)
        seasonal = pin.run_id == LIVE and len(span.ticks) * span.tick_s >= _SEASONAL_S
        found = detecting.fit(some, levels if batch.key.kind == "positive" else None, seasonal)
        short = np.flatnonzero((found.warming == Warming.WATCHED) & (self._lasts(some) < grid.DAY_S))
        if not len(short):
            return found
        history = self._of_history(batch, places[short], at)
        now, _ = self._windows(batch, places[short], span, history.baseline.bins)
        return detecting.replaced(found, short, _moved(history, now, Warming.LESS_THAN_A_DAY))

    def span(self, pin: Pin) -> Span:
        """The windows of the reference."""
        end = grid.ceiling(pin.until.timestamp(), self.tick_s)
        first = max(grid.floor(pin.since.timestamp(), self.tick_s), end - _LONGEST_REFERENCE_S)
        return Span(self.base_s, self.tick_s, first, max(end, first + 2 * self.tick_s), pin.run_id)

    def scale(self, series: Sequence[Series]) -> Scale:
        """Lowest value and range of each."""
        watches = [self.watched[one.metric] for one in series]
        return Scale(np.array([one.low for one in watches]), np.array([one.span for one in watches]))

    def _reference(self, batch: Batch, places: Integers, pin: Pin, at: int, before: Held | None) -> Baseline:
        if before is None:
            return self.by_pin(batch, places, pin, at)
        rows = stored.take(batch.rows, places)
        found = before.fitted.matched(rows, batch.key.kind)
        held = (found.warming == Warming.WATCHED) & (before.fitted.basis_of(rows) == pin.basis)
        if before.holds_from < pin.complete_at.timestamp():
            fresh = self.by_pin(batch, places, pin, at)
            rest = np.flatnonzero(~held | (fresh.warming == Warming.WATCHED))
            return detecting.replaced(found, rest, stored.take(fresh, rest))
        rest = np.flatnonzero(~held)
        return detecting.replaced(found, rest, self.by_pin(batch, places[rest], pin, at)) if len(rest) else found

    def _of_history(self, batch: Batch, places: Integers, at: int) -> "_Learned":
        """By the days before tick `at`, and after an accepted change by its days alone as soon as those are a week."""
        end = grid.floor(at - self.lateness_s, self.tick_s)
        span = Span(self.base_s, self.tick_s, grid.ceiling(end - self.history_s, self.tick_s), end)
        kind = batch.key.kind
        some, levels = self._windows(batch, places, span)
        before, trouble = self._no_example(batch, places, span, detecting.seen(some))
        known = levels if kind == "positive" else None
        basis = batch.rows.basis[places]
        young = np.flatnonzero((basis > 0) & (basis > end - WHOLE_S) & before.any(axis=1))
        past = detecting.without(kind, detecting.rows(some, young), ~before[young] | trouble[young])
        some = detecting.without(kind, some, before | trouble)
        found = detecting.fit(some, known, seasonal=True)
        if len(young):
            old = _Learned(detecting.fit(past, None if known is None else known[young], seasonal=True), past)
            moved = _moved(old, detecting.rows(some, young))
            told = np.flatnonzero(moved.warming == Warming.WATCHED)
            found = detecting.replaced(found, young[told], stored.take(moved, told))
        return _Learned(found, some)

    def _windows(
        self, batch: Batch, places: Integers, span: Span, bins: Numbers | None = None
    ) -> tuple[detecting.Windows, Numbers]:
        """Those of these series' own fingerprints, and the levels that they are counted by: `bins` where given."""
        series, rows = [batch.series[place] for place in places], stored.take(batch.rows, places)
        levels = self._levels(batch, places, series, rows, span) if bins is None else bins
        levels = batch.rows.labels[places] if batch.key.kind == "category" else levels
        cells = reading.cells(self.database, batch.key.kind, self.watched, series, rows.ids, levels, span)
        cells, place = own(cells, rows)
        labels, scale = batch.rows.labels[places], self.scale(series)
        return detecting.windows(batch.key.kind, cells, place, len(series), span.ticks, labels, scale), levels

    def _lasts(self, some: detecting.Windows) -> Integers:
        """Seconds from the first record to the last of each series [S]."""
        seen = detecting.seen(some)
        first, last = np.argmax(seen, axis=1), seen.shape[1] - np.argmax(seen[:, ::-1], axis=1)
        found: Integers = (last - first) * self.tick_s
        return found

    def _levels(self, batch: Batch, places: Integers, series: Sequence[Series], rows: Rows, span: Span) -> Numbers:
        """What cells are counted by: bins of positives; of categories the labels, which are chosen here."""
        if batch.key.kind == "category":
            self._choose_labels(batch, places, span)
            return batch.rows.labels[places]
        levels = np.zeros((len(series), 2), np.int64)
        if batch.key.kind == "positive" and len(series):
            bins, place = own(reading.merged_bins(self.database, series, rows.ids, span), rows)
            for one in np.unique(place):
                levels[one] = _quantiles(bins[place == one])
        return levels

    def _choose_labels(self, batch: Batch, places: Integers, span: Span) -> None:
        """A label keeps its channel once it has one; the most frequent of the others get what is free."""
        place_of = dict(zip(batch.rows.ids[places].tolist(), places.tolist(), strict=True))
        series = [batch.series[place] for place in places]
        for row in reading.labels(self.database, series, batch.rows.ids[places], span, LABELS):
            place = place_of[row["series"]]
            known = batch.labels[place]
            if row["label"] not in known and len(known) < LABELS:
                batch.rows.labels[place, len(known)] = row["hash"]
                known.append(row["label"])

    def _no_example(self, batch: Batch, places: Integers, span: Span, seen: Flags) -> tuple[Flags, Flags]:
        """Ticks [S, T] before a series was accepted as it is now, and those in which it was in trouble.

        Trouble in nearly all that was `seen` since then is how the series is: it would never be watched otherwise.
        """
        ids, basis = batch.rows.ids[places].tolist(), batch.rows.basis[places]
        trouble, before = np.zeros(seen.shape, bool), np.zeros(seen.shape, bool)
        for place in np.flatnonzero(basis > 0).tolist():
            begins = (grid.ceiling(int(basis[place]), self.tick_s) - span.first) // self.tick_s
            before[place, : max(begins, 0)] = True
        place_of = {id_: place for place, id_ in enumerate(ids)}
        known = [
            (place_of[one.series], one.since, one.until or span.end)
            for one in passing(batch.episodes)
            if one.series in place_of
        ]
        for place, at in enumerate(places.tolist()):
            known += [(place, *time) for time in self.left_out.get(batch.series[at], ())]
        for place, since, until in known:
            if not since <= basis[place] < until:  # what was accepted is an example again
                first, last = ((at - span.first) // self.tick_s for at in (since, until + self.tick_s - 1))
                trouble[place, max(first, 0) : max(last, 0)] = True
        since_then = seen & ~before
        stands = (trouble & since_then).sum(axis=1) > _MOST_TROUBLE * since_then.sum(axis=1)
        return before, trouble & (before | ~stands[:, None])


class _Learned(NamedTuple):
    """Baselines and the windows that they were learned from."""

    baseline: Baseline
    windows: detecting.Windows


def _moved(old: _Learned, now: detecting.Windows, too_short: Warming | None = None) -> Baseline:
    """Old baselines at the level of `now`; not watched where that has too few records, or the old one was not."""
    known = detecting.records(old.windows).sum(axis=1)
    found, enough = detecting.moved(old.baseline, now, known)
    was_watched = old.baseline.warming == Warming.WATCHED
    why = old.baseline.warming if too_short is None else np.full_like(old.baseline.warming, too_short)
    warming = np.where(was_watched, np.where(enough, old.baseline.warming, Warming.TOO_FEW_RECORDS), why)
    active = found.active & (warming == Warming.WATCHED)[:, None]
    return replace(found, warming=warming.astype(old.baseline.warming.dtype), active=active)


def own(cells: Cells, rows: Rows) -> tuple[Cells, Numbers]:
    """Cells of these series' own fingerprints, and where the series of each stands."""
    order = np.argsort(rows.ids)
    place = order[np.searchsorted(rows.ids, cells["series"], sorter=order)]
    mine = cells["fingerprint"] == rows.fingerprint[place]
    return cells[mine], place[mine]


def _quantiles(bins: Cells) -> Numbers:
    """The bins that hold the quantiles of one series' records."""
    index = bins["at"].astype(np.int64) - BIN_OFFSET
    low = max(int(index.min()), int(index.max()) - _FEW_BINS)
    merged = np.bincount(np.maximum(index, low) - low, bins["n"].astype(np.float64))
    levels: Numbers = quantile_bins(merged[None])[0] + low
    return levels
