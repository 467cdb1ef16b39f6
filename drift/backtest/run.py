"""Run a backtest of settings on stored data, and compare its problems with those that were raised."""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import NamedTuple, get_args

from ragtide.drift.backtest.anomalies import simulate_anomalies
from ragtide.drift.backtest.input_drift import simulate_input_drift
from ragtide.drift.backtest.rules import simulate_rules
from ragtide.drift.backtest.simulate import SimulatedProblem, simulate
from ragtide.drift.checks import CheckContext
from ragtide.drift.jobs import every_check
from ragtide.drift.problems import REBASELINABLE, KindState, Problem, ProblemKey, State, load_problems
from ragtide.drift.settings import DriftSettings, JobSettings, RuleSettings, WindowSettings
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE

Progress = Callable[[str, int, int], None]
NOT_COVERED: Mapping[tuple[str, ...], str] = {
    ("rules.disk_limit", "rules.retention_share"): "the past state of disks and brokers is not stored",
    ("rules.judge_shift",): "judges on canaries are not simulated; `ragtide judge canaries` shows their shifts",
    ("rules.fleet_share",): "problems of a simulation are not grouped",
    ("jobs.failing_runs", "jobs.behind_share"): "jobs ran as they did",
    ("windows.segments", "windows.segment_values", "windows.apps"): (
        "a segment has windows from when its setting is live"
    ),
    (
        *("windows.out_of_orderness_s", "windows.allowed_lateness_s", "windows.heartbeat_timeout_s"),
        *("windows.idle_after_s", "windows.stuck_wait_s", "windows.partition_expiry_s"),
    ): "windows are taken as stored, late rows included",
    ("evaluators.params", "evaluators.tasks", "evaluators.encoder", "evaluators.models", "sampling"): (
        "scores are taken as stored; `ragtide replay` with these settings makes others"
    ),
}  # settings, or sections of them, and why


def not_covered(settings: Collection[str]) -> dict[str, str]:
    """Return which of these settings, by dotted name, a backtest does not cover, and why; grouped by reason."""
    named = {
        ", ".join(one for one in sorted(settings) if any(f"{one}.".startswith(f"{name}.") for name in names)): why
        for names, why in NOT_COVERED.items()
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
    """Simulate rules, checks and detectors on windows inside [first, until), in order of opening; nothing is written.

    Detectors run if `drift` is given. `progress` gets the name of each slow part and how much of it is done. Rules as
    in `simulate_rules`, checks as in `Check.history`. Raises `ConfigError` if windows of `windows.base_s` were never
    stored.
    """
    base_s = windows.base_s
    _check_stored_size(database, base_s)
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


def _check_stored_size(database: Database, base_s: int) -> None:
    rows = database.rows("SELECT DISTINCT size_s FROM windows WHERE run_id = {run:String}", {"run": LIVE})
    stored = sorted(row["size_s"] for row in rows)
    if stored and base_s not in stored:
        raise ConfigError(
            f"windows.base_s = {base_s}: no windows of that size are stored; there are those of "
            f"{', '.join(map(str, stored))} s"
        )


class Diff(NamedTuple):
    """Ids of problems that only the simulation has, or both; and the problems that were raised only in reality."""

    new: tuple[str, ...]
    same: tuple[str, ...]
    gone: tuple[Problem, ...]


def diff_with_raised(
    database: Database, simulated: Iterable[SimulatedProblem], first: datetime, until: datetime, *, detectors: bool
) -> Diff:
    """Compare simulated with raised problems in [first, until), by problem id over all episodes.

    Kinds that a backtest does not cover are left out; `detectors`: whether it covers those of detectors.
    """
    tried = tuple(dict.fromkeys(one.problem_id for one in simulated))
    ran = _raised_problems(database, first, until, detectors)
    return Diff(
        tuple(id_ for id_ in tried if id_ not in ran),
        tuple(id_ for id_ in tried if id_ in ran),
        tuple(problem for id_, problem in ran.items() if id_ not in tried),
    )


def _raised_problems(database: Database, first: datetime, until: datetime, detectors: bool) -> dict[str, Problem]:
    """Load problems of that interval by id, the newest episode of each."""
    found: dict[str, Problem] = {}
    for problem in load_problems(database, states=get_args(State), every_episode=True):
        key = ProblemKey.of(problem)
        if any(check.owns(key) and check.kind in problem.kinds for check in every_check() if not check.has_history):
            continue
        states = [state for kind, state in problem.by_kind.items() if detectors or kind not in REBASELINABLE]
        if any(state.openings and _overlaps(state, first, until) for state in states):
            found.setdefault(problem.problem_id, problem)
    return found


def _overlaps(state: KindState, first: datetime, until: datetime) -> bool:
    since, end = state.evidence.since, state.evidence.until
    return since is not None and end is not None and since < until and end > first
