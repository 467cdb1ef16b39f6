"""Insights on models, prompt versions, applications and the metrics themselves, stated for the running period."""

from collections.abc import Mapping
from datetime import datetime

from drift.insights.against_people import against_people
from drift.insights.best_and_worst import best_and_worst
from drift.insights.columns import sampled_columns
from drift.insights.constant_metrics import constant_metrics
from drift.insights.insight import InsightRow, Period, insight_row
from drift.insights.measured import measured
from drift.insights.per_answer import EVALUATOR as OPERATIONS
from drift.insights.per_answer import answers, extremes_per_answer
from drift.insights.same_metrics import same_metrics
from drift.leadership import Term
from drift.settings import JobSettings, WindowSettings
from drift.windows.metrics import WatchedMetric
from sinks.clickhouse.database import Database

MOST_TRACES = 2_000  # of an application, by which metrics are compared with one another


def state_comparisons(
    database: Database,
    metrics: Mapping[str, WatchedMetric],
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
    found = measured(database, primary.values(), windows, period)
    told = [*best_and_worst(found, primary), *constant_metrics(found, primary)]
    told += against_people(database, primary.values(), period)
    for place, columns in sorted(sampled_columns(database, primary.values(), period, MOST_TRACES).items()):
        told += same_metrics(place, columns)
    if any(name.startswith(f"{OPERATIONS}.") for name in metrics):
        told += extremes_per_answer(answers(database, period))
    rows = [insight_row(one, period, term) for one in told]
    database.insert("insights", rows)
    return rows
