"""How often rules, failure rates, coverage, silence and objectives tell of trouble while nothing changes.

python -m benchmarks.steady [--series 40] [--seed 1]

Series whose true level stays on the good side of its line, half way or four fifths of the way to it, at the defaults:
seven days in windows of five minutes, in the regimes of `benchmarks.drift`. Each is judged by the code of the jobs;
what opens is false. Silence is of applications that send by some habit and never stop: three weeks, the last one
watched. The goal is 0.005 times a series-day.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np

from benchmarks.drift import plans
from benchmarks.drift.backdrop import REGIMES, Backdrop, backdrop
from benchmarks.drift.clock import DAY, HISTORY, HOUR, PER_DAY, START, WATCHED, WEEKEND, WINDOW_S, WINDOWS
from benchmarks.drift.report import FALSE_PER_DAY
from benchmarks.drift.series import Label, sampled
from ragtide.drift.array_types import Floats, Integers
from ragtide.drift.backtest.rules import RuleSimulation
from ragtide.drift.checks.error_budget import BudgetUse, burn_windows, fastest_burn, within_noise
from ragtide.drift.checks.hysteresis import WindowCount, k_of_m
from ragtide.drift.checks.missing_data import ActiveHours, ActivityProfile, typical_pause
from ragtide.drift.leadership import Term
from ragtide.drift.rules.evaluate import verdict_row
from ragtide.drift.rules.kinds import RULE_KINDS
from ragtide.drift.rules.model import NO_RESULT, Rule, Series, Window
from ragtide.drift.rules.pooling import pool_forward
from ragtide.drift.rules.resolve import rules_for
from ragtide.drift.settings import Objective, RuleSettings, WindowSettings
from ragtide.drift.windows.metrics import metrics_by_name
from ragtide.evaluators.builtin.operations import operations

PLACE = Series("shop", "prod", "operations.error", "m1", "", "")
SETTINGS = RuleSettings()
ERRORS, COVERAGE = (
    rules_for(PLACE._replace(metric=name), metrics_by_name({operations.id: operations})[name], SETTINGS)[0]
    for name in ("operations.error", "operations.latency_seconds")
)
NEAR = {"half": 0.5, "four fifths": 0.8}
AFTER_S = SETTINGS.missing_after_s or 0.0
Told = Callable[[str, np.random.Generator], int]
Sends = Callable[[Backdrop, np.random.Generator], Floats]


def failing(most: float, behind: Backdrop, rng: np.random.Generator) -> Integers:
    """Of each window's records, how many fail [T] where at its worst hour this share does."""
    usual = plans.rate(most, behind).probability
    found: Integers = rng.binomial(behind.n, most * usual / usual.max())
    return found


def opened(rule: Rule, settings: RuleSettings, n: Integers, total: Floats, wrong: Integers) -> int:
    """How often a problem opens in the watched days, by the rules' own course, which has judged the day before as well;
    windows [T] with so many records, sums and wrong ones.
    """
    course, waiting = RuleSimulation(PLACE, rule, settings), list[Window]()
    term = Term(0, datetime.fromtimestamp(0, UTC))
    for at in range(HISTORY - PER_DAY, HISTORY + WATCHED):
        start, records = int(START[at]), int(n[at])
        one = Window(start, start + WINDOW_S, records, records, records, int(wrong[at]), float(total[at]))
        one = replace(one, bins={100 if ERRORS.bad_count(Window(0, 0, bins={100: 1})) else 0: int(wrong[at])})
        waiting.append(one)
        verdicts = []
        for pooled in pool_forward(waiting, rule.min_sample, rule.kind.sample_size):
            result = rule.kind.evaluate(pooled, rule, PLACE) or NO_RESULT
            verdicts.append(verdict_row(rule, PLACE, "f1", pooled, result, term))
            waiting = []
        course.observe(datetime.fromtimestamp(start + WINDOW_S, UTC), verdicts)
    first = datetime.fromtimestamp(int(START[HISTORY]), UTC)
    return sum(event.event in ("opened", "reopened") and event.at >= first for event in course.events)


