"""Scores of shapes that the benchmark's own population lacks."""

from dataclasses import replace

import numpy as np
from scipy import stats

from benchmarks.drift import plans
from benchmarks.drift.backdrop import Backdrop, arrivals, backdrop, daily, log_uniform, wander
from benchmarks.drift.clock import DAY, HISTORY, HOUR, PER_DAY, WEEKEND, WINDOWS
from benchmarks.drift.plans import Plan, ScorePlan
from ragtide.drift.array_types import Flags, Floats, Numbers

ANY = (0, 5_000)  # records of a window


def bimodal(rng: np.random.Generator) -> Plan:
    """Most answers good, a tenth to a third of them bad, little between."""
    share = rng.uniform(0.1, 0.33)
    low, high = stats.beta(4, 12), stats.beta(18, 2)
    base = plans.quantiles(lambda score: share * low.cdf(score) + (1 - share) * high.cdf(score))
    return plans.score(base, 0, float(base.mean()), backdrop("clean", rng))


def near_one(rng: np.random.Generator) -> Plan:
    """Scores that hardly leave 0.98."""
    behind = backdrop("clean", rng)
    return plans.score(plans.beta(0.98, 60), 0, 0.98, replace(behind, level=behind.level / 8))


def weekly(rng: np.random.Generator) -> Plan:
    """A wave of a week's length and none of a day's."""
    level = rng.uniform(0.01, 0.03) * np.sin(2 * np.pi * (np.arange(WINDOWS) / PER_DAY / 7 + rng.random()))
    return plans.smooth(Backdrop(arrivals(_busy(rng), ANY, rng), level), rng)


def hourly_bursts(rng: np.random.Generator) -> Plan:
    """A job asks four times as much as people do, in the first five minutes of each hour, and is answered worse."""
    burst = np.arange(WINDOWS) % 12 == 0
    behind = backdrop("clean", rng)
    n = np.where(burst, arrivals(4 * behind.n, ANY, rng), behind.n)
    return plans.smooth(Backdrop(n, behind.level - rng.uniform(0.02, 0.06) * burst), rng)


def growing(rng: np.random.Generator) -> Plan:
    """Traffic that grows by 5 % a day."""
    behind = backdrop("clean", rng)
    return plans.smooth(replace(behind, n=arrivals(behind.n * 0.6 * 1.05**DAY, ANY, rng)), rng)


def silent_nights(rng: np.random.Generator) -> Plan:
    """No traffic for six hours of every night."""
    behind = backdrop("clean", rng)
    return plans.smooth(replace(behind, n=np.where(HOUR < 6, 0, behind.n)), rng)


def gaps(rng: np.random.Generator) -> Plan:
    """A tenth of the windows missing, and half a day in the history and in the watched days."""
    behind = backdrop("messy", rng)
    n = np.where(rng.random(WINDOWS) < 0.1, 0, behind.n)
    for first in (rng.integers(0, HISTORY - 144), rng.integers(HISTORY, WINDOWS - 144)):
        n[first : first + 144] = 0
    return plans.smooth(replace(behind, n=n), rng)


def deploys(rng: np.random.Generator) -> Plan:
    """A level that each deploy, one in two days, moves by less than anybody minds."""
    behind = backdrop("clean", rng)
    deployed = np.cumsum(rng.random(WINDOWS) < 1 / (2 * PER_DAY))
    return plans.smooth(replace(behind, level=behind.level + rng.uniform(-0.004, 0.004, WINDOWS)[deployed]), rng)


def restless(rng: np.random.Generator) -> Plan:
    """A level that wanders for hours, as far as a change would take it."""
    behind = backdrop("clean", rng)
    return plans.smooth(replace(behind, level=behind.level + 0.02 * wander(0.95, rng)), rng)


def restless_spread(rng: np.random.Generator) -> Plan:
    """Scores whose scatter wanders for hours."""
    plan = plans.score(plans.beta(0.7, 15), 0, 0.7, backdrop("clean", rng))
    scale: Floats = np.round(20 * np.exp(0.08 * wander(0.95, rng))) / 20
    return replace(plan, scale=scale)


def uneven_days(rng: np.random.Generator) -> Plan:
    """A level of its own for every day."""
    behind = backdrop("clean", rng)
    return plans.smooth(replace(behind, level=behind.level + 0.02 * rng.standard_normal(21)[DAY]), rng)


def clustered(rng: np.random.Generator) -> Plan:
    """Records of a window alike, as where one user asks the same again and again."""
    behind = backdrop("clean", rng)
    return plans.smooth(replace(behind, level=behind.level + 0.03 * wander(0, rng)), rng)


def daylight_saving(rng: np.random.Generator) -> Plan:
    """People come an hour earlier from the second watched day on, and ask as they always did at that hour."""
    behind = backdrop("clean", rng)
    from_then = np.arange(WINDOWS) >= HISTORY + PER_DAY
    season = 0.05 * daily(rng)
    expected = _busy(rng) * (1 + 0.5 * daily(rng))
    level = np.where(from_then, np.roll(season, -12), season)
    n = arrivals(np.where(from_then, np.roll(expected, -12), expected), ANY, rng)
    return plans.smooth(replace(behind, n=n, level=level), rng)


