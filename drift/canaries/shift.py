"""Compare a judge's newest runs with its first ones, canary by canary. Pure.

The first five runs are the reference. The newest three, or as many as there are, are compared with them by a
permutation test, which takes the judge's own randomness from these runs. It assumes that canaries vary independently of
each other. A judge that is stricter on some days on all canaries breaks that: so a shift must also be larger than the
deviations of single runs of the reference.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import fmean
from typing import NamedTuple

from ragtide.drift.canaries.scores import Values
from ragtide.drift.stats import Remeasured, permutation_p

REFERENCE_RUNS = 5
_NEWEST_RUNS = 3  # that are tested together
_MIN_RUNS = 3  # of the reference in which a canary must have a score
_MIN_CANARIES = 8
_RUN_NOISE = 1.5  # times the largest deviation of a run of the reference


class JudgeShift(NamedTuple):
    """A judge's level on the same canaries: `baseline` in the reference, `value` since `since`, the first run of it.

    `before` is the run before `since`. `recent` is the shift of the newest runs together, `p` its p-value, and
    `run_noise` the largest deviation that counts as usual. `canaries` were compared, in `runs` runs since then.
    """

    baseline: float
    value: float
    since: datetime
    before: datetime
    until: datetime
    recent: float
    p: float
    run_noise: float
    canaries: int
    runs: int

    @property
    def shift(self) -> float:
        """How much higher the judge scores since then."""
        return self.value - self.baseline

    def is_significant(self, chance: float) -> bool:
        """Tell whether the shift of the newest runs is beyond what the judge's own randomness explains."""
        return self.p <= chance and abs(self.recent) > self.run_noise


def judge_shift(values: Values, reference: Sequence[datetime], later: Sequence[datetime]) -> JudgeShift | None:
    """Compare the later runs with the reference, both in order; None if too few runs or canaries have scores."""
    newest = later[-_NEWEST_RUNS:]
    if len(reference) < REFERENCE_RUNS or not newest:
        return None
    before = _by_canary(values, reference)
    after = _by_canary(values, newest)
    subjects = {
        name: Remeasured(before[name], after[name])
        for name in sorted(before.keys() & after.keys())
        if len(before[name]) >= _MIN_RUNS
    }
    newest_values = values.get(newest[-1], {})
    if len(subjects) < _MIN_CANARIES or len(subjects.keys() & newest_values.keys()) * 2 < len(before):
        return None  # also if half of the canaries have no score now: that is a matter of failures
    usual = {name: fmean(one.before) for name, one in subjects.items()}
    deviations = [_deviation(values.get(at, {}), usual) for at in later]
    first = _onset(deviations)
    since_onset = _by_canary(values, later[first:])
    shift = fmean(fmean(since_onset[name]) - level for name, level in usual.items() if name in since_onset)
    baseline = fmean(usual.values())
    return JudgeShift(
        baseline=baseline,
        value=baseline + shift,
        since=later[first],
        before=later[first - 1] if first else reference[-1],
        until=newest[-1],
        recent=fmean(one.difference for one in subjects.values()),
        p=permutation_p(list(subjects.values())),
        run_noise=_RUN_NOISE * _run_noise(values, reference, subjects),
        canaries=len(subjects),
        runs=len(later) - first,
    )


def _by_canary(values: Values, runs: Sequence[datetime]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for at in runs:
        for name, value in values.get(at, {}).items():
            found.setdefault(name, []).append(value)
    return found


def _deviation(run: Mapping[str, float], usual: Mapping[str, float]) -> float | None:
    """Return how much higher a run scores than usual; None if it scored too few canaries."""
    found = [run[name] - level for name, level in usual.items() if name in run]
    return fmean(found) if len(found) >= _MIN_CANARIES else None


def _onset(deviations: Sequence[float | None]) -> int:
    """Return the first of the newest runs that all deviate the same way, at least half as much as the newest does."""
    known = [one for one in deviations if one is not None]
    newest = known[-1] if known else 0.0
    first = len(deviations) - 1
    for at in range(len(deviations) - 1, -1, -1):
        one = deviations[at]
        if one is None:
            continue
        if one * newest <= 0 or abs(one) < abs(newest) / 2:
            break
        first = at
    return first


def _run_noise(values: Values, reference: Sequence[datetime], subjects: Mapping[str, Remeasured]) -> float:
    """Return the largest deviation of a run of the reference from the others."""
    found = []
    for at in reference:
        others = _by_canary(values, [other for other in reference if other != at])
        usual = {name: fmean(others[name]) for name in subjects if name in others}
        deviation = _deviation(values.get(at, {}), usual)
        found.append(0.0 if deviation is None else abs(deviation))
    return max(found)
