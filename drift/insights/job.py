"""Find and store the insights of the running period; each run replaces those of the same ids."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from ragtide.drift.insights import evidence_pointers
from ragtide.drift.insights.best_and_worst import best_and_worst
from ragtide.drift.insights.constant_metrics import constant_metrics
from ragtide.drift.insights.data import metric_totals, sample_columns
from ragtide.drift.insights.failing_sample import read_samples
from ragtide.drift.insights.failure_clusters import weak_points
from ragtide.drift.insights.human_agreement import human_agreement
from ragtide.drift.insights.model import Insight, InsightRow, Period, insight_row
from ragtide.drift.insights.redundant_metrics import redundant_metrics
from ragtide.drift.insights.speed_and_cost import EVALUATOR as OPERATIONS
from ragtide.drift.insights.speed_and_cost import read_answer_totals, speed_and_cost
from ragtide.drift.insights.weak_segments import segment_insights
from ragtide.drift.insights.weakest_questions import question_insight, weakest_questions
from ragtide.drift.leadership import Term
from ragtide.drift.problems.classification import type_of
from ragtide.drift.rules.model import Rule
from ragtide.drift.rules.resolve import rule_of_app
from ragtide.drift.settings import JobSettings, RuleSettings, WindowSettings
from ragtide.drift.windows.metrics import MetricRef
from ragtide.sinks.clickhouse.database import Database

_QUALITY = ("accuracy", "retrieval", "fairness", "privacy", "security", "data_quality")


class FailureInsights(NamedTuple):
    """How many answered traces were read, and the insights."""

    traces: int
    rows: list[InsightRow]


def run_failure_insights(
    database: Database,
    metrics: Mapping[str, MetricRef],
    rules: RuleSettings,
    settings: JobSettings,
    term: Term,
    now: datetime,
) -> FailureInsights:
    """The insights of the period that `now` lies in, stored; asked again they are stated anew under the same ids.

    Failed is a trace with a quality metric beyond the line that rules have for its app.
    """
    period = Period.of(now, settings.insights_period_s)
    rows: list[InsightRow] = []
    read = 0
    limit = settings.insights_questions
    for app in _apps(database, period):
        app_rules = _rules(app, metrics, rules)
        if not app_rules:
            continue
        ranks: Counter[str] = Counter()
        for found in weakest_questions(database, app, app_rules, settings, period):
            ranks[found.environment] += 1
            rows.append(insight_row(question_insight(found, ranks[found.environment]), period, term))
        for sample in read_samples(database, app, app_rules, period, settings.insights_traces):
            read += len(sample.traces)
            points = (*weak_points(sample, limit), *segment_insights(sample, limit))
            rows += [insight_row(point, period, term) for point in points]
        rows += [insight_row(one, period, term) for one in _evidence_insights(database, app, app_rules, period)]
    database.insert("insights", rows)
    return FailureInsights(read, rows)


def _evidence_insights(database: Database, app: str, app_rules: Mapping[str, Rule], period: Period) -> list[Insight]:
    """What the evidence of evaluators points at: sentences and artifacts."""
    found: list[Insight] = []
    rule = app_rules.get(evidence_pointers.GROUNDEDNESS_METRIC)
    if rule is not None and rule.min is not None:
        found += evidence_pointers.least_grounded(database, app, rule, period)
    if evidence_pointers.AGENT_SANITY_METRIC in app_rules:
        found += evidence_pointers.unsound_artifacts(database, app, period)
    return found


def _apps(database: Database, period: Period) -> list[str]:
    rows = database.rows(
        "SELECT DISTINCT app FROM traces WHERE run_id = 'live' AND time >= {start:DateTime64(3, 'UTC')} "
        "AND time < {end:DateTime64(3, 'UTC')} ORDER BY app",
        {"start": period.start, "end": period.end},
    )
    return [row["app"] for row in rows]


def _rules(app: str, metrics: Mapping[str, MetricRef], settings: RuleSettings) -> dict[str, Rule]:
    """The rules of quality metrics for this app, whatever model and environment."""
    found = {}
    for name, metric in metrics.items():
        rule = rule_of_app(app, metric, settings)
        if rule is not None and type_of(metric, rule.kind.problem_kind) in _QUALITY:
            found[name] = rule
    return found


MAX_TRACES = 2_000  # of an application, by which metrics are compared with one another


def run_comparison_insights(
    database: Database,
    metrics: Mapping[str, MetricRef],
    windows: WindowSettings,
    settings: JobSettings,
    term: Term,
    now: datetime,
) -> list[InsightRow]:
    """The insights of the period that `now` lies in, stored; asked again they are stated anew under the same ids."""
    period = Period.of(now, settings.insights_period_s)
    # Windows have numbers of their own, and no record's.
    of_records = {name: one for name, one in metrics.items() if one.evaluator.combine is None}
    primary = {name: one for name, one in of_records.items() if one.metric.primary}
    found = metric_totals(database, primary.values(), windows, period)
    insights = [*best_and_worst(found, primary), *constant_metrics(found, primary)]
    insights += human_agreement(database, primary.values(), period)
    for app_environment, columns in sorted(sample_columns(database, primary.values(), period, MAX_TRACES).items()):
        insights += redundant_metrics(app_environment, columns)
    if any(name.startswith(f"{OPERATIONS}.") for name in metrics):
        insights += speed_and_cost(read_answer_totals(database, period))
    rows = [insight_row(one, period, term) for one in insights]
    database.insert("insights", rows)
    return rows