def office_hours(rng: np.random.Generator) -> Plan:
    """From nine to six on workdays another level and ten times the traffic, at once."""
    office = (HOUR >= 9) & (HOUR < 18) & (WEEKEND == 0)
    n = arrivals(np.where(office, 1.5, 0.15) * _busy(rng), ANY, rng)
    return plans.smooth(Backdrop(n, rng.uniform(-0.04, 0.04) * office), rng)


def incident_before(rng: np.random.Generator) -> Plan:
    """Six bad hours among the known-good days."""
    behind = backdrop("clean", rng)
    first = int(rng.integers(0, HISTORY - 72))
    level = behind.level.copy()
    level[first : first + 72] -= 0.2
    return plans.smooth(replace(behind, level=level), rng)


def always_one(rng: np.random.Generator) -> Plan:
    """A score that is 1 for every record."""
    behind = backdrop("clean", rng)
    still = np.zeros(WINDOWS)
    return ScorePlan(behind.n, np.zeros(plans.QUANTILES), 0, still + 1, still + 1, still)


def trickle(rng: np.random.Generator) -> Plan:
    """One record in three windows."""
    return plans.smooth(replace(backdrop("clean", rng), n=arrivals(np.full(WINDOWS, 0.33), ANY, rng)), rng)


def weekly_batch(rng: np.random.Generator) -> Plan:
    """On Sunday nights a job asks ten times as much as people do, and is answered worse."""
    behind = backdrop("clean", rng)
    batch = (DAY % 7 == 6) & (HOUR >= 2) & (HOUR < 4)
    n = np.where(batch, arrivals(10 * behind.n, ANY, rng), behind.n)
    return plans.smooth(Backdrop(n, behind.level - rng.uniform(0.02, 0.06) * batch), rng)


def first_weekend(rng: np.random.Generator) -> Plan:
    """Records on workdays alone, until on the watched weekend there are some as well, of a level of their own."""
    behind = backdrop("messy", rng)
    return plans.smooth(replace(behind, n=np.where((WEEKEND > 0) & (np.arange(WINDOWS) < HISTORY), 0, behind.n)), rng)


def nightly_job(rng: np.random.Generator) -> Plan:
    """At some minute of every day a job of 15 to 30 minutes asks two to six times as much, and is answered worse."""
    return _answered_worse(_minutes(rng), rng)


def workday_job(rng: np.random.Generator) -> Plan:
    """The same on workdays alone."""
    return _answered_worse(_minutes(rng) & (WEEKEND == 0), rng)


def unpunctual_job(rng: np.random.Generator) -> Plan:
    """The same up to ten minutes late, not on every day, and not always as bad."""
    first, on = int(rng.integers(0, PER_DAY - 10)), np.zeros(WINDOWS)
    for day in np.flatnonzero(rng.random(21) < 0.9):
        late = day * PER_DAY + first + rng.integers(0, 3)
        on[late : late + 5] = rng.uniform(0.6, 1.4)
    return _answered_worse(on, rng)


def job_of_one_day(rng: np.random.Generator) -> Plan:
    """The same on one day of the week."""
    return _answered_worse(_minutes(rng) & (rng.integers(0, 7) == DAY % 7), rng)


def step_before(rng: np.random.Generator) -> Plan:
    """A release among the known-good days after which all answers were a little worse."""
    behind = backdrop("clean", rng)
    since = np.arange(WINDOWS) >= rng.integers(3 * PER_DAY, 11 * PER_DAY)
    return plans.smooth(replace(behind, level=behind.level - 0.03 * since), rng)


def creeping(rng: np.random.Generator) -> Plan:
    """A level that falls or rises so slowly that in the watched week it goes less far than anybody minds."""
    behind = backdrop("clean", rng)
    trend = rng.uniform(-0.001, 0.001) * np.arange(WINDOWS) / PER_DAY
    return plans.smooth(replace(behind, level=behind.level + trend), rng)


def noisy_nights(rng: np.random.Generator) -> Plan:
    """Scores twice as scattered at one time of the day as at the other."""
    plan = plans.score(plans.beta(0.7, 30), 0, 0.7, backdrop("messy", rng))
    return replace(plan, scale=np.round(1.5 + 0.5 * daily(rng), 1))


def rare_zeros(rng: np.random.Generator) -> Plan:
    """Few records a window, nearly all of them near 1, one in fifty 0."""
    base = np.where(plans.MIDDLES < 0.02, 0.0, 0.95 + 0.05 * plans.MIDDLES)
    behind = backdrop("sparse", rng)
    return plans.score(base, 0, float(base.mean()), replace(behind, level=behind.level / 10))


def _minutes(rng: np.random.Generator) -> Flags:
    """Of each day the windows of three to six from some time of the day on."""
    first, length = rng.integers(0, PER_DAY), rng.integers(3, 7)
    found: Flags = (np.arange(WINDOWS) - first) % PER_DAY < length
    return found


def _answered_worse(on: Numbers, rng: np.random.Generator) -> Plan:
    behind = backdrop("clean", rng)
    n = np.where(on > 0, arrivals(rng.uniform(2, 6) * behind.n, ANY, rng), behind.n)
    return plans.smooth(Backdrop(n, behind.level - rng.uniform(0.05, 0.2) * on), rng)


def _busy(rng: np.random.Generator) -> Floats:
    return np.full(WINDOWS, log_uniform(100, 400, rng))
