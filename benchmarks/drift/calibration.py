"""By how much scores must be moved and scaled so that, rounded and held in 0..1, they have the moments wanted."""

import numpy as np

from benchmarks.drift.plans import ScorePlan
from ragtide.drift.array_types import Floats

_SHIFTS = np.linspace(-0.5, 1.5, 401)


def placed(values: Floats, step: float) -> Floats:
    """Values as scores: rounded to whole steps, if any, and held in 0..1."""
    rounded = np.round(values / step) * step if step else values
    held: Floats = np.clip(rounded, 0, 1)
    return held


def shifts(plan: ScorePlan) -> Floats:
    """What to add to the scaled base in each window [T] so that the good scores have the plan's mean."""
    found = np.empty(len(plan.mean))
    for scale in np.unique(plan.scale):
        here = plan.scale == scale
        means = _moved(plan, scale).mean(axis=1)
        found[here] = np.interp(plan.mean[here], means, _SHIFTS)
    return found


def scale_for(plan: ScorePlan, mean: float, spread: float) -> float:
    """The scale at which good scores of this mean have this standard deviation, found by bisection."""
    low, high = 0.05, 20.0
    for _ in range(40):
        middle = (low * high) ** 0.5
        moved = _moved(plan, middle)
        reached = np.interp(mean, moved.mean(axis=1), moved.std(axis=1))
        low, high = (middle, high) if reached < spread else (low, middle)
    return high


def spread_of(plan: ScorePlan, mean: float) -> float:
    """The standard deviation of good scores of this mean, unscaled."""
    moved = _moved(plan, 1)
    return float(np.interp(mean, moved.mean(axis=1), moved.std(axis=1)))


def _moved(plan: ScorePlan, scale: float) -> Floats:
    """1,024 quantiles at each shift."""
    return placed(plan.base[32::64] * scale + _SHIFTS[:, None], plan.step)
