"""Series whose days differ in their noise, or that have troubles of their own at any time of some days."""

from dataclasses import replace

import numpy as np

from benchmarks.drift import plans
from benchmarks.drift.backdrop import backdrop, wander
from benchmarks.drift.clock import DAY, PER_DAY, WINDOWS
from benchmarks.drift.plans import Plan, RatePlan
from benchmarks.drift.unseen_counts import bursts
from ragtide.drift.array_types import Floats


def stormy_days(rng: np.random.Generator) -> Plan:
    """A level that wanders, on one day in five three to five times as far."""
    storm = rng.random(DAY[-1] + 1) < 0.2
    behind = backdrop("clean", rng)
    by = 0.01 * np.where(storm, rng.uniform(3, 5), 1.0)[DAY]
    return plans.smooth(replace(behind, level=behind.level + by * wander(0.9, rng)), rng)


def days_of_any_noise(rng: np.random.Generator) -> Plan:
    """A level that wanders, on each day as far as that day does: one in six twice as far as the median day."""
    behind = backdrop("clean", rng)
    by = 0.01 * np.exp(0.7 * rng.standard_normal(DAY[-1] + 1))[DAY]
    return plans.smooth(replace(behind, level=behind.level + by * wander(0.9, rng)), rng)


def daily_blocks(rng: np.random.Generator) -> Plan:
    """Scores that are worse for half an hour to three hours of each day, whenever."""
    behind = backdrop("clean", rng)
    return plans.smooth(replace(behind, level=behind.level - rng.uniform(0.03, 0.1) * blocks(rng)), rng)


def daily_slow_blocks(rng: np.random.Generator) -> Plan:
    """Requests that take up to twice as long for half an hour to three hours of each day, whenever."""
    plan = plans.latency(backdrop("clean", rng), rng)
    return replace(plan, shift=plan.shift + np.log(rng.uniform(1.3, 2)) * blocks(rng))


def three_slow_a_day(rng: np.random.Generator) -> Plan:
    """Three times a day, whenever, five to fifteen minutes in which all requests take twice as long."""
    plan = plans.latency(backdrop("clean", rng), rng)
    return replace(plan, shift=plan.shift + np.log(2) * bursts(3, int(rng.integers(1, 4)), rng))


def seldom_failing(rng: np.random.Generator) -> Plan:
    """One window in three days in which ten times as many requests fail."""
    behind = backdrop("clean", rng)
    return RatePlan(behind.n, plans.by_odds(np.full(WINDOWS, 0.01), np.where(bursts(1 / 3, 1, rng), 10, 1)))


def seldom_slow(rng: np.random.Generator) -> Plan:
    """One or two windows in three days in which all requests take half as long again to twice as long."""
    plan = plans.latency(backdrop("clean", rng), rng)
    on = bursts(1 / 3, int(rng.integers(1, 3)), rng)
    return replace(plan, shift=plan.shift + np.log(rng.uniform(1.5, 2)) * on)


def seldom_worse(rng: np.random.Generator) -> Plan:
    """One to three windows in three days in which scores are worse."""
    behind = backdrop("clean", rng)
    on = bursts(1 / 3, int(rng.integers(1, 4)), rng)
    return plans.smooth(replace(behind, level=behind.level - rng.uniform(0.05, 0.2) * on), rng)


def blocks(rng: np.random.Generator) -> Floats:
    """1 in one stretch of half an hour to three hours that begins on each day [T]."""
    on = np.zeros(WINDOWS)
    for day in range(DAY[-1] + 1):
        first = day * PER_DAY + rng.integers(0, PER_DAY)
        on[first : first + rng.integers(6, 37)] = 1.0
    return on
