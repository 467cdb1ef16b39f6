"""Tries the limits of failure rates and of evaluators' errors on past windows, by the stretches that jobs pool."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial

from ragtide.drift.backtest.simulate import ProblemSimulation, SimulatedProblem
from ragtide.drift.checks import evaluator_errors, failure_rates
from ragtide.drift.checks.evaluator_errors import EvaluatorFailures, load_failures
from ragtide.drift.checks.failure_rates import (
    SeriesFailures,
    apps_in,
    load_series_failures,
    mean_rules,
    scored_windows,
    windows_of_active_version,
)
from ragtide.drift.checks.hysteresis import WindowCount, k_of_m
from ragtide.drift.problems.report import Detection, ProblemKey
from ragtide.drift.rules.model import Rule
from ragtide.drift.rules.resolve import limits_for
from ragtide.drift.settings import RuleSettings
from ragtide.drift.windows.metrics import MetricRef
from ragtide.drift.windows.segments import SegmentValues
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database

_Fingerprints = Mapping[str, Sequence[WindowCount]]


def simulate_failure_rates(
    database: Database,
    metrics: Mapping[str, MetricRef],
    rules: RuleSettings,
    base_s: int,
    segments: SegmentValues,
    first: int,
    until: int,
) -> Iterator[SimulatedProblem]:
    """What metrics judged by their mean would have raised in (first, until] by the share of records that fail."""
    live = scored_windows(base_s, first, until)
    for app in apps_in(database, live):
        watched, own = mean_rules(app, metrics, rules), rules.of(app)
        for one in load_series_failures(database, app, watched, live, base_s):
            rule = watched[one.series.metric]
            simulation: ProblemSimulation[WindowCount] = ProblemSimulation(
                ProblemKey(aspect="level", **one.series._asdict()), "failure_rate", own
            )
            _simulate(simulation, one.windows, rule.failure_limit, failure_rates.LOOKBACK, range(first, until, base_s))
            yield from simulation.simulated_problems(
                partial(_rate_detection, database, one, rule, metrics, segments, rules)
            )


def simulate_evaluator_errors(
    database: Database, evaluators: Mapping[str, Evaluator], rules: RuleSettings, base_s: int, first: int, until: int
) -> Iterator[SimulatedProblem]:
    """What evaluators that keep failing would have raised in (first, until]."""
    for one in load_failures(database, evaluators.values(), base_s, first, until):
        limit = limits_for(one.app, one.evaluator, rules).error_limit
        simulation: ProblemSimulation[WindowCount] = ProblemSimulation(one.key, "evaluator_error", rules.of(one.app))
        _simulate(simulation, {"": one.windows}, limit, evaluator_errors.LOOKBACK, range(first, until, base_s))
        yield from simulation.simulated_problems(
            partial(_error_detection, database, one, evaluators[one.evaluator], limit, rules)
        )


def _simulate(
    simulation: ProblemSimulation[WindowCount], windows: _Fingerprints, limit: float, judged: timedelta, starts: range
) -> None:
    """At each end of a base window, by the windows of the time before that the job looks at."""
    bad_ends = sorted(window.end for some in windows.values() for window in some if window.share > limit)
    for at in (start + starts.step for start in starts):
        since = at - int(judged.total_seconds())
        nothing_bad = bisect_left(bad_ends, since) == bisect_left(bad_ends, at + 1)
        if nothing_bad and not simulation.is_open:
            continue  # no stretch is worse than its worst window
        seen = {name: _between(some, since, at) for name, some in windows.items()}
        counted = windows_of_active_version(
            {name: some for name, some in seen.items() if some}, simulation.settings.min_sample
        )
        found = k_of_m(counted, limit, simulation.settings)
        if found.breach is not None:
            simulation.detect(at, found.breach)
        elif found.state == "good" or not any(seen.values()):
            simulation.clear(at)
        else:
            simulation.tick(at)


def _between(windows: Sequence[WindowCount], since: int, until: int) -> Sequence[WindowCount]:
    """Those that start from `since` on and ended by `until`; all are of one size."""
    return windows[bisect_left(windows, since, key=_start) : bisect_left(windows, until + 1, key=_end)]


def _start(window: WindowCount) -> int:
    return window.start


def _end(window: WindowCount) -> int:
    return window.end


def _rate_detection(
    database: Database,
    one: SeriesFailures,
    rule: Rule,
    metrics: Mapping[str, MetricRef],
    segments: SegmentValues,
    rules: RuleSettings,
    bad: WindowCount,
) -> Detection:
    return failure_rates.detection_of(database, one.series, rule, bad, metrics, segments, rules)


def _error_detection(
    database: Database,
    one: EvaluatorFailures,
    evaluator: Evaluator,
    limit: float,
    rules: RuleSettings,
    bad: WindowCount,
) -> Detection:
    return evaluator_errors.detection_of(database, one, evaluator, bad, limit, rules)
