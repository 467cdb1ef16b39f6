"""Run a backtest of settings on stored data, and compare its problems with those that were raised."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import NamedTuple, get_args

from ragtide.drift.backtest.anomalies import simulate_anomalies
from ragtide.drift.backtest.dead_letters import simulate_dead_letters
from ragtide.drift.backtest.failing import simulate_evaluator_errors, simulate_failure_rates
from ragtide.drift.backtest.findings import simulate_findings
from ragtide.drift.backtest.flips import simulate_flip_rate
from ragtide.drift.backtest.input_drift import simulate_input_drift
from ragtide.drift.backtest.objectives import simulate_error_budget
from ragtide.drift.backtest.repeats import simulate_repeated_questions
from ragtide.drift.backtest.rules import simulate_rules
from ragtide.drift.backtest.silences import simulate_missing_data
from ragtide.drift.backtest.simulate import SimulatedProblem
from ragtide.drift.problems.model import KindState, Problem, State
from ragtide.drift.problems.store import load_problems
from ragtide.drift.settings import DriftSettings, JobSettings, RuleSettings, WindowSettings
from ragtide.drift.windows.metrics import metrics_by_name
from ragtide.drift.windows.segments import load_segment_values
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database

Progress = Callable[[str, int, int], None]
_MAX_INSTANTS = 1000  # of a kind that is read anew at each: a week and a half, at the defaults
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

    Rules as `simulate_rules`. Of jobs each looks whenever a base window ended, of the one that looks at questions see
    `instants`. Each knows what it looks at of the time before, but those of failures.
    """
    base_s, metrics = windows.base_s, metrics_by_name(evaluators)
    start = max(-(-int(first.timestamp()) // base_s) * base_s, 0)
    end = int(until.timestamp()) // base_s * base_s
    segments = load_segment_values(database, windows)
    moments = instants(start, end, base_s, jobs.repeats_every_s)
    found = [
        *simulate_rules(database, metrics, rules, windows, first, until),
        *simulate_error_budget(database, metrics, rules, windows, start, end),
        *simulate_failure_rates(database, metrics, rules, base_s, segments, start, end),
        *simulate_evaluator_errors(database, evaluators, rules, base_s, start, end),
        *simulate_missing_data(database, evaluators, rules, base_s, start, end),
        *simulate_findings(database, evaluators, rules, base_s, start, end),
        *simulate_dead_letters(database, rules, base_s, start, end),
        *simulate_flip_rate(database, metrics, rules, base_s, start, end),
        *simulate_repeated_questions(database, metrics, rules, moments, partial(progress, "looks at questions")),
    ]
    if drift is not None:
        span = (start, end)
        report_progress = partial(progress, "hours of questions")
        found += simulate_input_drift(database, drift, rules, windows, *span, report_progress)
        report_progress = partial(progress, "hours of detectors")
        found += simulate_anomalies(database, evaluators, drift, rules, windows, segments, *span, report_progress)
    return sorted(found, key=lambda one: (one.openings[0], one.problem_id, one.rule))


def instants(first: int, until: int, base_s: int, every_s: float) -> range:
    """Ends of base windows in (first, until], seconds since 1970, about so far apart, at most `_MAX_INSTANTS`."""
    step = math.ceil(max(every_s, (until - first) / _MAX_INSTANTS) / base_s) * base_s
    return range(first + step, until + 1, step)


_DETECTOR_KINDS = ("drift", "change_point", "input_drift")  # kinds
_WITHOUT_HISTORY = ("disk", "retention", "job")  # segments of problems of no application that have no past


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
        if not problem.app and problem.segment in _WITHOUT_HISTORY:
            continue
        said = [voice for kind, voice in problem.voices.items() if detectors or kind not in _DETECTOR_KINDS]
        if any(voice.begun and _overlaps(voice, first, until) for voice in said):
            found.setdefault(problem.problem_id, problem)
    return found


def _overlaps(voice: KindState, first: datetime, until: datetime) -> bool:
    since, end = (datetime.fromisoformat(voice.attributes[name]) for name in ("since", "until"))
    return since < until and end > first
