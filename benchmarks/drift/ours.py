"""ragwatch's own detectors, given the aggregates of windows alone: fitted on the known-good days, then run."""

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.drift.clock import HISTORY, START
from benchmarks.drift.series import Aggregates
from drift.detectors import categories, positives, rates, scores, watching
from drift.detectors.series import Categories, Flags, Integers, Positives, Rates, Scores, cut


def sequential(some: Sequence[Aggregates]) -> Flags:
    """Alarms [series, watched windows] of the detector for the kind of these series, which is the same for all."""
    n, total, squares = (np.stack([getattr(one, name) for one in some]) for name in ("n", "total", "squares"))
    known, watched = slice(0, HISTORY), slice(HISTORY, None)
    match some[0].label.kind:
        case "score":
            batch = Scores(START, n, total, squares)
            baseline = scores.fit(cut(batch, known))
            return scores.run(baseline, watching.start(baseline), cut(batch, watched)).alarm
        case "rate":
            yes = Rates(START, n, total)
            baseline = rates.fit(cut(yes, known))
            return rates.run(baseline, watching.start(baseline), cut(yes, watched)).alarm
        case "latency":
            above = Positives(START, n, np.stack([one.counts for one in some]))
            baseline = positives.fit(cut(above, known))
            return positives.run(baseline, watching.start(baseline), cut(above, watched)).alarm
        case "category":
            labels = Categories(START, _as_wide([one.counts for one in some]))
            baseline = categories.fit(cut(labels, known))
            return categories.run(baseline, watching.start(baseline), cut(labels, watched)).alarm


def _as_wide(counts: Sequence[Integers]) -> Integers:
    """Counts [T, C] of series with different numbers of labels C, zeros where one has fewer."""
    widest = max(one.shape[1] for one in counts)
    return np.stack([np.pad(one, ((0, 0), (0, widest - one.shape[1]))) for one in counts])


OURS: dict[str, Callable[[Sequence[Aggregates]], Flags]] = {"ours": sequential}
