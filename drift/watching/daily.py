"""Once a day: does yesterday's distribution differ from that of the days before, over all series together?

Compared are shares of records above the usual 10th, 50th and 90th percentile, day by day: weekdays with weekdays,
Saturdays and Sundays with such. What a day like the others may be is told by how much they differ among each other, not
by how many records they have. t = (share - mean) /
(s sqrt(1 + 1 / days)) with days - 1 degrees of freedom, the least p of three times three (Bonferroni); over all series
Benjamini and Hochberg. It is drift where that is significant and the share moved by a tenth of the records at least.

Where a reference is pinned, percentiles and mean are those of its days, however many they are; s is of the days before,
or of the reference's own days where there are too few of these.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from drift.compare.difference import adjusted
from drift.detectors.incidents import MOST_INCIDENTS
from drift.detectors.season import SATURDAY, SEASONAL_DAYS, weekday_of
from drift.detectors.series import Flags, Floats, Integers
from drift.rules.series import Series
from drift.settings import DriftSettings, WindowSettings
from drift.watching import grid, reading
from drift.watching.batch import Batch
from drift.watching.fitting import own
from drift.watching.reading import BIN_OFFSET, Cells, Span
from drift.watching.reference import Pin, References
from drift.watching.seen import Seen
from sinks.clickhouse.database import Database
from sinks.rows import LIVE

ALPHA = 0.05
LEAST_EFFECT = 0.1  # of the records
_QUANTILES = np.array([0.1, 0.5, 0.9])
_LEAST_DAYS = 4  # of its kind: the weekends of two weeks
_LEAST_RECORDS = 100  # of a day
_LEAST_SPREAD = 1e-3  # of a share: days that are all alike are not told apart by a rounding
_LEAST_TROUBLE_S = LEAST_EFFECT * grid.DAY_S  # of a day: a shorter one moves no share of it by as much as is told
_MOST_TROUBLE = 1 - MOST_INCIDENTS  # of the days: then it is how the series is
_NEARLY_ALL = 0.9  # of a pinned time: in whole windows of a size


class Drifted(NamedTuple):
    """A series whose last day is unlike those of its kind before, or what was pinned: `share` of the records above the
    bin `level`, `usual` before.

    `p_adjusted` is over all series of the run.
    """

    series: Series
    level: int
    share: float
    usual: float
    low: float
    high: float
    days: int
    pinned: bool
    records: int
    p: float
    p_adjusted: float


@dataclass(frozen=True, slots=True)
class Compared:
    """Series whose last day is unlike the others, and those whose day is like them. Of all others nobody can tell."""

    unlike: tuple[Drifted, ...]
    alike: frozenset[Series]


class _Days(NamedTuple):
    """The starts of days, and how many records of each [D, B] lie in some bins."""

    at: Integers
    counts: Floats

    def where(self, kept: Flags) -> "_Days":
        return _Days(self.at[kept], self.counts[kept])

    def like(self, day: int) -> "_Days":
        """Those of the same kind."""
        return self.where(_is_weekend(self.at) == _is_weekend(np.array([day])))

    def above(self, levels: Integers) -> Floats:
        """Of each day, the share of its records above these of the bins."""
        shares: Floats = 1 - self.counts.cumsum(axis=1)[:, levels] / self.counts.sum(axis=1)[:, None]
        return shares


@dataclass(frozen=True, slots=True)
class Daily:
    """Compares days, made of the largest windows that there are. `left_out` as in `Fitter`."""

    database: Database
    left_out: Mapping[Series, Sequence[tuple[int, int]]]
    references: References
    windows: WindowSettings
    settings: DriftSettings

    def compared(self, seen: Sequence[Seen], day: int) -> Compared:
        """How the day that began then, seconds since 1970, was."""
        found = [one for some in seen if some.batch.key.kind != "category" for one in self._batch(some.batch, day)]
        corrected = adjusted([one.p for one in found])
        judged = [one._replace(p_adjusted=p) for one, p in zip(found, corrected, strict=True)]
        unlike = tuple(one for one in judged if self._is_unlike(one))
        return Compared(unlike, frozenset(one.series for one in judged) - {one.series for one in unlike})

    def _is_unlike(self, one: Drifted) -> bool:
        least = LEAST_EFFECT * self.settings.of(one.series.app).margin
        return one.p_adjusted <= ALPHA and abs(one.share - one.usual) >= least

    def _batch(self, batch: Batch, day: int) -> Iterator[Drifted]:
        """Each series that can be compared."""
        first = day - self.settings.history_days * grid.DAY_S
        live = self._cells(batch, Span(self.windows.all_sizes_s[-1], grid.DAY_S, first, day + grid.DAY_S))
        pinned = self._pinned(batch)
        for at, series in enumerate(batch.series):
            id_ = int(batch.rows.ids[at])
            bad = [(one.since, one.until or day) for one in batch.episodes if one.series == id_]
            bad += self.left_out.get(series, ())
            pin, cells = pinned.get(at, (None, live[at][:0]))
            seasonal = pin is not None and _is_seasonal(pin)
            found = _compared(series, live[at], day, cells, seasonal, (bad, int(batch.rows.basis[at])))
            if found is not None:
                yield found

    def _pinned(self, batch: Batch) -> dict[int, tuple[Pin, Cells]]:
        """Of the series for which a pin holds, by their place, what it has of them."""
        found: dict[int, tuple[Pin, Cells]] = {}
        for pin in {pin for series in batch.series if (pin := self.references.pin_of(series)) is not None}:
            cells = self._cells(batch, self._span(pin))
            places = [at for at, series in enumerate(batch.series) if self.references.pin_of(series) == pin]
            found |= {at: (pin, cells[at]) for at in places}
        return found

    def _span(self, pin: Pin) -> Span:
        """In the largest windows that make nearly all of the pinned time: they are kept for longest."""
        since, until = pin.since.timestamp(), pin.until.timestamp()
        for size_s in reversed(self.windows.all_sizes_s):
            first, end = grid.ceiling(int(since), size_s), grid.floor(until, size_s)
            if end - first >= _NEARLY_ALL * (until - since):
                break
        return Span(size_s, grid.DAY_S, first, end, pin.run_id)

    def _cells(self, batch: Batch, span: Span) -> list[Cells]:
        """Histograms by day of each of the batch's series, of their own fingerprints."""
        cells, place = own(reading.daily_bins(self.database, batch.series, batch.rows.ids, span), batch.rows)
        order = np.argsort(place, kind="stable")
        borders = np.searchsorted(place[order], np.arange(len(batch.series) + 1))
        return [cells[order[first:last]] for first, last in pairwise(borders)]


