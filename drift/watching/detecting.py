"""One face for all detectors: cells of the database as windows of their kind, fitted and run."""

from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np

from drift.detectors import categories, positives, rates, scores, shares, stored, watching
from drift.detectors import moved as moves
from drift.detectors.baseline import Baseline
from drift.detectors.series import Categories, Flags, Floats, Integers, Numbers, Positives, Rates, Scores
from drift.detectors.watching import State
from drift.watching.kinds import Kind
from drift.watching.reading import Cells, Ids

LABELS = 12  # of a series that have a channel of their own; all others are one more
Windows = Scores | Rates | Positives | Categories


@dataclass(frozen=True, slots=True)
class Scale:
    """Lowest value and range of the scores of each series [S]."""

    low: Floats
    span: Floats


def windows(
    kind: Kind, cells: Cells, place: Numbers, series: int, start: Integers, labels: Ids, scale: Scale
) -> Windows:
    """Cells as windows [series, ticks]; `place` says which series each is of, `labels` [S, LABELS] which columns."""
    size = int(start[1] - start[0]) if len(start) > 1 else 1
    tick = (cells["at"].astype(np.int64) - start[0]) // size
    if kind == "category":
        columns = np.argmax(labels[place] == cells["label"][:, None], axis=1)
        known = (labels[place, columns] == cells["label"]) & (cells["label"] != 0)
        counts = np.zeros((series, len(start), LABELS + 1))
        np.add.at(counts, (place, tick, np.where(known, columns, LABELS)), cells["n"])
        return Categories(start, counts)
    n, x, y = (_spread(cells[name], place, tick, series, len(start)) for name in ("n", "x", "y"))
    if kind == "rate":
        return Rates(start, n, x)
    if kind == "positive":
        return Positives(start, n, np.stack([x, y], axis=2))
    low, span = scale.low[:, None], scale.span[:, None]
    return Scores(start, n, (x - n * low) / span, (y - 2 * low * x + n * low**2) / span**2)


def without(kind: Kind, some: Windows, left_out: Flags) -> Windows:
    """The same without the windows [S, T] that are left out."""
    for name in {"score": ("n", "total", "squares"), "rate": ("n", "hits"), "positive": ("n", "above")}.get(
        kind, ("counts",)
    ):
        getattr(some, name)[left_out] = 0
    return some


def rows(some: Windows, places: Integers) -> Windows:
    """A copy of the windows of some series."""
    arrays = {field.name: getattr(some, field.name) for field in fields(some) if field.name != "start"}
    return replace(some, **{name: array[places] for name, array in arrays.items()})


def records(some: Windows) -> Floats:
    """Of each window [S, T]."""
    found: Floats = some.counts.sum(axis=2) if isinstance(some, Categories) else some.n
    return found


def seen(some: Windows) -> Flags:
    """Windows [S, T] with records."""
    there: Flags = records(some) > 0
    return there


def fit(some: Windows, levels: Integers | None, seasonal: bool) -> Baseline:
    """The baseline of known-good windows; `levels` [S, 2]: the bins that positives were counted above."""
    if isinstance(some, Scores):
        return scores.fit(some, seasonal=seasonal)
    if isinstance(some, Rates):
        return rates.fit(some, seasonal=seasonal)
    if isinstance(some, Positives):
        return positives.fit(some, levels, seasonal=seasonal)
    return categories.fit(some, seasonal=seasonal)


def moved(old: Baseline, now: Windows, known: Floats) -> tuple[Baseline, Flags]:
    """`old`, learned from `known` records [S], at the level of `now`; of which series that has enough records."""
    if isinstance(now, Scores):
        return moves.of_scores(old, now, known)
    n, hits, margin = _shares(old, now)
    return moves.of_shares(old, now.start, n, hits, known, margin)


def run(baseline: Baseline, state: State, some: Windows) -> None:
    """`state` is that after these windows."""
    if isinstance(some, Scores):
        scores.run(baseline, state, some)
    elif isinstance(some, Rates):
        rates.run(baseline, state, some)
    elif isinstance(some, Positives):
        positives.run(baseline, state, some)
    else:
        categories.run(baseline, state, some)


def blank(kind: Kind, tick_s: int, series: int) -> Baseline:
    """The baseline of series of which nothing is known: nothing alarms."""
    return stored.take(_blank(kind, tick_s), np.zeros(series, np.int64))


def replaced(old: Baseline, rows: Numbers, new: Baseline) -> Baseline:
    """`old` with `new` in the place of these rows."""
    return stored.take(stored.join([old, new]), _order(old.series, rows))


def restarted(state: State, rows: Numbers, baseline: Baseline) -> State:
    """`state` with nothing known of these rows, which are looked at from where the others are."""
    if not len(rows):
        return state
    fresh = watching.start(stored.take(baseline, rows))
    fresh.until[:] = state.until[rows]
    return stored.take(stored.join([state, fresh]), _order(len(state.until), rows))


@cache
def _blank(kind: Kind, tick_s: int) -> Baseline:
    """Of one series."""
    nobody = np.empty(0, np.dtype([(name, "<u8") for name in ("series", "at", "label", "n", "x", "y")]))
    start = np.arange(2, dtype=np.int64) * tick_s
    scale = Scale(np.zeros(1), np.ones(1))
    nothing = windows(kind, nobody, np.empty(0, np.int64), 1, start, np.zeros((1, LABELS), np.uint64), scale)
    return fit(nothing, np.zeros((1, 2), np.int64), True)


def _shares(old: Baseline, now: Rates | Positives | Categories) -> tuple[Floats, Floats, float]:
    """Records [S, T] and hits [S, C, T] as the detector of the kind counts them, and its margin of the odds."""
    if isinstance(now, Categories):
        n, hits = categories.channels(now.counts, old.active[:, :-1])
        return n, hits, categories.MARGIN
    hits = now.above.transpose(0, 2, 1) if isinstance(now, Positives) else now.hits[:, None]
    return now.n, hits, shares.MARGIN


def _order(series: int, rows: Numbers) -> Numbers:
    order = np.arange(series)
    order[rows] = series + np.arange(len(rows))
    return order


def _spread(values: Numbers, place: Numbers, tick: Numbers, series: int, ticks: int) -> Floats:
    spread = np.zeros((series, ticks))
    spread[place, tick] = values
    return spread
