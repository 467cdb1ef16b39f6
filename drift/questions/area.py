"""The area under a ROC curve and how sure it is, also where the same question was asked again and again. Pure.

How often a number of one sample lies above one of another, ties half. Its variance is DeLong's (1988); questions that
are the same are one piece of evidence and no more, so that what they add is summed first (Obuchowski 1997).
"""

import math
from typing import Literal, NamedTuple

import numpy as np

from drift.detectors.series import Floats, Integers


class Area(NamedTuple):
    """The area, and its standard error; infinite where all of a sample are the same question."""

    value: float
    error: float


def area(new: Floats, old: Floats, same_new: Integers, same_old: Integers) -> Area:
    """How far `new` [n] lies above `old` [m], neither of them empty; the same number in `same_*`: the same question."""
    above = (_below(old, new) + _below(old, new, "right")) / 2 / len(old)  # of each new one: the old ones below it
    under = 1 - (_below(new, old) + _below(new, old, "right")) / 2 / len(new)
    value = float(above.mean())
    if min(len(np.unique(same_new)), len(np.unique(same_old))) < 2:
        return Area(value, math.inf)
    questions, place = np.unique(np.concatenate([same_new, same_old]), return_inverse=True)
    of_new = np.bincount(place[: len(new)], above - value, len(questions)) / len(new)
    of_old = np.bincount(place[len(new) :], under - value, len(questions)) / len(old)
    variance = _corrected(same_new) * float(of_new @ of_new) + _corrected(same_old) * float(of_old @ of_old)
    variance += 2 * _corrected(questions) * float(of_new @ of_old)
    return Area(value, math.sqrt(max(variance, 0.0)))


def _below(some: Floats, than: Floats, side: Literal["left", "right"] = "left") -> Integers:
    return np.searchsorted(np.sort(some), than, side=side)


def _corrected(same: Integers) -> float:
    questions = len(np.unique(same))
    return questions / (questions - 1)
