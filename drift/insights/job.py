"""Find and store the insights of the running period; each run replaces those of the same ids."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from ragtide.drift.insights.data import AppData, PeriodData
from ragtide.drift.insights.model import IN_PERIOD, Period, finders, insight_row, retract
from ragtide.drift.job_history import RunResult
from ragtide.drift.leadership import Term
from ragtide.drift.problems import type_of
from ragtide.drift.rules import Rule, rule_of_app
from ragtide.drift.settings import DriftSettings, JobSettings, RuleSettings, WindowSettings
from ragtide.drift.windows import MetricRef
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database

_QUALITY = ("accuracy", "retrieval", "fairness", "privacy", "security", "data_quality")


def run_insights(
    database: Database,
    evaluators: Mapping[str, Evaluator],
    rules: RuleSettings,
    windows: WindowSettings,
    settings: JobSettings,
    term: Term,
    now: datetime,
    drift: DriftSettings,
) -> RunResult:
    """Store the insights of the period that contains `now`, and withdraw those that no longer hold.

    `read` counts the sampled traces.
    """
    data = PeriodData(database, evaluators, windows, settings, now, drift)
    found = [one for find in finders(PeriodData) for one in find(data)]
    traces = 0
    for app in _apps(data, rules):
        found += [one for find in finders(AppData) for one in find(app)]
        traces += sum(len(sample.traces) for sample in app.samples)
    rows = [insight_row(one, Period.of(one.at or now, settings.insights_period_s), term) for one in found]
    database.insert("insights", rows)
    retract(database, rows, data.period, term)
    return RunResult(read=traces, raised=len(rows))


def _apps(data: PeriodData, settings: RuleSettings) -> Iterator[AppData]:
    """Load every application with traces in the period and rules for quality."""
    rows = data.database.rows(
        f"SELECT DISTINCT app FROM traces WHERE run_id = 'live' AND {IN_PERIOD} ORDER BY app", data.period.bound
    )
    for row in rows:
        if rules := _quality_rules(row["app"], data.metrics, settings):
            yield AppData(data.database, row["app"], rules, data.period, data.settings)


def _quality_rules(app: str, metrics: Mapping[str, MetricRef], settings: RuleSettings) -> dict[str, Rule]:
    """Return the rules of quality metrics for this application, whatever model and environment."""
    rules = {name: rule_of_app(app, metric, settings) for name, metric in metrics.items()}
    return {
        name: rule
        for name, rule in rules.items()
        if rule is not None and type_of(metrics[name], rule.kind.problem_kind) in _QUALITY
    }
