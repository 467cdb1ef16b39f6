"""Baselines of a batch: learned from history with what is known to be no example left out, or from what was pinned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from drift.detectors import stored
from drift.detectors.baseline import Baseline, Warming
from drift.detectors.incidents import MOST_INCIDENTS
from drift.detectors.season import SEASONAL_DAYS
from drift.detectors.series import Flags, Integers, Numbers, quantile_bins
from drift.rules.series import Series
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

    @cached_property
    def tick_s(self) -> int:
        """Seconds of a tick."""
        return grid.tick_s(self.base_s)

    def fit(self, batch: Batch, at: int, before: Held | None) -> Fitted:
        """Baselines that hold from tick `at` on, from windows that no late record changes any more (to speak of).

        Where what was pinned does not tell enough of a series, its history does: else nobody would watch it. A complete
        reference stays as `before` has it.
        """
        end = grid.floor(at - self.lateness_s, self.tick_s)
        span = Span(self.base_s, self.tick_s, grid.ceiling(end - self.history_s, self.tick_s), end)
        rows, basis = batch.rows, np.maximum(batch.rows.basis, HISTORY)
        found = self._fit(batch, np.arange(len(batch.series)), span, None)
        for pin, places in self.pinned(batch).items():
            reference = self._reference(batch, places, pin, before)
            told = np.flatnonzero(reference.warming == Warming.WATCHED)
            found = detecting.replaced(found, places[told], stored.take(reference, told))
            basis[places[told]] = pin.basis
        return Fitted(rows.ids.copy(), rows.fingerprint.copy(), basis, found)

    def pinned(self, batch: Batch) -> dict[Pin, Integers]:
        """Where the series stand for which a pin holds, by pin."""
        found: dict[Pin, list[int]] = {}
        for place, series in enumerate(batch.series):
            pin = self.references.pin_of(series)
            if pin is not None:
                found.setdefault(pin, []).append(place)
        return {pin: np.array(places) for pin, places in found.items()}

    def by_pin(self, batch: Batch, places: Integers, pin: Pin) -> Baseline:
        """Baselines of these series by what was pinned, whichever pin holds for them."""
        return self._fit(batch, places, self.span(pin), pin)

    def span(self, pin: Pin) -> Span:
        """The windows of the reference."""
        end = grid.ceiling(pin.until.timestamp(), self.tick_s)
        first = max(grid.floor(pin.since.timestamp(), self.tick_s), end - _LONGEST_REFERENCE_S)
        return Span(self.base_s, self.tick_s, first, max(end, first + 2 * self.tick_s), pin.run_id)

    def scale(self, series: Sequence[Series]) -> Scale:
        """Lowest value and range of each."""
        watches = [self.watched[one.metric] for one in series]
        return Scale(np.array([one.low for one in watches]), np.array([one.span for one in watches]))

    def _reference(self, batch: Batch, places: Integers, pin: Pin, before: Held | None) -> Baseline:
        if before is None or before.holds_from < pin.complete_at.timestamp():
            return self.by_pin(batch, places, pin)
        rows = stored.take(batch.rows, places)
        found = before.fitted.matched(rows, batch.key.kind)
        held = (found.warming == Warming.WATCHED) & (before.fitted.basis_of(rows) == pin.basis)
        rest = np.flatnonzero(~held)
        return detecting.replaced(found, rest, self.by_pin(batch, places[rest], pin)) if len(rest) else found

    def _fit(self, batch: Batch, places: Integers, span: Span, pin: Pin | None) -> Baseline:
        """Of these series, by windows of their own fingerprints."""
        series, rows = [batch.series[place] for place in places], stored.take(batch.rows, places)
        levels = self._levels(batch, places, series, rows, span)
        cells = reading.cells(self.database, batch.key.kind, self.watched, series, rows.ids, levels, span)
        cells, place = own(cells, rows)
        some = detecting.windows(
            batch.key.kind, cells, place, len(series), span.ticks, batch.rows.labels[places], self.scale(series)
        )
        if pin is None:
            left_out = self._no_example(batch, series, rows, span, detecting.seen(some))
            some = detecting.without(batch.key.kind, some, left_out)
        seasonal = pin is None or (pin.run_id == LIVE and len(span.ticks) * span.tick_s >= _SEASONAL_S)
        return detecting.fit(some, levels if batch.key.kind == "positive" else None, seasonal)

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

    def _no_example(self, batch: Batch, series: Sequence[Series], rows: Rows, span: Span, seen: Flags) -> Flags:
        """Ticks [S, T] in which a series was in trouble, and those before it was accepted as it is now.

        Trouble in nearly all that was `seen` since then is how the series is: it would never be watched otherwise.
        """
        trouble, before = np.zeros(seen.shape, bool), np.zeros(seen.shape, bool)
        for place in np.flatnonzero(rows.basis > 0).tolist():
            begins = (grid.ceiling(int(rows.basis[place]), self.tick_s) - span.first) // self.tick_s
            before[place, : max(begins, 0)] = True
        place_of = {int(id_): place for place, id_ in enumerate(rows.ids)}
        known = [
            (place_of[one.series], one.since, one.until or span.end)
            for one in passing(batch.episodes)
            if one.series in place_of
        ]
        known += [(place, *time) for place, one in enumerate(series) for time in self.left_out.get(one, ())]
        for place, since, until in known:
            if since > rows.basis[place]:  # what was accepted is an example again
                first, last = ((at - span.first) // self.tick_s for at in (since, until + self.tick_s - 1))
                trouble[place, max(first, 0) : max(last, 0)] = True
        seen = seen & ~before
        stands = (trouble & seen).sum(axis=1) > _MOST_TROUBLE * seen.sum(axis=1)
        out: Flags = before | trouble & ~stands[:, None]
        return out


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