def rate_rule(
    kind: Literal["mean", "share", "coverage"],
    near: float,
    settings: RuleSettings,
    regime: str,
    rng: np.random.Generator,
) -> int:
    """Errors against 5 % of the traces (`mean` of yes and no, and `share`), traces without a score against 20 %."""
    rule = COVERAGE if kind == "coverage" else replace(ERRORS, kind=RULE_KINDS[kind], limit=0.05)
    behind = backdrop(regime, rng)
    wrong = failing(near * rule.limit, behind, rng)
    return opened(rule, settings, behind.n, wrong.astype(float), wrong)


def mean_rule(near: float, settings: RuleSettings, regime: str, rng: np.random.Generator) -> int:
    """Scores whose mean lies above the least good one by a tenth of the range (half way) or 0.04."""
    behind = backdrop(regime, rng)
    plan = plans.smooth(behind, rng)
    series = sampled(Label(0, "score", "smooth", regime, None, 0, 0), plan, rng)
    line = float(plan.mean.min()) - 0.1 * (1 - near)
    return opened(replace(ERRORS, min=line, max=None), settings, series.n, series.total, np.zeros_like(series.n))


def failure_rate(near: float, settings: RuleSettings, regime: str, rng: np.random.Generator) -> int:
    """Failing traces against half of all; looked at every five minutes, at what was of the last six hours."""
    behind, limit = backdrop(regime, rng), ERRORS.failure_limit
    wrong, told, bad = failing(near * limit, behind, rng), 0, False
    counted = [
        WindowCount(int(s), int(s) + WINDOW_S, int(n), int(w)) for s, n, w in zip(START, behind.n, wrong, strict=True)
    ]
    for at in range(HISTORY, HISTORY + WATCHED):
        state = k_of_m(counted[at - 71 : at + 1], limit, settings).state
        told += state == "bad" and not bad
        bad = state == "bad" or (bad and state == "unclear")
    return told


