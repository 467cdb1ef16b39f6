"""Tries settings of rules on past windows: rules themselves, and what jobs look for by the same settings."""

from collections.abc import Mapping
from datetime import datetime

from drift.dry_run.failing import try_errors, try_failure_rates
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
    "rules.finding_traces, rules.finding_limit": "remarks and leaked kinds are counted of traces, not of windows",
    "rules.flip_pairs, rules.flip_limit": "flips are of pairs of traces",
    "rules.inconsistency_askings, rules.inconsistency_limit, rules.disagreement_limit": "they are of questions",
    "rules.dead_letters, rules.disk_limit, rules.retention_share": "they are of brokers and disks as they are now",
    "drift": "detectors of change have no rules; `ragwatch baseline show` draws what is usual",
}  # what no window of the past can tell, and why


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
    silences by the habits of the two weeks before; of failures nothing is known of the time before.
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
    ]
    return sorted(found, key=lambda one: (one.openings[0], one.problem_id, one.rule))
