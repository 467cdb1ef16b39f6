"""How often something happens here and elsewhere, and how sure that is. Pure; intervals are of 95 % unless told."""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

CONFIDENCE = 0.95
_HALF = 0.5


class Share(NamedTuple):
    """`hits` of `n`; what is asked of it needs an `n` that is not 0."""

    hits: int
    n: int

    @property
    def value(self) -> float:
        """From 0 to 1."""
        return self.hits / self.n


class Interval(NamedTuple):
    """Both ends belong to it."""

    low: float
    high: float


def z_score(confidence: float) -> float:
    """How many standard errors an interval of a normal estimate reaches to either side."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


def wilson(share: Share, confidence: float = CONFIDENCE) -> Interval:
    """Of a share: the score interval (Wilson 1927)."""
    z = z_score(confidence)
    n, p, z2 = share.n, share.value, z**2
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    reach = z / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return Interval(max(0.0, middle - reach), min(1.0, middle + reach))


def difference(here: Share, there: Share, confidence: float = CONFIDENCE) -> Interval:
    """Of `here` less `there`: the hybrid score interval (Newcombe 1998, method 10)."""
    a, b, found = wilson(here, confidence), wilson(there, confidence), here.value - there.value
    below = math.hypot(here.value - a.low, b.high - there.value)
    above = math.hypot(a.high - here.value, there.value - b.low)
    return Interval(found - below, found + above)


def fisher_p(here: Share, there: Share) -> float:
    """p of so many more hits here, were it all the same: Fisher's exact test, one-sided."""
    from scipy.stats import hypergeom

    return float(hypergeom.sf(here.hits - 1, here.n + there.n, here.hits + there.hits, here.n))


def fisher_p_values(pairs: Sequence[tuple[Share, Share]]) -> list[float]:
    """`fisher_p` of each pair (here, there), worked out together: of thousands a hundred times as fast."""
    from scipy.stats import hypergeom

    a, n, b, m = np.array([(*here, *there) for here, there in pairs], np.int64).reshape(-1, 4).T
    return [float(p) for p in hypergeom.sf(a - 1, n + m, a + b, n)]


class Lift(NamedTuple):
    """How many times as often, and its interval."""

    value: float
    low: float
    high: float


def lift(here: Share, there: Share) -> Lift:
    """Of `here` over `there`, half a case added to each count so that none divides by 0 (Walter 1975, Katz 1978)."""
    a, n, b, m = here.hits + _HALF, here.n + _HALF, there.hits + _HALF, there.n + _HALF
    middle = math.log(a / n) - math.log(b / m)
    reach = z_score(CONFIDENCE) * math.sqrt(1 / a - 1 / n + 1 / b - 1 / m)
    return Lift(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach))
