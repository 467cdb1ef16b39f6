"""Failures, latencies and labels of shapes that the benchmark's own population lacks."""

from dataclasses import replace

import numpy as np
from scipy import stats

from benchmarks.drift import plans
from benchmarks.drift.backdrop import backdrop, wander
from benchmarks.drift.clock import DAY, HISTORY, HOUR, PER_DAY, WEEKEND, WINDOWS
from benchmarks.drift.plans import CategoryPlan, LatencyPlan, Plan, RatePlan
from ragtide.drift.array_types import Flags


def rate(usual: float, rng: np.random.Generator) -> Plan:
    """Failures around a usual share, with weekends and bursts."""
    return plans.rate(usual, backdrop("messy", rng))


def few_requests(rng: np.random.Generator) -> Plan:
    """One failure in 200, of few records a window."""
    return plans.rate(0.005, backdrop("sparse", rng))


def never_fails(rng: np.random.Generator) -> Plan:
    """No failure at all."""
    return RatePlan(backdrop("clean", rng).n, np.zeros(WINDOWS))


def restless_rate(rng: np.random.Generator) -> Plan:
    """Failures whose odds wander for hours, by a third."""
    behind = backdrop("clean", rng)
    return RatePlan(behind.n, plans.by_odds(np.full(WINDOWS, 0.03), np.exp(0.3 * wander(0.95, rng))))


def failing_job(rng: np.random.Generator) -> Plan:
    """Of every day a quarter of an hour to half of one in which three to six times as many requests fail."""
    behind = backdrop("messy", rng)
    on = (np.arange(WINDOWS) - rng.integers(0, PER_DAY)) % PER_DAY < rng.integers(3, 7)
    return RatePlan(behind.n, plans.by_odds(np.full(WINDOWS, 0.03), np.where(on, rng.uniform(3, 6), 1)))


def slow_job(rng: np.random.Generator) -> Plan:
    """The same, in which all requests take half as long again to twice as long."""
    plan = plans.latency(backdrop("messy", rng), rng)
    on = (np.arange(WINDOWS) - rng.integers(0, PER_DAY)) % PER_DAY < rng.integers(3, 7)
    return replace(plan, shift=plan.shift + np.log(rng.uniform(1.5, 2)) * on)


def failing_bursts(rng: np.random.Generator) -> Plan:
    """About once a day, at some minute or other, one window in which ten times as many requests fail."""
    behind = backdrop("clean", rng)
    return RatePlan(behind.n, plans.by_odds(np.full(WINDOWS, 0.01), np.where(bursts(1, 1, rng), 10, 1)))


def slow_bursts(rng: np.random.Generator) -> Plan:
    """The same, of one or two windows, in which all requests take half as long again to twice as long."""
    plan = plans.latency(backdrop("clean", rng), rng)
    on = bursts(1, int(rng.integers(1, 3)), rng)
    return replace(plan, shift=plan.shift + np.log(rng.uniform(1.5, 2)) * on)


def bursts(a_day: float, lasting: int, rng: np.random.Generator) -> Flags:
    """Windows of bursts that come so often a day, at random."""
    begins = rng.random(WINDOWS) < a_day / PER_DAY
    found: Flags = np.convolve(begins, np.ones(lasting))[:WINDOWS] > 0
    return found


def bunched_failures(rng: np.random.Generator) -> Plan:
    """One failure in a hundred, most of them in a few windows of many."""
    behind = backdrop("clean", rng)
    size = np.where(rng.random(WINDOWS) < 0.1, 6.0, 0.45)
    return RatePlan(behind.n, plans.by_odds(np.full(WINDOWS, 0.01), size))


def cached(rng: np.random.Generator) -> Plan:
    """Two in five answers come from a cache within 20 ms, the others take two seconds."""
    behind = backdrop("messy", rng)
    hit = rng.uniform(0.3, 0.45)
    hits = np.arange(plans.QUANTILES) < hit * plans.QUANTILES
    within = np.where(hits, plans.MIDDLES / hit, (plans.MIDDLES - hit) / (1 - hit))
    base = stats.norm.ppf(np.clip(within, 1e-6, 1 - 1e-6), np.log(np.where(hits, 0.02, 2)), np.where(hits, 0.3, 0.5))
    return LatencyPlan(behind.n, base, plans.LATENCY_UNIT * behind.level, np.zeros(WINDOWS))


