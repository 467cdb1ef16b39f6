"""The changes that are to be found: each makes another plan of a plan, from a window on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from benchmarks.drift.calibration import scale_for, spread_of
from benchmarks.drift.clock import PER_DAY, WINDOWS
from benchmarks.drift.plans import CategoryPlan, LatencyPlan, Plan, RatePlan, ScorePlan, by_odds
from ragtide.drift.array_types import Floats

Kind = Literal["score", "rate", "latency", "category"]
BAD_MEAN = 0.15  # of answers gone bad, uniform in 0..0.3
RAMP = 2 * PER_DAY
SPIKE = 6


@dataclass(frozen=True)
class Change:
    """A change of one kind of series, and for how many windows it counts as found."""

    kind: Kind
    apply: Callable[[Plan, int, np.random.Generator], Plan]
    lasts: int = WINDOWS


def step(by: float, plan: Plan, at: int, rng: np.random.Generator) -> Plan:
    """The mean of scores falls: for half of the series all answers are worse, for the others some are bad."""
    assert isinstance(plan, ScorePlan)
    after = _after(at)
    if rng.random() < 0.5:
        return replace(plan, mean=plan.mean - by * after)
    return replace(plan, bad=by / (plan.mean[at:].mean() - BAD_MEAN) * after)


def ramp(by: float, plan: Plan, at: int, rng: np.random.Generator) -> Plan:
    """The mean of scores falls in a straight line over 48 hours, and stays there."""
    assert isinstance(plan, ScorePlan)
    return replace(plan, mean=plan.mean - by * np.clip((np.arange(WINDOWS) - at + 1) / RAMP, 0, 1))


def spike(by: float, plan: Plan, at: int, rng: np.random.Generator) -> Plan:
    """The mean of scores falls for half an hour."""
    assert isinstance(plan, ScorePlan)
    return replace(plan, mean=plan.mean - by * (_after(at) - _after(at + SPIKE)))


def wider(times: float, plan: Plan, at: int, rng: np.random.Generator) -> Plan:
    """The standard deviation of scores grows; the mean stays."""
    assert isinstance(plan, ScorePlan)
    mean = float(plan.mean[at:].mean())
    scale = scale_for(plan, mean, times * spread_of(plan, mean))
    return replace(plan, scale=np.where(_after(at) > 0, scale, plan.scale))


def odds(times: float, plan: Plan, at: int, rng: np.random.Generator) -> Plan:
    """The odds of a failure are multiplied."""
    assert isinstance(plan, RatePlan)
    return replace(plan, probability=by_odds(plan.probability, np.where(_after(at) > 0, times, 1.0)))


def begins(share: float, plan: Plan, at: int, rng: np.random.Generator) -> Plan:
    """Another share of all records fails."""
    assert isinstance(plan, RatePlan)
    return replace(plan, probability=plan.probability + share * _after(at))


def slower(times: float, plan: Plan, at: int, rng: np.random.Generator) -> Plan:
    """Every request takes longer."""
    assert isinstance(plan, LatencyPlan)
    return replace(plan, shift=plan.shift + np.log(times) * _after(at))


def some_slower(share: float, plan: Plan, at: int, rng: np.random.Generator) -> Plan:
    """A share of the requests takes five times as long."""
    assert isinstance(plan, LatencyPlan)
    return replace(plan, slow=share * _after(at))


def mix(share: float, plan: Plan, at: int, rng: np.random.Generator) -> Plan:
    """A share of all records has another label than the most frequent one."""
    assert isinstance(plan, CategoryPlan)
    shares = plan.shares.copy()
    first = int(shares.mean(axis=0).argmax())
    other = int(rng.choice(np.delete(np.arange(shares.shape[1]), first)))
    shares[at:, first] -= share
    shares[at:, other] += share
    return replace(plan, shares=shares)


def new_label(share: float, plan: Plan, at: int, rng: np.random.Generator) -> Plan:
    """A share of all records has the last label, which no record had before."""
    assert isinstance(plan, CategoryPlan)
    shares = plan.shares.copy()
    shares[at:] *= 1 - share
    shares[at:, -1] += share
    return replace(plan, shares=shares)


def _after(at: int) -> Floats:
    """0 before the change, 1 from it on."""
    return (np.arange(WINDOWS) >= at).astype(np.float64)


def odds_between(before: float, after: float) -> float:
    return after / (1 - after) * (1 - before) / before


CHANGES: dict[str, Change] = {
    "-0.05": Change("score", partial(step, 0.05)),
    "-0.10": Change("score", partial(step, 0.10)),
    "-0.20": Change("score", partial(step, 0.20)),
    "sd x 1.5": Change("score", partial(wider, 1.5)),
    "ramp -0.10": Change("score", partial(ramp, 0.10)),
    "spike -0.20": Change("score", partial(spike, 0.20), lasts=2 * SPIKE),
    "1 to 3 %": Change("rate", partial(odds, odds_between(0.01, 0.03))),
    "1 to 2 %": Change("rate", partial(odds, odds_between(0.01, 0.02))),
    "latency x 1.3": Change("latency", partial(slower, 1.3)),
    "5 % x 5": Change("latency", partial(some_slower, 0.05)),
    "8 % of mix": Change("category", partial(mix, 0.08)),
}
