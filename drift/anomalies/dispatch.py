"""One interface to all detectors: convert cells to windows of their kind, fit baselines, run detectors."""

from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np

from ragtide.drift.anomalies.metrics import SignalKind
from ragtide.drift.anomalies.queries import Ids, WindowCells
from ragtide.drift.detectors import categories, proportions, run_state, scores, serialization
from ragtide.drift.detectors import relevel as moves
from ragtide.drift.detectors.arrays import Categories, Flags, Floats, HeavyTailed, Integers, Numbers, Rates, Scores
from ragtide.drift.detectors.baseline import Baseline
from ragtide.drift.detectors.run_state import State

MAX_LABELS = 12  # of a series with a channel of their own; all others share one more
Windows = Scores | Rates | HeavyTailed | Categories


@dataclass(frozen=True, slots=True)
class Scale:
    """Lowest value and range of the scores of each series [S]."""

    low: Floats
    width: Floats


def to_windows(
    kind: SignalKind, cells: WindowCells, place: Numbers, start: Integers, labels: Ids, scale: Scale
) -> Windows:
    """Convert cells to windows [series, ticks]. `place` is each cell's series, `labels` [S, LABELS] its columns."""
    series, ticks = len(labels), len(start)
    size = int(start[1] - start[0]) if ticks > 1 else 1
    tick = (cells["at"].astype(np.int64) - start[0]) // size
    if kind == "category":
        columns = np.argmax(labels[place] == cells["label"][:, None], axis=1)
        known = (labels[place, columns] == cells["label"]) & (cells["label"] != 0)
        counts = np.zeros((series, ticks, MAX_LABELS + 1))
        np.add.at(counts, (place, tick, np.where(known, columns, MAX_LABELS)), cells["n"])
        return Categories(start, counts)
    n, x, y = (np.zeros((series, ticks)) for _ in range(3))
    for name, grid in (("n", n), ("x", x), ("y", y)):
        grid[place, tick] = cells[name]
    if kind == "rate":
        return Rates(start, n, x)
    if kind == "positive":
        return HeavyTailed(start, n, np.stack([x, y], axis=2))
    low, width = scale.low[:, None], scale.width[:, None]
    return Scores(start, n, (x - n * low) / width, (y - 2 * low * x + n * low**2) / width**2)


def exclude(some: Windows, excluded: Flags) -> Windows:
    """Empty the `excluded` windows [S, T] in place."""
    for field in fields(some):
        if field.name != "start":
            getattr(some, field.name)[excluded] = 0
    return some


def select_series(some: Windows, places: Integers) -> Windows:
    """Copy the windows of some series."""
    arrays = {field.name: getattr(some, field.name) for field in fields(some) if field.name != "start"}
    return replace(some, **{name: array[places] for name, array in arrays.items()})


def record_counts(some: Windows) -> Floats:
    """Count the records of each window [S, T]."""
    found: Floats = some.counts.sum(axis=2) if isinstance(some, Categories) else some.n
    return found


def channel_sums(some: Windows) -> Floats:
    """Sum the values, or count the hits, of each channel [S, C, T]; of scores only the mean's channel."""
    if isinstance(some, Scores):
        return some.total[:, None]
    if isinstance(some, Rates):
        return some.hits[:, None]
    return (some.above if isinstance(some, HeavyTailed) else some.counts).transpose(0, 2, 1)


def fit(some: Windows, levels: Integers | None, seasonal: bool) -> Baseline:
    """Fit a baseline to good windows. `levels` [S, 2] are the bins that heavy-tailed metrics were counted above."""
    if isinstance(some, Scores):
        return scores.fit(some, seasonal=seasonal)
    if isinstance(some, Rates):
        return proportions.fit_rates(some, seasonal=seasonal)
    if isinstance(some, HeavyTailed):
        return proportions.fit_heavy_tailed(some, levels, seasonal=seasonal)
    return categories.fit(some, seasonal=seasonal)


def relevel(old: Baseline, now: Windows, known: Floats) -> tuple[Baseline, Flags]:
    """Move `old`, learned from `known` records [S], to the level of `now`; and which series have enough records."""
    if isinstance(now, Scores):
        return moves.relevel_scores(old, now, known)
    if isinstance(now, Categories):
        n, hits = categories.to_channels(now.counts, old.active[:, :-1])
        return moves.relevel_proportions(old, now.start, n, hits, known, categories.MARGIN)
    return moves.relevel_proportions(old, now.start, now.n, channel_sums(now), known, proportions.MARGIN)


def run(baseline: Baseline, state: State, some: Windows) -> None:
    """Advance `state` in place by these windows."""
    if isinstance(some, Scores):
        scores.run(baseline, state, some)
    elif isinstance(some, Rates):
        proportions.run_rates(baseline, state, some)
    elif isinstance(some, HeavyTailed):
        proportions.run_heavy_tailed(baseline, state, some)
    else:
        categories.run(baseline, state, some)


def blank_baseline(kind: SignalKind, tick_s: int, series: int) -> Baseline:
    """Return a baseline of series without history: none can alarm."""
    return serialization.take(_blank_baseline(kind, tick_s), np.zeros(series, np.int64))


def replace_rows(old: Baseline, rows: Numbers, new: Baseline) -> Baseline:
    """Return `old` with `new` in place of these rows."""
    return serialization.take(serialization.join([old, new]), _order(old.series, rows))


def reset_rows(state: State, rows: Numbers, baseline: Baseline) -> State:
    """Return `state` with these rows empty, but processed up to the same tick."""
    if not len(rows):
        return state
    fresh = run_state.start(serialization.take(baseline, rows))
    fresh.until[:] = state.until[rows]
    return serialization.take(serialization.join([state, fresh]), _order(len(state.until), rows))


@cache
def _blank_baseline(kind: SignalKind, tick_s: int) -> Baseline:
    """Return that of one series."""
    no_cells = np.empty(0, np.dtype([(name, "<u8") for name in ("series", "at", "label", "n", "x", "y")]))
    start = np.arange(2, dtype=np.int64) * tick_s
    scale, labels = Scale(np.zeros(1), np.ones(1)), np.zeros((1, MAX_LABELS), np.uint64)
    nothing = to_windows(kind, no_cells, np.empty(0, np.int64), start, labels, scale)
    return fit(nothing, np.zeros((1, 2), np.int64), True)


def _order(series: int, rows: Numbers) -> Numbers:
    order = np.arange(series)
    order[rows] = series + np.arange(len(rows))
    return order