def endless_tail(rng: np.random.Generator) -> Plan:
    """Latencies without a variance: a Pareto tail of exponent 1.1 from the median on."""
    behind = backdrop("clean", rng)
    body = stats.norm.ppf(np.minimum(plans.MIDDLES, 0.5), 0, 0.5)
    base = body + np.log(np.minimum((1 - plans.MIDDLES) / 0.5, 1)) / -1.1
    return LatencyPlan(behind.n, base, plans.LATENCY_UNIT * behind.level, np.zeros(WINDOWS))


def restless_latency(rng: np.random.Generator) -> Plan:
    """Latencies that wander for hours, by a tenth."""
    plan = plans.latency(backdrop("clean", rng), rng)
    return replace(plan, shift=plan.shift + 0.1 * wander(0.95, rng))


def few_latencies(rng: np.random.Generator) -> Plan:
    """A tail without a variance, of few records a window."""
    return replace(endless_tail(rng), n=backdrop("sparse", rng).n)


def timeouts(rng: np.random.Generator) -> Plan:
    """Latencies cut off at a limit that a tenth of the requests reaches."""
    plan = plans.latency(backdrop("clean", rng), rng)
    return replace(plan, base=np.minimum(plan.base, np.quantile(plan.base, 0.9)), shift=np.zeros(WINDOWS))


def three_labels(rng: np.random.Generator) -> Plan:
    """Three labels."""
    return plans.category(np.array([0.6, 0.3, 0.1]), backdrop("messy", rng), rng)


def flat_mix(rng: np.random.Generator) -> Plan:
    """Eight labels of similar frequency."""
    usual = rng.uniform(0.7, 1.3, 8) / np.arange(1, 9)
    return plans.category(usual / usual.sum(), backdrop("messy", rng), rng)


def forty_labels(rng: np.random.Generator) -> Plan:
    """Forty labels, half of them of less than one record in two hundred."""
    usual = 1 / np.arange(1, 41) ** 1.6
    return plans.category(usual / usual.sum(), backdrop("messy", rng), rng)


def many_labels(rng: np.random.Generator) -> Plan:
    """Two hundred labels, nearly all of them rare."""
    usual = 1 / np.arange(1, 201) ** 1.2
    return plans.category(usual / usual.sum(), backdrop("messy", rng), rng)


def label_to_come(rng: np.random.Generator) -> Plan:
    """Four labels, of which one was never seen."""
    usual = np.array([0.5, 0.3, 0.2, 0.0])
    return plans.category(usual, backdrop("messy", rng), rng)


def short_campaigns(rng: np.random.Generator) -> Plan:
    """About once a day, at some minute or other, a quarter of an hour in which a label comes five times as often."""
    plan = plans.languages(backdrop("clean", rng), rng)
    on = bursts(1, 3, rng)
    shares = plan.shares * (1 + 4 * on[:, None] * (np.arange(plan.shares.shape[1]) == 2))
    return CategoryPlan(plan.n, shares / shares.sum(axis=1, keepdims=True))


def first_weekend(rng: np.random.Generator) -> Plan:
    """Requests on workdays alone, until on the watched weekend they come as well, and take longer or less long."""
    plan = plans.latency(backdrop("messy", rng), rng)
    return replace(plan, n=np.where((WEEKEND > 0) & (np.arange(WINDOWS) < HISTORY), 0, plan.n))


def campaigns(rng: np.random.Generator) -> Plan:
    """A label that comes a little more often for two hours of some days, less than anybody minds."""
    plan = plans.languages(backdrop("clean", rng), rng)
    on = np.isin(DAY, rng.choice(21, 8, replace=False)) & (HOUR >= 10) & (HOUR < 12)
    shares = plan.shares * (1 + 0.15 * on[:, None] * (np.arange(plan.shares.shape[1]) == 2))
    return CategoryPlan(plan.n, shares / shares.sum(axis=1, keepdims=True))
