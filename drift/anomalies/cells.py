"""Convert cells to windows of their kind, and replace the rows of baselines and states."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from ragtide.drift.anomalies.metrics import SignalKind
from ragtide.drift.anomalies.queries import Ids, WindowCells
from ragtide.drift.array_types import Floats, Integers, Numbers
from ragtide.drift.detectors import (
    Baseline,
    Categories,
    HeavyTailed,
    Rates,
    Scores,
    State,
    Windows,
    fit_baseline,
    serialization,
    start_state,
)

MAX_LABELS = 12  # of a series with a channel of their own; all others share one more


@dataclass(frozen=True, slots=True)
class Scale:
    """Lowest value and range of the scores of each series [S]."""

    low: Floats
    width: Floats


def to_windows(
    kind: SignalKind,
    cells: WindowCells,
    place: Integers,
    start: Integers,
    labels: Ids,
    scale: Scale,
    shifts: Integers | None = None,
) -> Windows:
    """Convert cells to windows [series, ticks]. `place` is each cell's series, `labels` [S, LABELS] its columns.

    Cells are later by `shifts` in seconds; those that leave the windows so are left out.
    """
    series, ticks = len(labels), len(start)
    size = int(start[1] - start[0]) if ticks > 1 else 1
    tick = (cells["at"].astype(np.int64) - start[0]) // size
    if shifts is not None and shifts.any():
        tick = tick + shifts // size
        inside = (tick >= 0) & (tick < ticks)
        cells, place, tick = cells[inside], place[inside], tick[inside]
    if kind == "category":
        columns = np.argmax(labels[place] == cells["label"][:, None], axis=1)
        known = (labels[place, columns] == cells["label"]) & (cells["label"] != 0)
        counts = np.zeros((series, ticks, MAX_LABELS + 1))
        np.add.at(counts, (place, tick, np.where(known, columns, MAX_LABELS)), cells["n"])
        return Categories(start, counts)
    n, x, y = (np.zeros((series, ticks)) for _ in range(3))
    for name, grid in (("n", n), ("x", x), ("y", y)):
        np.add.at(grid, (place, tick), cells[name])
    if kind == "rate":
        return Rates(start, n, x)
    if kind == "positive":
        return HeavyTailed(start, n, np.stack([x, y], axis=2))
    low, width = scale.low[:, None], scale.width[:, None]
    return Scores(start, n, (x - n * low) / width, (y - 2 * low * x + n * low**2) / width**2)


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
    fresh = start_state(serialization.take(baseline, rows))
    fresh.until[:] = state.until[rows]
    return serialization.take(serialization.join([state, fresh]), _order(len(state.until), rows))


@cache
def _blank_baseline(kind: SignalKind, tick_s: int) -> Baseline:
    """Return that of one series."""
    no_cells = np.empty(0, np.dtype([(name, "<u8") for name in ("series", "at", "label", "n", "x", "y")]))
    start = np.arange(2, dtype=np.int64) * tick_s
    scale, labels = Scale(np.zeros(1), np.ones(1)), np.zeros((1, MAX_LABELS), np.uint64)
    nothing = to_windows(kind, no_cells, np.empty(0, np.int64), start, labels, scale)
    return fit_baseline(nothing, np.zeros((1, 2), np.int64))


def _order(series: int, rows: Numbers) -> Numbers:
    order = np.arange(series)
    order[rows] = series + np.arange(len(rows))
    return order
