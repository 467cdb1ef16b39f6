"""Tries the limits of remarks and leaked kinds on past traces: whenever a base window ended, by the hour before."""

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial

import numpy as np

from ragtide.drift.backtest.simulate import CumulativeCounts, ProblemSimulation, SimulatedProblem
from ragtide.drift.checks.findings import (
    CLEAR_FRACTION,
    LOOKBACK,
    Finding,
    detection_of,
    evaluated_by_time,
    exceeds_limit,
    findings_by_time,
    load_findings,
)
from ragtide.drift.problems.report import Detection
from ragtide.drift.settings import RuleSettings
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database

_Counted = list[tuple[int, int]]
_PORTION_S = 6 * 3600
_JUDGED_S = int(LOOKBACK.total_seconds())


def simulate_findings(
    database: Database, evaluators: Mapping[str, Evaluator], rules: RuleSettings, base_s: int, first: int, until: int
) -> Iterator[SimulatedProblem]:
    """What would have been raised in (first, until], seconds since 1970; the hour before counts too."""
    moments = np.arange(first + base_s, until + 1, base_s)
    marked, looked_at = _counts(database, evaluators, rules, base_s, first, until)
    for one, counts in sorted(marked.items()):
        n, of = (
            CumulativeCounts.of(some).within(moments - _JUDGED_S, moments).tolist()
            for some in (counts, looked_at[one[:3]])
        )
        simulation: ProblemSimulation[int] = ProblemSimulation(one.key, "finding", rules.of(one.app))
        for nth, at in enumerate(moments.tolist()):
            if exceeds_limit(one, n[nth], of[nth], rules, 1.0):
                simulation.detect(at, at)
            elif exceeds_limit(one, n[nth], of[nth], rules, CLEAR_FRACTION):
                simulation.tick(at)
            elif simulation.is_open:
                simulation.clear(at)
        yield from simulation.simulated_problems(partial(_detection, database, one, evaluators[one.evaluator], rules))


def _counts(
    database: Database, evaluators: Mapping[str, Evaluator], rules: RuleSettings, base_s: int, first: int, until: int
) -> tuple[Mapping[Finding, _Counted], Mapping[tuple[str, str, str], _Counted]]:
    """Of traces that have a finding, and of those that its evaluator looked at; some hours are read at a time."""
    every_s = math.gcd(base_s, _JUDGED_S)
    portions = [(at, min(at + _PORTION_S, until)) for at in range(first - _JUDGED_S, until, _PORTION_S)]
    marked: dict[Finding, _Counted] = {}
    for since, end in portions:
        for one, counts in findings_by_time(database, evaluators, rules, since, end, every_s).items():
            marked.setdefault(one, []).extend(counts)
    looked_at: dict[tuple[str, str, str], _Counted] = {}
    known = {one.evaluator for one in marked}
    for since, end in portions if known else ():
        for key, counts in evaluated_by_time(database, known, since, end, every_s).items():
            looked_at.setdefault(key, []).extend(counts)
    return marked, looked_at


def _detection(database: Database, finding: Finding, evaluator: Evaluator, rules: RuleSettings, at: int) -> Detection:
    """In the words of the job, which looks at that hour once more."""
    until = datetime.fromtimestamp(at, UTC)
    found = load_findings(database, {evaluator.id: evaluator}, rules, until)
    return detection_of(next(one for one in found if one.finding == finding), evaluator, rules, until)
