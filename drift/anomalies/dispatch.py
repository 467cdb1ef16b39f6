"""One face for all detectors: cells of the database as windows of their kind, fitted and run."""

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

MAX_LABELS = 12  # of a series that have a channel of their own; all others are one more
Windows = Scores | Rates | HeavyTailed | Categories


@dataclass(frozen=True, slots=True)
class Scale:
    """Lowest value and range of the scores of each series [S]."""

    low: Floats
    span: Floats


def to_windows(
    kind: SignalKind, cells: WindowCells, place: Numbers, series: int, start: Integers, labels: Ids, scale: Scale
) -> Windows:
    """Cells as windows [series, ticks]; `place` says which series each is of, `labels` [S, LABELS] which columns."""
    size = int(start[1] - start[0]) if len(start) > 1 else 1
    tick = (cells["at"].astype(np.int64) - start[0]) // size
    if kind == "category":
        columns = np.argmax(labels[place] == cells["label"][:, None], axis=1)
        known = (labels[place, columns] == cells["label"]) & (cells["label"] != 0)
        counts = np.zeros((series, len(start), MAX_LABELS + 1))
        np.add.at(counts, (place, tick, np.where(known, columns, MAX_LABELS)), cells["n"])
        return Categories(start, counts)
    n, x, y = (_to_grid(cells[name], place, tick, series, len(start)) for name in ("n", "x", "y"))
    if kind == "rate":
        return Rates(start, n, x)
    if kind == "positive":
        return HeavyTailed(start, n, np.stack([x, y], axis=2))
    low, span = scale.low[:, None], scale.span[:, None]
    return Scores(start, n, (x - n * low) / span, (y - 2 * low * x + n * low**2) / span**2)


def exclude(kind: SignalKind, some: Windows, excluded: Flags) -> Windows:
    """The same without the windows [S, T] that are left out."""
    for name in {"score": ("n", "total", "squares"), "rate": ("n", "hits"), "positive": ("n", "above")}.get(
        kind, ("counts",)
    ):
        getattr(some, name)[excluded] = 0
    return some


def select_series(some: Windows, places: Integers) -> Windows:
    """A copy of the windows of some series."""
    arrays = {field.name: getattr(some, field.name) for field in fields(some) if field.name != "start"}
    return replace(some, **{name: array[places] for name, array in arrays.items()})


def record_counts(some: Windows) -> Floats:
    """Of each window [S, T]."""
    found: Floats = some.counts.sum(axis=2) if isinstance(some, Categories) else some.n
    return found


def has_records(some: Windows) -> Flags:
    """Windows [S, T] with records."""
    present: Flags = record_counts(some) > 0
    return present


def fit(some: Windows, levels: Integers | None, seasonal: bool) -> Baseline:
    """The baseline of known-good windows; `levels` [S, 2]: the bins that positives were counted above."""
    if isinstance(some, Scores):
        return scores.fit(some, seasonal=seasonal)
    if isinstance(some, Rates):
        return proportions.fit_rates(some, seasonal=seasonal)
    if isinstance(some, HeavyTailed):
        return proportions.fit_heavy_tailed(some, levels, seasonal=seasonal)
    return categories.fit(some, seasonal=seasonal)


def relevel(old: Baseline, now: Windows, known: Floats) -> tuple[Baseline, Flags]:
    """`old`, learned from `known` records [S], at the level of `now`; of which series that has enough records."""
    if isinstance(now, Scores):
        return moves.relevel_scores(old, now, known)
    n, hits, margin = _hit_counts(old, now)
    return moves.relevel_proportions(old, now.start, n, hits, known, margin)


def run(baseline: Baseline, state: State, some: Windows) -> None:
    """`state` is that after these windows."""
    if isinstance(some, Scores):
        scores.run(baseline, state, some)
    elif isinstance(some, Rates):
        proportions.run_rates(baseline, state, some)
    elif isinstance(some, HeavyTailed):
        proportions.run_heavy_tailed(baseline, state, some)
    else:
        categories.run(baseline, state, some)


def blank_baseline(kind: SignalKind, tick_s: int, series: int) -> Baseline:
    """The baseline of series of which nothing is known: nothing alarms."""
    return serialization.take(_blank_baseline(kind, tick_s), np.zeros(series, np.int64))


def replace_rows(old: Baseline, rows: Numbers, new: Baseline) -> Baseline:
    """`old` with `new` in the place of these rows."""
    return serialization.take(serialization.join([old, new]), _order(old.series, rows))


def reset_rows(state: State, rows: Numbers, baseline: Baseline) -> State:
    """`state` with nothing known of these rows, which are looked at from where the others are."""
    if not len(rows):
        return state
    fresh = run_state.start(serialization.take(baseline, rows))
    fresh.until[:] = state.until[rows]
    return serialization.take(serialization.join([state, fresh]), _order(len(state.until), rows))


@cache
def _blank_baseline(kind: SignalKind, tick_s: int) -> Baseline:
    """Of one series."""
    no_cells = np.empty(0, np.dtype([(name, "<u8") for name in ("series", "at", "label", "n", "x", "y")]))
    start = np.arange(2, dtype=np.int64) * tick_s
    scale = Scale(np.zeros(1), np.ones(1))
    nothing = to_windows(kind, no_cells, np.empty(0, np.int64), 1, start, np.zeros((1, MAX_LABELS), np.uint64), scale)
    return fit(nothing, np.zeros((1, 2), np.int64), True)


def _hit_counts(old: Baseline, now: Rates | HeavyTailed | Categories) -> tuple[Floats, Floats, float]:
    """Records [S, T] and hits [S, C, T] as the detector of the kind counts them, and its margin of the odds."""
    if isinstance(now, Categories):
        n, hits = categories.to_channels(now.counts, old.active[:, :-1])
        return n, hits, categories.MARGIN
    hits = now.above.transpose(0, 2, 1) if isinstance(now, HeavyTailed) else now.hits[:, None]
    return now.n, hits, proportions.MARGIN


def _order(series: int, rows: Numbers) -> Numbers:
    order = np.arange(series)
    order[rows] = series + np.arange(len(rows))
    return order


def _to_grid(values: Numbers, place: Numbers, tick: Numbers, series: int, ticks: int) -> Floats:
    spread = np.zeros((series, ticks))
    spread[place, tick] = values
    return spread
