"""Agreement of two who say yes or no about the same cases: Cohen's kappa with its interval. Pure.

kappa = (po - pe) / (1 - pe), where po is the share of cases on which both agree, and pe the share expected by chance
from how often each says yes (Cohen 1960). Standard error by Fleiss, Cohen and Everitt (1969), equation 13.
"""

import math
from typing import NamedTuple

from ragtide.drift.stats.proportions import CONFIDENCE, Interval, z_score


class Agreements(NamedTuple):
    """Cases by what the first and the second say."""

    both: int
    first_only: int
    second_only: int
    neither: int

    @property
    def n(self) -> int:
        """All cases."""
        return sum(self)


class Kappa(NamedTuple):
    """Kappa, and its interval; None where all cases are alike."""

    value: float
    interval: Interval | None


def cohens_kappa(cases: Agreements, confidence: float = CONFIDENCE) -> Kappa | None:
    """Return kappa; None if both say the same about every case, so that agreement by chance is certain."""
    n = cases.n
    if not n:
        return None
    yes_yes, yes_no, no_yes, no_no = (count / n for count in cases)
    first, second = yes_yes + yes_no, yes_yes + no_yes
    chance = first * second + (1 - first) * (1 - second)
    if chance >= 1:
        return None
    agreed = yes_yes + no_no
    kappa = (agreed - chance) / (1 - chance)
    same = sum(
        share * (1 - (a + b) * (1 - kappa)) ** 2
        for share, a, b in ((yes_yes, first, second), (no_no, 1 - first, 1 - second))
    )
    different = (1 - kappa) ** 2 * (yes_no * (second + 1 - first) ** 2 + no_yes * (1 - second + first) ** 2)
    variance = (same + different - (kappa - chance * (1 - kappa)) ** 2) / (n * (1 - chance) ** 2)
    if variance <= 0:
        return Kappa(kappa, None)
    reach = z_score(confidence) * math.sqrt(variance)
    return Kappa(kappa, Interval(max(-1.0, kappa - reach), min(1.0, kappa + reach)))
