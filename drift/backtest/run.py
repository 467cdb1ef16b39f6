"""Run a backtest of settings on stored data, and compare its problems with those that were raised."""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import NamedTuple, get_args

from ragtide.drift.backtest.anomalies import simulate_anomalies
from ragtide.drift.backtest.input_drift import simulate_input_drift
from ragtide.drift.backtest.rules import simulate_rules
from ragtide.drift.backtest.simulate import SimulatedProblem, simulate
from ragtide.drift.check_registry import every_check
from ragtide.drift.checks.engine import CheckContext
from ragtide.drift.problems.kinds import REBASELINABLE
from ragtide.drift.problems.model import KindState, Problem, State
from ragtide.drift.problems.report import key_of
from ragtide.drift.problems.store import load_problems
from ragtide.drift.settings import DriftSettings, JobSettings, RuleSettings, WindowSettings
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database

Progress = Callable[[str, int, int], None]
NOT_COVERED: Mapping[str, str] = {
    "rules.disk_limit, rules.retention_share": "disks and brokers are as they are now, and have no past",
}  # and why


def not_covered(settings: Collection[str]) -> dict[str, str]:
    """Of the settings that are said, by dotted name, those that are not tried, and why; those of one reason as one."""
    named = {
        ", ".join(name for name in names.split(", ") if name in settings): why for names, why in NOT_COVERED.items()
    }
    return {names: why for names, why in named.items() if names}


def backtest(
    database: Database,
    evaluators: Mapping[str, Evaluator],
    rules: RuleSettings,
    windows: WindowSettings,
    jobs: JobSettings,
    first: datetime,
    until: datetime,
    drift: DriftSettings | None = None,
    progress: Progress = lambda what, done, of: None,
) -> list[SimulatedProblem]:
    """What they would have raised on windows inside [first, until), in order of opening; nothing is written.

    Detectors are tried where settings of theirs are given. `progress` is told what of the looks that take long is done.

    Rules as `simulate_rules`, checks as their `history` says.
    """
    base_s = windows.base_s
    start = max(-(-int(first.timestamp()) // base_s) * base_s, 0)
    end = int(until.timestamp()) // base_s * base_s
    ctx = CheckContext(database, evaluators, rules, windows, jobs, progress=progress)
    found = simulate_rules(database, ctx.metrics, rules, windows, first, until)
    for check in every_check():
        if check.has_history:
            found += simulate(check(), ctx, start, end)
    if drift is not None:
        span = (start, end)
        report_progress = partial(progress, "hours of questions")
        found += simulate_input_drift(database, drift, rules, windows, *span, report_progress)
        report_progress = partial(progress, "hours of detectors")
        found += simulate_anomalies(database, evaluators, drift, rules, windows, ctx.segments, *span, report_progress)
    return sorted(found, key=lambda one: (one.openings[0], one.problem_id, one.rule))


class Diff(NamedTuple):
    """Problem ids that only the tried rules raise, that both do, and the problems that only the running ones raised."""

    new: tuple[str, ...]
    same: tuple[str, ...]
    gone: tuple[Problem, ...]


def diff_with_raised(
    database: Database, simulated: Iterable[SimulatedProblem], first: datetime, until: datetime, *, detectors: bool
) -> Diff:
    """By problem, whichever its episode; of what was raised only what is tried, in [first, until).

    `detectors`: whether they are.
    """
    tried = tuple(dict.fromkeys(one.problem_id for one in simulated))
    ran = _raised_problems(database, first, until, detectors)
    return Diff(
        tuple(id_ for id_ in tried if id_ not in ran),
        tuple(id_ for id_ in tried if id_ in ran),
        tuple(problem for id_, problem in ran.items() if id_ not in tried),
    )


def _raised_problems(database: Database, first: datetime, until: datetime, detectors: bool) -> dict[str, Problem]:
    """By id, the newest episode of those in that time."""
    found: dict[str, Problem] = {}
    for problem in load_problems(database, states=get_args(State), every_episode=True):
        key = key_of(problem)
        if any(check.owns(key) and check.kind in problem.kinds for check in every_check() if not check.has_history):
            continue
        states = [state for kind, state in problem.by_kind.items() if detectors or kind not in REBASELINABLE]
        if any(state.openings and _overlaps(state, first, until) for state in states):
            found.setdefault(problem.problem_id, problem)
    return found


def _overlaps(state: KindState, first: datetime, until: datetime) -> bool:
    since, end = state.evidence.since, state.evidence.until
    return since is not None and end is not None and since < until and end > first
