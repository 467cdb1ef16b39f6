"""What a series does while nothing is wrong: how many records come, and how its level breathes."""

from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

from benchmarks.drift.clock import HOUR, WEEKEND, WINDOWS
from ragtide.drift.array_types import Floats, Integers, Numbers

REGIMES = {"clean": 0.4, "messy": 0.4, "sparse": 0.2}  # shares of all series
DENSE = (50, 500)  # records of a window
SPARSE = (2, 12)


@dataclass(frozen=True)
class Backdrop:
    """Records of each window [T], and how far the level stands from its mean [T], in the units of a score."""

    n: Integers
    level: Floats


def backdrop(regime: str, rng: np.random.Generator) -> Backdrop:
    """Traffic and level, both with a daily season; messy ones with weekends, bursts and a wandering level as well."""
    traffic = 1 + 0.4 * daily(rng)
    level = rng.uniform(0.01, 0.04) * daily(rng)
    if regime == "messy":
        traffic *= np.exp(0.3 * wander(0.8, rng)) * (1 - 0.4 * WEEKEND)
        level += rng.uniform(-0.03, 0.03) * WEEKEND
        level += rng.uniform(0.003, 0.01) * wander(rng.uniform(0.8, 0.95), rng)
    if regime == "sparse":
        return Backdrop(arrivals(rng.uniform(3, 10) * traffic, SPARSE, rng), level)
    return Backdrop(arrivals(rng.uniform(150, 400) * traffic, DENSE, rng), level)


def daily(rng: np.random.Generator) -> Floats:
    """A sine of a day's length with a phase of its own."""
    season: Floats = np.sin(2 * np.pi * (HOUR - rng.uniform(0, 24)) / 24)
    return season


def wander(phi: float, rng: np.random.Generator) -> Floats:
    """A stationary AR(1) path [T] of variance 1."""
    steps = rng.standard_normal(WINDOWS) * np.sqrt(1 - phi**2)
    path: Floats = lfilter([1.0], [1.0, -phi], steps, zi=[phi * rng.standard_normal()])[0]
    return path


def arrivals(expected: Numbers, limits: tuple[int, int], rng: np.random.Generator) -> Integers:
    """Poisson counts, held within the limits."""
    return np.clip(rng.poisson(expected), *limits).astype(np.int64)


def log_uniform(low: float, high: float, rng: np.random.Generator) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))
