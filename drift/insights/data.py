"""What insights read: the metrics of a period, as columns and as totals of windows, and an application's samples."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

from ragtide.drift import sql
from ragtide.drift.insights.failing_sample import TraceSample, read_samples
from ragtide.drift.insights.model import IN_PERIOD, AppEnvironment, Period
from ragtide.drift.rules import Rule
from ragtide.drift.settings import DriftSettings, JobSettings, WindowSettings
from ragtide.drift.stats import HOUR_S, Sample, Share, in_sample
from ragtide.drift.windows import MetricRef, metrics_by_name
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database

Columns = Mapping[str, Mapping[str, float]]  # values by metric and trace id


@dataclass(frozen=True)
class PeriodData:
    """The period that contains `now`: all applications and metrics. Totals are read once."""

    database: Database
    evaluators: Mapping[str, Evaluator]
    windows: WindowSettings
    settings: JobSettings
    now: datetime
    drift: DriftSettings

    @property
    def period(self) -> Period:
        """The running one."""
        return Period.of(self.now, self.settings.insights_period_s)

    @cached_property
    def metrics(self) -> Mapping[str, MetricRef]:
        """Every metric, by name."""
        return metrics_by_name(self.evaluators)

    @cached_property
    def primary(self) -> Mapping[str, MetricRef]:
        """The primary metrics that records have; those of windows have no record's value."""
        return {name: one for name, one in self.metrics.items() if one.metric.primary and one.evaluator.combine is None}

    @cached_property
    def totals(self) -> "Mapping[Group, MetricTotals]":
        """Of the primary metrics."""
        return metric_totals(self.database, self.primary.values(), self.windows, self.period)


@dataclass(frozen=True)
class AppData:
    """One application in the period: a trace failed if a metric is out of the bounds of its rule in `rules`."""

    database: Database
    app: str
    rules: Mapping[str, Rule]
    period: Period
    settings: JobSettings

    @cached_property
    def samples(self) -> list[TraceSample]:
        """Sampled traces, by environment; read once."""
        return read_samples(self.database, self.app, self.rules, self.period, self.settings.insights_traces)


def sample_columns(
    database: Database, metrics: Iterable[MetricRef], period: Period, max_traces: int
) -> dict[AppEnvironment, Columns]:
    """Values of about `max_traces` live traces of each application, in randomly sampled minutes.

    Rows are sorted by minutes, so no others are read.
    """
    rows = database.rows(
        "SELECT app, environment, toUnixTimestamp(toStartOfMinute(time)) AS minute, count() AS n FROM traces "
        f"WHERE run_id = 'live' AND {IN_PERIOD} GROUP BY app, environment, minute "
        "ORDER BY app, environment, cityHash64(minute)",
        period.bound,
    )
    minutes_by_app: dict[AppEnvironment, list[tuple[int, int]]] = {}
    for row in rows:
        minutes_by_app.setdefault(AppEnvironment(row["app"], row["environment"]), []).append((row["minute"], row["n"]))
    metrics = list(metrics)
    found: dict[AppEnvironment, Columns] = {}
    for (app, environment), minutes in minutes_by_app.items():
        needed = bisect_left(list(accumulate(n for _, n in minutes)), max_traces) + 1
        traces = sum(n for _, n in minutes[:needed])
        times = ", ".join(f"toDateTime({minute}, 'UTC')" for minute, _ in minutes[:needed])
        where = f"app = {sql.text(app)} AND environment = {sql.text(environment)}"
        where += f" AND toStartOfMinute(time) IN ({times})"
        where += f" AND {in_sample(min(1.0, max_traces / traces))}"
        found |= metric_columns(database, metrics, where, period)
    return found


def metric_columns(
    database: Database, metrics: Iterable[MetricRef], where: str, interval: Period
) -> Mapping[AppEnvironment, Columns]:
    """Values of live scored rows for which `where` holds; its parameters are those of the interval.

    Of each metric those of the evaluator version that has most: versions are never mixed.
    """
    names = sorted(one.name for one in metrics)
    rows = database.rows(
        f"""
        SELECT app, environment, metric, toString(fingerprint) AS mark, groupArray(trace_id) AS traces,
            groupArray(value) AS values
        FROM (
            SELECT app, environment, fingerprint, trace_id, concat(evaluator, '.', key) AS metric, value
            FROM (
                SELECT app, environment, evaluator, fingerprint, trace_id, metrics FROM scores FINAL
                WHERE run_id = 'live' AND status = 'scored' AND {IN_PERIOD} AND {where}
                    AND evaluator IN {sql.texts(sorted({name.partition(".")[0] for name in names}))}
            ) ARRAY JOIN mapKeys(metrics) AS key, mapValues(metrics) AS value
        )
        WHERE metric IN {sql.texts(names)}
        GROUP BY app, environment, metric, mark
        ORDER BY app, environment, metric, length(values) DESC, mark LIMIT 1 BY app, environment, metric""",
        interval.bound,
    )
    found: dict[AppEnvironment, dict[str, dict[str, float]]] = {}
    for row in rows:
        columns = found.setdefault(AppEnvironment(row["app"], row["environment"]), {})
        columns[row["metric"]] = dict(zip(row["traces"], row["values"], strict=True))
    return found