def objective(near: float, settings: RuleSettings, regime: str, rng: np.random.Generator) -> int:
    """Records against an objective of 99 % over 28 days."""
    behind, one = backdrop(regime, rng), Objective(name="good", metric=PLACE.metric, target=0.99)
    pairs = burn_windows(one.period_days * 86_400, WindowSettings(base_s=WINDOW_S, sizes_s=(WINDOW_S, 3600)))
    wrong = failing(near * (1 - one.target), behind, rng)
    sums = [np.concatenate([[0], np.cumsum(some)]) for some in (behind.n, wrong)]
    told, bad = 0, False
    for at in range(HISTORY + 1, HISTORY + WATCHED + 1):
        spent = {
            length: BudgetUse(*(int(some[at] - some[max(at - length // WINDOW_S, 0)]) for some in sums))
            for pair in pairs
            for length in (pair.long_s, pair.short_s)
        }
        pair = fastest_burn(pairs, spent, one, settings.min_sample)
        burns = pair is not None and not within_noise(spent[pair.long_s], one, settings.chance)
        told += burns and not bad
        bad = burns or (bad and fastest_burn(pairs, spent, one, settings.min_sample, 0.75) is not None)
    return told


def always(behind: Backdrop, rng: np.random.Generator) -> Floats:
    """What the regime sends [T]."""
    return behind.n.astype(float)


def trickle(an_hour: float, behind: Backdrop, rng: np.random.Generator) -> Floats:
    """So few traces, as the regime's traffic goes."""
    found: Floats = behind.n / behind.n.mean() * an_hour / 12
    return found


def office(behind: Backdrop, rng: np.random.Generator) -> Floats:
    """From Monday to Friday, from about nine to about half past five, with half as many at noon."""
    first, last = (rng.normal(hour, 0.3, DAY[-1] + 1)[DAY] for hour in (9, 17.5))
    works = (first <= HOUR) & (last > HOUR) & (WEEKEND == 0)
    return np.where(works, behind.n / behind.n.mean() * np.where((HOUR >= 12) & (HOUR < 13), 1.0, 2.0), 0.0)


def nightly(behind: Backdrop, rng: np.random.Generator) -> Floats:
    """A job of about forty minutes at about two."""
    first = rng.normal(2, 0.15, DAY[-1] + 1)[DAY]
    return np.where((first <= HOUR) & (first + 0.65 > HOUR), 5.0, 0.0)


def sessions(behind: Backdrop, rng: np.random.Generator) -> Floats:
    """Eight sessions a day of half an hour, at any time."""
    begins = rng.random(WINDOWS) < 8 / PER_DAY
    return np.where(np.convolve(begins, np.ones(6))[:WINDOWS] > 0, 2.0, 0.0)


def silence(sends: Sends, regime: str, rng: np.random.Generator) -> int:
    """Pauses of an application that goes on by its habit, each judged as it ends."""
    sent = np.flatnonzero(rng.poisson(sends(backdrop(regime, rng), rng)))
    starts, told = START[sent], 0
    gaps = np.diff(starts) - WINDOW_S
    for at in np.flatnonzero((gaps >= AFTER_S) & (sent[1:] >= HISTORY)):
        known = starts[(starts > starts[at] - HISTORY * WINDOW_S) & (starts <= starts[at])]
        hours = ActiveHours.of(np.unique(known // 3600).tolist())
        pauses = [(one + WINDOW_S, two) for one, two in pairwise(known.tolist()) if two - one - WINDOW_S >= AFTER_S / 2]
        since, until = int(starts[at]) + WINDOW_S, int(starts[at + 1])
        habit = ActivityProfile("shop", "prod", since, 0, len(known), hours, typical_pause(hours, pauses))
        told += habit.is_overdue(until, AFTER_S)
    return told


HABITS: Mapping[str, Sends] = {
    "always": always,
    "12 an hour": partial(trickle, 12.0),
    "1 an hour": partial(trickle, 1.0),
    "office hours": office,
    "a nightly job": nightly,
    "sessions": sessions,
}


def cases(settings: RuleSettings) -> Iterator[tuple[str, Told]]:
    """By what is judged, how often it is told of a series of a regime."""
    for way, near in NEAR.items():
        yield f"errors, mean, {way}", partial(rate_rule, "mean", near, settings)
        yield f"share beyond, {way}", partial(rate_rule, "share", near, settings)
        yield f"mean of scores, {way}", partial(mean_rule, near, settings)
        yield f"coverage, {way}", partial(rate_rule, "coverage", near, settings)
        yield f"failure rate, {way}", partial(failure_rate, near, settings)
        yield f"objective, {way}", partial(objective, near, settings)
    for habit, sends in HABITS.items():
        yield f"silence, {habit}", partial(silence, sends)


def rates(chosen: argparse.Namespace, nth: int, told: Told) -> Iterator[float]:
    """False problems a series-day, by regime."""
    for at, regime in enumerate(REGIMES):
        rngs = (np.random.default_rng([chosen.seed, nth, at, index]) for index in range(chosen.series))
        yield sum(told(regime, rng) for rng in rngs) / chosen.series / (WATCHED // PER_DAY)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=40, help="of each regime and line")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chance", type=float, default=SETTINGS.chance, help="rules.chance; 1: k of m alone")
    parser.add_argument("--only", default="", help="what begins with this alone")
    chosen = parser.parse_args()
    settings = SETTINGS.model_copy(update={"chance": chosen.chance})
    too_many = []
    print(f"{'false problems a series-day':28}" + "".join(f"{regime:>10}" for regime in REGIMES))
    for nth, (name, told) in enumerate(cases(settings)):
        if name.startswith(chosen.only):
            found = list(rates(chosen, nth, told))
            too_many += [name] if max(found) > FALSE_PER_DAY else []
            print(f"{name:28}" + "".join(f"{rate:10.4f}" for rate in found), flush=True)
    print("goal met" if not too_many else f"more than {FALSE_PER_DAY}: {'; '.join(too_many)}")


if __name__ == "__main__":
    main()
