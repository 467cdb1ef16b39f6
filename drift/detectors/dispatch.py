"""One interface to the detectors of all kinds of windows: fit baselines, move them to another level, run detectors."""

from dataclasses import fields, replace

from ragtide.drift.array_types import Flags, Floats, Integers
from ragtide.drift.detectors import categories, proportions, relevel, scores
from ragtide.drift.detectors.arrays import Categories, HeavyTailed, Rates, RunResult, Scores
from ragtide.drift.detectors.baseline import Baseline
from ragtide.drift.detectors.run_state import State

Windows = Scores | Rates | HeavyTailed | Categories


def exclude_windows(some: Windows, excluded: Flags) -> Windows:
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


def fit_baseline(some: Windows, levels: Integers | None = None, *, seasonal: bool = True) -> Baseline:
    """Fit a baseline to good windows; without `seasonal` it has one level.

    `levels` [S, 2] are the bins that heavy-tailed metrics were counted above.
    """
    if isinstance(some, Scores):
        return scores.fit(some, seasonal=seasonal)
    if isinstance(some, Rates):
        return proportions.fit_rates(some, seasonal=seasonal)
    if isinstance(some, HeavyTailed):
        return proportions.fit_heavy_tailed(some, levels, seasonal=seasonal)
    return categories.fit(some, seasonal=seasonal)


def relevel_baseline(old: Baseline, now: Windows, known: Floats) -> tuple[Baseline, Flags]:
    """Move `old`, learned from `known` records [S], to the level of `now`; and which series have enough records."""
    if isinstance(now, Scores):
        return relevel.relevel_scores(old, now, known)
    if isinstance(now, Categories):
        n, hits = categories.to_channels(now.counts, old.active[:, :-1])
        return relevel.relevel_proportions(old, now.start, n, hits, known, categories.MARGIN)
    return relevel.relevel_proportions(old, now.start, now.n, channel_sums(now), known, proportions.MARGIN)


def run_detector(baseline: Baseline, state: State, some: Windows) -> RunResult:
    """Advance `state` in place by these windows."""
    if isinstance(some, Scores):
        return scores.run(baseline, state, some)
    if isinstance(some, Rates):
        return proportions.run_rates(baseline, state, some)
    if isinstance(some, HeavyTailed):
        return proportions.run_heavy_tailed(baseline, state, some)
    return categories.run(baseline, state, some)
