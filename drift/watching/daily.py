"""Once a day: does yesterday's distribution differ from that of the days before, over all series together?

Compared are shares of records above the history's 10th, 50th and 90th percentile, day by day: weekdays with weekdays,
Saturdays and Sundays with such. What a day like the others may be is told by how much they differ among each other, not
by how many records they have. t = (share - mean) /
(s sqrt(1 + 1 / days)) with days - 1 degrees of freedom, the least p of three times three (Bonferroni); over all series
Benjamini and Hochberg. It is drift where that is significant and the share moved by a tenth of the records at least.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from drift.compare.difference import adjusted
from drift.detectors import stored
from drift.detectors.season import SATURDAY, weekday_of
from drift.detectors.series import Flags, Floats, Integers
from drift.rules.series import Series
from drift.watching import grid, reading
from drift.watching.batch import Batch
from drift.watching.fitting import own
from drift.watching.reading import BIN_OFFSET, Cells, Span
from drift.watching.seen import Seen
from sinks.clickhouse.database import Database

ALPHA = 0.05
LEAST_EFFECT = 0.1  # of the records
_QUANTILES = np.array([0.1, 0.5, 0.9])
_LEAST_DAYS = 4  # of its kind: the weekends of two weeks
_LEAST_RECORDS = 100  # of a day
_LEAST_SPREAD = 1e-3  # of a share: days that are all alike are not told apart by a rounding


class Drifted(NamedTuple):
    """A series whose last day is unlike those of its kind before: `share` of the records above the bin `level`, `usual`
    before.

    `p_adjusted` is over all series of the run.
    """

    series: Series
    level: int
    share: float
    usual: float
    low: float
    high: float
    days: int
    records: int
    p: float
    p_adjusted: float


@dataclass(frozen=True, slots=True)
class Daily:
    """Compares days. `left_out` as in `Fitter`; `history_days` before the one that is asked about."""

    database: Database
    left_out: Mapping[Series, Sequence[tuple[int, int]]]
    history_days: int

    def drifted(self, seen: Sequence[Seen], day: int) -> list[Drifted]:
        """The series that drifted in the day that began then, seconds since 1970."""
        found = [one for some in seen if some.batch.key.kind != "category" for one in self._batch(some.batch, day)]
        corrected = adjusted([one.p for one in found])
        judged = [one._replace(p_adjusted=p) for one, p in zip(found, corrected, strict=True)]
        return [one for one in judged if one.p_adjusted <= ALPHA and abs(one.share - one.usual) >= LEAST_EFFECT]

    def _batch(self, batch: Batch, day: int) -> Iterator[Drifted]:
        """Each series that can be compared."""
        span = Span(grid.DAY_S, grid.DAY_S, day - self.history_days * grid.DAY_S, day + grid.DAY_S)
        rows = stored.take(batch.rows, np.flatnonzero(batch.rows.basis >= 0))  # a pinned reference has no days
        series = dict(zip(batch.rows.ids.tolist(), batch.series, strict=True))
        cells, place = own(reading.daily_bins(self.database, list(series.values()), rows.ids, span), rows)
        order = np.argsort(place, kind="stable")
        borders = np.searchsorted(place[order], np.arange(len(rows.ids) + 1))
        for at, (first, last) in enumerate(pairwise(borders)):
            id_ = int(rows.ids[at])
            bad = [(one.since, one.until or day) for one in batch.episodes if one.series == id_]
            bad += self.left_out.get(series[id_], ())
            mine = cells[order[first:last]]
            kept = mine[(mine["at"] == day) | ~_in_any(mine["at"], bad, int(rows.basis[at]))]
            if (found := _compared(series[id_], kept, day)) is not None:
                yield found


def _in_any(days: Integers, bad: Sequence[tuple[int, int]], since: int) -> Flags:
    """Days that are no example: some of them was trouble, or before a change that was accepted."""
    out: Flags = days < since
    for begin, end in bad:
        if begin > since:
            out |= (days < end) & (days + grid.DAY_S > begin)
    return out


def _compared(series: Series, cells: Cells, day: int) -> Drifted | None:
    days, at = np.unique(cells["at"], return_inverse=True)
    bins, column = np.unique(cells["label"].astype(np.int64), return_inverse=True)
    counts = np.zeros((len(days), len(bins)))
    np.add.at(counts, (at, column), cells["n"])
    weekend = weekday_of(days // grid.DAY_S) >= SATURDAY
    like = (counts.sum(axis=1) >= _LEAST_RECORDS) & (weekend == weekend[-1:])
    days, counts = days[like], counts[like]
    if len(days) <= _LEAST_DAYS or days[-1] != day:
        return None
    before = counts[:-1].sum(axis=0).cumsum()
    levels = np.searchsorted(before, _QUANTILES * before[-1])
    above = 1 - counts.cumsum(axis=1)[:, levels] / counts.sum(axis=1)[:, None]
    p = _p(above)
    worst = int(p.argmin())
    return Drifted(
        series=series,
        level=int(bins[levels[worst]]) - BIN_OFFSET,
        share=float(above[-1, worst]),
        usual=float(above[:-1, worst].mean()),
        low=float(above[:-1, worst].min()),
        high=float(above[:-1, worst].max()),
        days=len(days) - 1,
        records=round(float(counts[-1].sum())),
        p=min(1.0, float(p[worst]) * len(_QUANTILES)),
        p_adjusted=math.nan,
    )


def _p(above: Floats) -> Floats:
    """Two-sided, of the last day's shares [days, levels] among the others."""
    from scipy.special import stdtr

    history, days = above[:-1], len(above) - 1
    spread = np.maximum(history.std(axis=0, ddof=1), _LEAST_SPREAD)
    t = (above[-1] - history.mean(axis=0)) / (spread * math.sqrt(1 + 1 / days))
    found: Floats = 2 * stdtr(days - 1, -np.abs(t))
    return found
