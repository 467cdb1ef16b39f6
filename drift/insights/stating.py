"""Insights are stated for the running period, anew at every look, and once each."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from drift.insights import least_grounded, unsound_artifacts
from drift.insights.answered import samples
from drift.insights.insight import Finding, InsightRow, Period, insight_row
from drift.insights.weak_points import weak_points
from drift.insights.weak_segments import segment_findings
from drift.insights.weakest_questions import question_finding, weakest_questions
from drift.leadership import Term
from drift.problems.taxonomy import type_of
from drift.rules.choose import rule_of_app
from drift.rules.series import Rule
from drift.settings import JobSettings, RuleSettings
from drift.windows.metrics import WatchedMetric
from sinks.clickhouse.database import Database

_QUALITY = ("accuracy", "retrieval", "fairness", "privacy", "security", "data_quality")


class Stated(NamedTuple):
    """How many answered traces were read, and the insights."""

    read: int
    rows: list[InsightRow]


def state_weak_points(
    database: Database,
    metrics: Mapping[str, WatchedMetric],
    rules: RuleSettings,
    settings: JobSettings,
    term: Term,
    now: datetime,
) -> Stated:
    """The insights of the period that `now` lies in, stored; asked again they are stated anew under the same ids.

    Failed is a trace with a quality metric beyond the line that rules have for its app.
    """
    period = Period.of(now, settings.insights_period_s)
    rows: list[InsightRow] = []
    read = 0
    most = settings.insights_questions
    for app in _apps(database, period):
        watched = _rules(app, metrics, rules)
        if not watched:
            continue
        ranks: Counter[str] = Counter()
        for found in weakest_questions(database, app, watched, settings, period):
            ranks[found.environment] += 1
            rows.append(insight_row(question_finding(found, ranks[found.environment]), period, term))
        for sample in samples(database, app, watched, period, settings.insights_traces):
            read += len(sample.answered)
            points = (*weak_points(sample, most), *segment_findings(sample, most))
            rows += [insight_row(point, period, term) for point in points]
        rows += [insight_row(one, period, term) for one in _pointed_at(database, app, watched, period)]
    database.insert("insights", rows)
    return Stated(read, rows)


def _pointed_at(database: Database, app: str, watched: Mapping[str, Rule], period: Period) -> list[Finding]:
    """What the evidence of evaluators points at: sentences and artifacts."""
    found: list[Finding] = []
    rule = watched.get(least_grounded.METRIC)
    if rule is not None and rule.least is not None:
        found += least_grounded.least_grounded(database, app, rule, period)
    if unsound_artifacts.METRIC in watched:
        found += unsound_artifacts.unsound_artifacts(database, app, period)
    return found


def _apps(database: Database, period: Period) -> list[str]:
    rows = database.rows(
        "SELECT DISTINCT app FROM traces WHERE run_id = 'live' AND time >= {start:DateTime64(3, 'UTC')} "
        "AND time < {end:DateTime64(3, 'UTC')} ORDER BY app",
        {"start": period.start, "end": period.end},
    )
    return [row["app"] for row in rows]


def _rules(app: str, metrics: Mapping[str, WatchedMetric], settings: RuleSettings) -> dict[str, Rule]:
    """The rules of quality metrics for this app, whatever model and environment."""
    found = {}
    for name, metric in metrics.items():
        rule = rule_of_app(app, metric, settings)
        if rule is not None and type_of(metric, rule.kind) in _QUALITY:
            found[name] = rule
    return found