@dataclass(frozen=True, slots=True)
class MetricTotals:
    """Values of one metric of one evaluator version: `n` > 0 of them, their sum and the sum of their squares."""

    n: int
    total: float
    squares: float
    min: float
    max: float

    def __add__(self, other: "MetricTotals") -> "MetricTotals":
        return MetricTotals(
            self.n + other.n,
            self.total + other.total,
            self.squares + other.squares,
            min(self.min, other.min),
            max(self.max, other.max),
        )

    @property
    def mean(self) -> float:
        """Of all values."""
        return self.total / self.n

    @property
    def sample(self) -> Sample:
        """Count, mean and variance."""
        spread = max(0.0, self.squares - self.total * self.mean)
        return Sample(self.n, self.mean, spread / (self.n - 1) if self.n > 1 else 0.0)

    @property
    def share(self) -> Share | None:
        """The share of ones if every value is 0 or 1: only then do values from 0 to 1 add up as their squares do."""
        if self.min < 0 or self.max > 1 or self.squares != self.total:
            return None
        return Share(round(self.total), self.n)


class Group(NamedTuple):
    """Whose values they are; a total over models or prompt versions has the empty one."""

    app: str
    environment: str
    metric: str
    model: str
    prompt_version: str


def merge(totals: Mapping[Group, MetricTotals], **empty: str) -> dict[Group, MetricTotals]:
    """Add up the totals of groups that are the same with these fields replaced, in order of the groups."""
    merged: dict[Group, MetricTotals] = {}
    for group, own in sorted(totals.items()):
        key = group._replace(**empty)
        merged[key] = merged[key] + own if key in merged else own
    return merged


def metric_totals(
    database: Database, metrics: Iterable[MetricRef], settings: WindowSettings, period: Period
) -> dict[Group, MetricTotals]:
    """Totals of live, unsegmented windows; of each evaluator those of the version with most records."""
    names = sorted(one.name for one in metrics)
    rows = database.rows(
        f"""
        SELECT app, environment, evaluator, metric, toString(fingerprint) AS mark, model, prompt_version,
            sum(scored) AS n, sum(windows.sum) AS total, sum(sum_squares) AS squares,
            min(windows.min) AS least, max(windows.max) AS greatest
        FROM windows FINAL
        WHERE {_windows_condition(database, settings, period)} AND metric IN {sql.texts(names)} AND scored > 0
        GROUP BY app, environment, evaluator, metric, mark, model, prompt_version
        HAVING least IS NOT NULL ORDER BY ALL"""
    )
    records: dict[tuple[str, ...], Counter[str]] = {}
    for row in rows:
        records.setdefault(_evaluator(row), Counter())[row["mark"]] += row["n"]
    version = {evaluator: counts.most_common(1)[0][0] for evaluator, counts in records.items()}
    return {
        Group(*(row[name] for name in Group._fields)): MetricTotals(
            row["n"], row["total"], row["squares"], row["least"], row["greatest"]
        )
        for row in rows
        if row["mark"] == version[_evaluator(row)]
    }


def _evaluator(row: Mapping[str, Any]) -> tuple[str, ...]:
    return row["app"], row["environment"], row["evaluator"]


def _windows_condition(database: Database, settings: WindowSettings, period: Period) -> str:
    """Condition on live, unsegmented windows of the period: hours as far as there are any, base windows after them."""
    first, end = int(period.start.timestamp()), int(period.end.timestamp())
    within = (
        f"run_id = 'live' AND segment = '' AND start >= toDateTime({first}, 'UTC') AND start < toDateTime({end}, 'UTC')"
    )
    base = f"size_s = {settings.base_s}"
    rows: list[dict[str, Any]] = []
    if settings.base_s != HOUR_S and HOUR_S in settings.all_sizes_s and not first % HOUR_S and not end % HOUR_S:
        rows = database.rows(
            f"SELECT evaluator, toUnixTimestamp(max(start)) + {HOUR_S} AS until FROM windows "
            f"WHERE {within} AND size_s = {HOUR_S} GROUP BY evaluator ORDER BY evaluator"
        )
    if not rows:
        return f"{within} AND {base}"
    # An hour closes for all evaluators of a lane at once, and lanes at times of their own.
    names = sql.array((sql.text(row["evaluator"]) for row in rows), "String")
    untils = sql.array((str(row["until"]) for row in rows), "UInt32")
    after = f"toUnixTimestamp(start) >= transform(toString(evaluator), {names}, {untils}, toUInt32({first}))"
    return f"{within} AND (size_s = {HOUR_S} OR ({base} AND {after}))"