def _is_seasonal(pin: Pin) -> bool:
    """Whether what is pinned has weekdays and weekends as they come."""
    return pin.run_id == LIVE and (pin.until - pin.since).days >= SEASONAL_DAYS


def _is_weekend(days: Integers) -> Flags:
    return weekday_of(days // grid.DAY_S) >= SATURDAY


def _compared(
    series: Series,
    live: Cells,
    day: int,
    pinned: Cells,
    seasonal: bool,
    trouble: tuple[Sequence[tuple[int, int]], int],
) -> Drifted | None:
    """`pinned` may be empty; `trouble`: when there was some, and since when history counts."""
    bins = np.unique(np.concatenate([live["label"], pinned["label"]]).astype(np.int64))
    days = _days(live, bins)
    today, before = days.where(days.at == day), days.where(days.at < day).like(day)
    before = before.where(_are_examples(before.at, *trouble))
    reference = _days(pinned, bins).like(day) if seasonal else _days(pinned, bins)
    usual = reference if len(reference.at) else before
    varied = before if len(before.at) >= _LEAST_DAYS else reference
    if not len(today.at) or len(varied.at) < _LEAST_DAYS:
        return None
    in_all = usual.counts.sum(axis=0).cumsum()
    levels = np.searchsorted(in_all, _QUANTILES * in_all[-1])
    (share,), expected = today.above(levels), usual.above(levels)
    p = _p(share, expected, varied.above(levels))
    worst = int(p.argmin())
    return Drifted(
        series=series,
        level=int(bins[levels[worst]]) - BIN_OFFSET,
        share=float(share[worst]),
        usual=float(expected[:, worst].mean()),
        low=float(expected[:, worst].min()),
        high=float(expected[:, worst].max()),
        days=len(expected),
        pinned=usual is reference,
        records=round(float(today.counts.sum())),
        p=min(1.0, float(p[worst]) * len(_QUANTILES)),
        p_adjusted=math.nan,
    )


def _days(cells: Cells, bins: Integers) -> _Days:
    """Those with enough records."""
    days, at = np.unique(cells["at"].astype(np.int64), return_inverse=True)
    counts = np.zeros((len(days), len(bins)))
    np.add.at(counts, (at, np.searchsorted(bins, cells["label"].astype(np.int64))), cells["n"])
    return _Days(days, counts).where(counts.sum(axis=1) >= _LEAST_RECORDS)


def _are_examples(days: Integers, bad: Sequence[tuple[int, int]], since: int) -> Flags:
    """Neither before a change that was accepted nor in trouble for as long as matters.

    Trouble on nearly all days since then is how the series is: nobody could tell of it otherwise.
    """
    ours = days >= since
    trouble_s, told = np.zeros(len(days)), 0
    for begin, end in sorted(one for one in bad if one[0] > since):  # what was accepted is an example again
        begin, told = max(begin, told), max(end, told)  # several may tell of the same hours
        trouble_s += np.maximum(np.minimum(days + grid.DAY_S, end) - np.maximum(days, begin), 0)
    troubled = ours & (trouble_s > _LEAST_TROUBLE_S)
    stands = troubled.sum() > _MOST_TROUBLE * ours.sum()
    return ours if stands else ours & ~troubled


def _p(share: Floats, expected: Floats, varied: Floats) -> Floats:
    """Two-sided, of a day's shares [levels] among `expected` [days, levels], if days differ as in `varied`."""
    from scipy.special import stdtr

    spread = np.maximum(varied.std(axis=0, ddof=1), _LEAST_SPREAD)
    t = (share - expected.mean(axis=0)) / (spread * math.sqrt(1 + 1 / len(expected)))
    found: Floats = 2 * stdtr(len(varied) - 1, -np.abs(t))
    return found
