"""Tries settings of rules on past windows: rules themselves, and what jobs look for by the same settings."""

from collections.abc import Collection, Mapping
from datetime import datetime

from drift.dry_run.dead_letters import try_dead_letters
from drift.dry_run.failing import try_errors, try_failure_rates
from drift.dry_run.findings import try_findings
from drift.dry_run.objectives import try_objectives
from drift.dry_run.run import dry_run
from drift.dry_run.silences import try_silences
from drift.dry_run.would_be import WouldBe
from drift.settings import RuleSettings, WindowSettings
from drift.windows.metrics import metrics_by_name
from drift.windows.segments import known_segment_values
from evaluators.spec import Evaluator
from sinks.clickhouse.database import Database

UNTRIED: Mapping[str, str] = {
    "rules.flip_pairs, rules.flip_limit": "flips are of pairs of traces",
    "rules.inconsistency_askings, rules.inconsistency_limit, rules.disagreement_limit": "they are of questions",
    "rules.disk_limit, rules.retention_share": "disks and brokers are as they are now, and have no past",
}  # what nothing stored of the past can tell, and why


def untried(said: Collection[str]) -> dict[str, str]:
    """Of the settings that are said, by dotted name, those that are not tried, and why; those of one reason as one."""
    named = {", ".join(name for name in names.split(", ") if name in said): why for names, why in UNTRIED.items()}
    return {names: why for names, why in named.items() if names}


def try_settings(
    database: Database,
    evaluators: Mapping[str, Evaluator],
    rules: RuleSettings,
    windows: WindowSettings,
    first: datetime,
    until: datetime,
) -> list[WouldBe]:
    """What they would have raised on windows inside [first, until), in order of opening; nothing is written.

    Rules as `dry_run`. Of jobs each looks whenever a base window ended: objectives by what was spent before, too, and
    silences by the habits of the two weeks before, findings by the hour before, dead letters by the week before; of
    failures nothing is known of the time before.
    """
    base_s, metrics = windows.base_s, metrics_by_name(evaluators)
    start = max(-(-int(first.timestamp()) // base_s) * base_s, 0)
    end = int(until.timestamp()) // base_s * base_s
    segments = known_segment_values(database, windows)
    found = [
        *dry_run(database, metrics, rules, windows, first, until),
        *try_objectives(database, metrics, rules, windows, start, end),
        *try_failure_rates(database, metrics, rules, base_s, segments, start, end),
        *try_errors(database, evaluators, rules, base_s, start, end),
        *try_silences(database, evaluators, rules, base_s, start, end),
        *try_findings(database, evaluators, rules, base_s, start, end),
        *try_dead_letters(database, rules, base_s, start, end),
    ]
    return sorted(found, key=lambda one: (one.openings[0], one.problem_id, one.rule))
