"""Test whether the same subjects, measured again and again, give other values than before. Pure.

If nothing changed, the measurements of a subject may stand in any order. So each way to choose the later ones among
them is equally likely, for each subject by itself. The statistic is the mean over subjects of the mean after less the
mean before. Its tail is bounded by Chernoff: P(T >= t) <= exp(sum of log E exp(s V) - s t), for the best s. The bound
holds for any number of subjects and any noise. Where every subject is at its extreme it is the exact probability.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_STEPS = np.geomspace(0.05, 2_000.0, 96)  # of s, for values that differ by at most 1


class Remeasured(NamedTuple):
    """Values of one subject, at least one before and one after."""

    before: Sequence[float]
    after: Sequence[float]

    @property
    def difference(self) -> float:
        """Mean after less mean before."""
        return sum(self.after) / len(self.after) - sum(self.before) / len(self.before)


def permutation_p(subjects: Sequence[Remeasured]) -> float:
    """Return an upper bound of the two-sided p-value of the mean difference over the subjects; 1.0 without subjects."""
    possible = [_differences(one) for one in subjects]
    widest = max((float(np.ptp(one)) for one in possible), default=0.0)
    if not widest:
        return 1.0
    observed = sum(one.difference for one in subjects)
    return min(1.0, 2 * min(_tail(sign * observed, [sign * one for one in possible], widest) for sign in (1.0, -1.0)))


def _differences(one: Remeasured) -> Floats:
    """Return the difference for each choice of the later values."""
    values = np.array([*one.before, *one.after])
    later, earlier = len(one.after), len(one.before)
    chosen = np.array(list(combinations(range(len(values)), later)))
    sums = values[chosen].sum(axis=1)
    found: Floats = sums / later - (values.sum() - sums) / earlier
    return found


def _tail(observed: float, possible: Sequence[Floats], widest: float) -> float:
    """Bound the probability that a sum of independent choices, each among equally likely values, is so large."""
    steps = _STEPS / widest
    log = -steps * observed
    for values in possible:
        top = values.max()
        log += steps * top + np.log(np.exp(steps[:, None] * (values - top)).mean(axis=1))
    return float(np.exp(min(log.min(), 0.0)))
