"""Tries settings of rules on past windows: rules themselves, and what jobs look for by the same settings."""

import math
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import partial

from drift.dry_run.changes import try_changes
from drift.dry_run.dead_letters import try_dead_letters
from drift.dry_run.failing import try_errors, try_failure_rates
from drift.dry_run.findings import try_findings
from drift.dry_run.flips import try_flips
from drift.dry_run.objectives import try_objectives
from drift.dry_run.questions import try_questions
from drift.dry_run.repeats import try_repeats
from drift.dry_run.run import dry_run
from drift.dry_run.silences import try_silences
from drift.dry_run.would_be import WouldBe
from drift.settings import DriftSettings, JobSettings, RuleSettings, WindowSettings
from drift.windows.metrics import metrics_by_name
from drift.windows.segments import known_segment_values
from evaluators.spec import Evaluator
from sinks.clickhouse.database import Database

Progress = Callable[[str, int, int], None]
_LOOKS = 1000  # of a kind that is read anew at each: a week and a half, at the defaults
UNTRIED: Mapping[str, str] = {
    "rules.disk_limit, rules.retention_share": "disks and brokers are as they are now, and have no past",
}  # and why


def untried(said: Collection[str]) -> dict[str, str]:
    """Of the settings that are said, by dotted name, those that are not tried, and why; those of one reason as one."""
    named = {", ".join(name for name in names.split(", ") if name in said): why for names, why in UNTRIED.items()}
    return {names: why for names, why in named.items() if names}


def try_settings(
    database: Database,
    evaluators: Mapping[str, Evaluator],
    rules: RuleSettings,
    windows: WindowSettings,
    jobs: JobSettings,
    first: datetime,
    until: datetime,
    drift: DriftSettings | None = None,
    progress: Progress = lambda what, done, of: None,
) -> list[WouldBe]:
    """What they would have raised on windows inside [first, until), in order of opening; nothing is written.

    Detectors are tried where settings of theirs are given. `progress` is told what of the looks that take long is done.

    Rules as `dry_run`. Of jobs each looks whenever a base window ended, of the one that looks at questions see
    `looks_of`. Each knows what it looks at of the time before, but those of failures.
    """
    base_s, metrics = windows.base_s, metrics_by_name(evaluators)
    start = max(-(-int(first.timestamp()) // base_s) * base_s, 0)
    end = int(until.timestamp()) // base_s * base_s
    segments = known_segment_values(database, windows)
    moments = looks_of(start, end, base_s, jobs.repeats_every_s)
    found = [
        *dry_run(database, metrics, rules, windows, first, until),
        *try_objectives(database, metrics, rules, windows, start, end),
        *try_failure_rates(database, metrics, rules, base_s, segments, start, end),
        *try_errors(database, evaluators, rules, base_s, start, end),
        *try_silences(database, evaluators, rules, base_s, start, end),
        *try_findings(database, evaluators, rules, base_s, start, end),
        *try_dead_letters(database, rules, base_s, start, end),
        *try_flips(database, metrics, rules, base_s, start, end),
        *try_repeats(database, metrics, rules, moments, partial(progress, "looks at questions")),
    ]
    if drift is not None:
        span = (start, end)
        told = partial(progress, "hours of questions")
        found += try_questions(database, drift, rules, windows, *span, told)
        told = partial(progress, "hours of detectors")
        found += try_changes(database, evaluators, drift, rules, windows, segments, *span, told)
    return sorted(found, key=lambda one: (one.openings[0], one.problem_id, one.rule))


def looks_of(first: int, until: int, base_s: int, every_s: float) -> range:
    """Ends of base windows in (first, until], seconds since 1970, about so far apart, but no more than `_LOOKS`."""
    step = math.ceil(max(every_s, (until - first) / _LOOKS) / base_s) * base_s
    return range(first + step, until + 1, step)
