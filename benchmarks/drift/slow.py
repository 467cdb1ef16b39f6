"""Shapes on which detectors were slow: series that wander or trend, and changes that few records show.

Changes that a simple detector finds within half an hour took ours hours on them. Made before its mend, and kept.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.drift import plans
from benchmarks.drift import unseen_counts as counts
from benchmarks.drift import unseen_scores as scores
from benchmarks.drift.backdrop import backdrop, wander
from benchmarks.drift.clock import PER_DAY, WINDOWS
from benchmarks.drift.plans import Plan
from benchmarks.drift.unseen import STEPS, Shape

WANDER = 0.02  # standard deviation of a level that wanders
_A_WEEK = 0.02


def wandering(phi: float, rng: np.random.Generator) -> Plan:
    """A level that wanders: an AR(1) of this coefficient from window to window."""
    behind = backdrop("clean", rng)
    return plans.smooth(replace(behind, level=behind.level + WANDER * wander(phi, rng)), rng)


def trending(rng: np.random.Generator) -> Plan:
    """A level that rises or falls by 0.02 a week, all the time."""
    behind = backdrop("clean", rng)
    by = rng.choice([-_A_WEEK, _A_WEEK]) / (7 * PER_DAY)
    return plans.smooth(replace(behind, level=behind.level + by * np.arange(WINDOWS)), rng)


def sparse(rng: np.random.Generator) -> Plan:
    """Two to twelve records a window."""
    return plans.smooth(backdrop("sparse", rng), rng)


def rare_failures(rng: np.random.Generator) -> Plan:
    """One failure in 250 to 1,000."""
    return plans.rate(rng.uniform(0.001, 0.004), backdrop("clean", rng))


def failures(rng: np.random.Generator) -> Plan:
    """One failure in 100, with weekends, bursts and a level that wanders."""
    return plans.rate(0.01, backdrop("messy", rng))


def latencies(rng: np.random.Generator) -> Plan:
    """Latencies, with weekends, bursts and a level that wanders."""
    return plans.latency(backdrop("messy", rng), rng)


_WORSE = ("-0.05", "-0.10")
SLOW: dict[str, Shape] = {
    "AR 0.9": Shape(partial(wandering, 0.9), _WORSE),
    "AR 0.95": Shape(partial(wandering, 0.95), _WORSE),
    "AR 0.99": Shape(partial(wandering, 0.99), _WORSE),
    "trend 0.02 a week": Shape(trending, _WORSE),
    "uneven days": Shape(scores.uneven_days, _WORSE),
    "sparse": Shape(sparse, ("-0.10", "-0.20")),
    "spike, sparse": Shape(sparse, ("spike -0.20",)),
    "1 record in 3 windows": Shape(scores.trickle, STEPS[1:]),
    "rates of 0.1 to 0.4 %": Shape(rare_failures, ("odds x 5",)),
    "rate 1 %": Shape(failures, ("1 to 3 %",)),
    "rate AR 0.95": Shape(counts.restless_rate, ("1 to 3 %",)),
    "latency": Shape(latencies, ("latency x 1.3",)),
    "latency AR 0.95": Shape(counts.restless_latency, ("latency x 1.3",)),
}
