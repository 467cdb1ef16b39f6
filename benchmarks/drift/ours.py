"""ragtide's own detectors, given the aggregates of windows alone: fitted on the known-good days, then run."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.drift.clock import HISTORY, START, WINDOW_S
from benchmarks.drift.scoring import Judged, judged
from benchmarks.drift.series import Aggregates, Label
from ragtide.drift.array_types import Flags, Integers
from ragtide.drift.detectors import categories, proportions, run_state, scores
from ragtide.drift.detectors.arrays import Categories, HeavyTailed, Rates, RunResult, Scores, cut
from ragtide.drift.detectors.baseline import log_threshold
from ragtide.drift.detectors.e_detector import NO_EVIDENCE
from ragtide.drift.stats.multiple_testing import e_bh

Singles = npt.NDArray[np.float32]
OURS = "ours"
FLEET, FLEET_DAYS = "ours fleet 7 d", 7.0


@dataclass(frozen=True)
class Said:
    """What ours says of a series after each watched window [T]: whether it is in alarm, and the log e-value."""

    label: Label
    alarm: Flags
    evidence: Singles


def said(some: Sequence[Aggregates]) -> list[Said]:
    """Of each series of one kind."""
    watched = sequential(some)
    return [
        Said(one.label, alarm, evidence)
        for one, alarm, evidence in zip(some, watched.alarm, watched.evidence.astype(np.float32), strict=True)
    ]


def alone(found: Sequence[Said]) -> list[Judged]:
    """Every alarm is told."""
    return [judged(one.label, one.alarm) for one in found]


def together(found: Sequence[Said], run_days: float = FLEET_DAYS) -> list[Judged]:
    """An alarm is told once its evidence is enough for a run length of all these series, as jobs do where
    `drift.fleet_run_days` is set; and from then on until it is over.

    Each change is judged as if it came alone, among series that are well: of many at once less is asked.
    """
    alarm, evidence = (np.stack([getattr(one, name) for one in found], axis=1) for name in ("alarm", "evidence"))
    changed_at = np.array([one.label.at for one in found])
    threshold = log_threshold(WINDOW_S, 1 / run_days)
    told, standing = np.zeros(alarm.shape, bool), np.zeros(len(found), bool)
    for window, log_e in enumerate(evidence):
        well = changed_at > HISTORY + window
        calm = np.where(well, log_e, NO_EVIDENCE)
        believed = e_bh(calm, threshold)
        for place in np.flatnonzero(alarm[window] & ~standing & ~well):
            calm[place] = log_e[place]
            believed[place] = e_bh(calm, threshold)[place]
            calm[place] = NO_EVIDENCE
        told[window] = standing = alarm[window] & (standing | believed)
    return [judged(one.label, of_series) for one, of_series in zip(found, told.T, strict=True)]


def sequential(some: Sequence[Aggregates]) -> RunResult:
    """What the detector for the kind of these series, which is the same for all, says of the watched windows."""
    n, total, squares = (np.stack([getattr(one, name) for one in some]) for name in ("n", "total", "squares"))
    known, watched = slice(0, HISTORY), slice(HISTORY, None)
    match some[0].label.kind:
        case "score":
            batch = Scores(START, n, total, squares)
            baseline = scores.fit(cut(batch, known))
            return scores.run(baseline, run_state.start_state(baseline), cut(batch, watched))
        case "rate":
            yes = Rates(START, n, total)
            baseline = proportions.fit_rates(cut(yes, known))
            return proportions.run_rates(baseline, run_state.start_state(baseline), cut(yes, watched))
        case "latency":
            above = HeavyTailed(START, n, np.stack([one.counts for one in some]))
            baseline = proportions.fit_heavy_tailed(cut(above, known))
            return proportions.run_heavy_tailed(baseline, run_state.start_state(baseline), cut(above, watched))
        case "category":
            labels = Categories(START, _as_wide([one.counts for one in some]))
            baseline = categories.fit(cut(labels, known))
            return categories.run(baseline, run_state.start_state(baseline), cut(labels, watched))


def _as_wide(counts: Sequence[Integers]) -> Integers:
    """Counts [T, C] of series with different numbers of labels C, zeros where one has fewer."""
    widest = max(one.shape[1] for one in counts)
    return np.stack([np.pad(one, ((0, 0), (0, widest - one.shape[1]))) for one in counts])
