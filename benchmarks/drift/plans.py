"""How the records of a series are distributed in each window, by kind of metric; a change is another such plan.

Continuous values are drawn as quantiles: `base` holds 65,536 of them, at the middles of as many equal shares of the
distribution, and a record takes one at random. So tails end where one record in 131,072 would lie.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from benchmarks.drift.backdrop import Backdrop, log_uniform
from ragtide.drift.array_types import Floats, Integers

QUANTILES = 65_536
MIDDLES: Floats = (np.arange(QUANTILES) + 0.5) / QUANTILES
_GRID = np.linspace(0, 1, 20_001)
LANGUAGES = 8
# One unit of a backdrop's level, which is a score's, in the logarithms of odds, of seconds and of shares.
RATE_UNIT, LATENCY_UNIT, CATEGORY_UNIT = 6.0, 4.0, 4.0

Records = npt.NDArray[np.float32]


@dataclass(frozen=True)
class ScorePlan:
    """Scores: `base` scaled by `scale`, moved so that their mean is `mean`, rounded to whole `step`s, held in 0..1.

    A share `bad` of the records is uniform in 0..0.3 instead.
    """

    n: Integers
    base: Floats
    step: float
    mean: Floats
    scale: Floats
    bad: Floats


@dataclass(frozen=True)
class RatePlan:
    """Failures: each record is one with this probability."""

    n: Integers
    probability: Floats


@dataclass(frozen=True)
class LatencyPlan:
    """Seconds, as logarithms: `base` moved by `shift`, and a share `slow` of the requests takes five times as long."""

    n: Integers
    base: Floats
    shift: Floats
    slow: Floats


@dataclass(frozen=True)
class CategoryPlan:
    """Labels with these shares [T, C]."""

    n: Integers
    shares: Floats


Plan = ScorePlan | RatePlan | LatencyPlan | CategoryPlan


def score(base: Floats, step: float, mean: float, behind: Backdrop) -> ScorePlan:
    """Scores that follow the backdrop's level around a mean."""
    still = np.zeros(len(behind.n))
    return ScorePlan(behind.n, base - base.mean(), step, mean + behind.level, still + 1, still)


def smooth(behind: Backdrop, rng: np.random.Generator) -> ScorePlan:
    """Beta scores: mean 0.65 to 0.85, standard deviation 0.07 to 0.18."""
    mean, weight = rng.uniform(0.65, 0.85), rng.uniform(6, 25)
    return score(beta(mean, weight), 0, mean, behind)


def atom(behind: Backdrop, rng: np.random.Generator) -> ScorePlan:
    """Normal scores cut off at 1, where a quarter to a half of them lies."""
    spread = rng.uniform(0.15, 0.25)
    base = stats.norm.ppf(MIDDLES, rng.uniform(0.85, 1.0), spread)
    return score(base, 0, np.clip(base, 0, 1).mean(), behind)


def levels(behind: Backdrop, rng: np.random.Generator) -> ScorePlan:
    """Five levels, 0 to 1 in quarters: normal scores, rounded."""
    base = stats.norm.ppf(MIDDLES, rng.uniform(0.6, 0.75), rng.uniform(0.15, 0.25))
    return score(base, 0.25, np.clip(np.round(base * 4) / 4, 0, 1).mean(), behind)


def beta(mean: float, weight: float) -> Floats:
    """Quantiles of the beta distribution with variance mean (1 - mean) / (weight + 1)."""
    return quantiles(stats.beta(mean * weight, (1 - mean) * weight).cdf)


def quantiles(cdf: Callable[[Floats], Floats]) -> Floats:
    """The quantiles of a distribution on 0..1, to a twenty-thousandth: scipy's own take as long as all the rest."""
    found: Floats = np.interp(MIDDLES, cdf(_GRID), _GRID)
    return found


def rate(usual: float, behind: Backdrop) -> RatePlan:
    """Failures around a usual share."""
    return RatePlan(behind.n, by_odds(np.full(len(behind.n), usual), np.exp(RATE_UNIT * behind.level)))


def by_odds(probability: Floats, times: Floats | float) -> Floats:
    """Probabilities whose odds are multiplied."""
    odds: Floats = probability / (1 - probability) * times
    return odds / (1 + odds)


def latency(behind: Backdrop, rng: np.random.Generator) -> LatencyPlan:
    """A log-normal body with median 0.3 to 3 s, and a Pareto tail of the slowest 2 to 5 %."""
    spread, tail, alpha = rng.uniform(0.4, 0.8), rng.uniform(0.02, 0.05), rng.uniform(1.5, 2.5)
    body = stats.norm.ppf(np.minimum(MIDDLES, 1 - tail), np.log(log_uniform(0.3, 3, rng)), spread)
    beyond = np.log(np.minimum((1 - MIDDLES) / tail, 1)) / -alpha
    return LatencyPlan(behind.n, body + beyond, LATENCY_UNIT * behind.level, np.zeros(len(behind.n)))


def category(usual: Floats, behind: Backdrop, rng: np.random.Generator) -> CategoryPlan:
    """Labels around usual shares [C]; the backdrop's level lifts some and lowers others."""
    lifted = usual * np.exp(CATEGORY_UNIT * behind.level[:, None] * rng.uniform(-1, 1, len(usual)))
    return CategoryPlan(behind.n, lifted / lifted.sum(axis=1, keepdims=True))


def languages(behind: Backdrop, rng: np.random.Generator) -> CategoryPlan:
    """Eight languages, each about half as frequent as the one before; the first is that of half of the records."""
    usual = rng.uniform(0.7, 1.3, LANGUAGES) * rng.uniform(0.4, 0.6) ** np.arange(LANGUAGES)
    return category(usual / usual.sum(), behind, rng)
