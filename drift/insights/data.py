"""Read what insights compare: metrics of the same traces as columns, and totals of windows by version."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from ragtide.drift import sql
from ragtide.drift.insights.agreement import Floats
from ragtide.drift.insights.model import Period
from ragtide.drift.settings import WindowSettings
from ragtide.drift.stats.means import Sample
from ragtide.drift.stats.proportions import Share
from ragtide.drift.stats.sampling import in_sample
from ragtide.drift.windows.metrics import MetricRef
from ragtide.sinks.clickhouse.database import Database

_TIMES = "time >= {start:DateTime64(3, 'UTC')} AND time < {end:DateTime64(3, 'UTC')}"


class AppEnvironment(NamedTuple):
    """Whose traces they are."""

    app: str
    environment: str


def sample_columns(
    database: Database, metrics: Iterable[MetricRef], period: Period, max_traces: int
) -> dict[AppEnvironment, dict[str, dict[str, float]]]:
    """Of each application about `most` live traces of the period at most, in minutes drawn by lot: rows are sorted by
    minutes, so that no others are read.
    """
    rows = database.rows(
        "SELECT app, environment, toUnixTimestamp(toStartOfMinute(time)) AS minute, count() AS n FROM traces "
        f"WHERE run_id = 'live' AND {_TIMES} GROUP BY app, environment, minute "
        "ORDER BY app, environment, cityHash64(minute)",
        {"start": period.start, "end": period.end},
    )
    minutes_by_app: dict[AppEnvironment, list[tuple[int, int]]] = {}
    for row in rows:
        minutes_by_app.setdefault(AppEnvironment(row["app"], row["environment"]), []).append((row["minute"], row["n"]))
    names = list(metrics)
    found: dict[AppEnvironment, dict[str, dict[str, float]]] = {}
    for app_environment, minutes in minutes_by_app.items():
        sampled, traces = _sample_minutes(minutes, max_traces)
        times = ", ".join(f"toDateTime({one}, 'UTC')" for one in sampled)
        where = f"app = {sql.text(app_environment.app)} AND environment = {sql.text(app_environment.environment)}"
        where += f" AND toStartOfMinute(time) IN ({times})"
        where += f" AND {in_sample(min(1.0, max_traces / traces))}"
        found |= metric_columns(database, names, where, period.start, period.end)
    return found


def metric_columns(
    database: Database,
    metrics: Iterable[MetricRef],
    where: str,
    start: datetime,
    end: datetime,
    bound: Mapping[str, Any] | None = None,
) -> dict[AppEnvironment, dict[str, dict[str, float]]]:
    """Of live scored rows in [start, end) for which `where` holds, `bound` its parameters; of each metric the values
    under the fingerprint that most have: others never mix.
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
                WHERE run_id = 'live' AND status = 'scored' AND {_TIMES} AND {where}
                    AND evaluator IN {sql.texts(sorted({name.partition(".")[0] for name in names}))}
            ) ARRAY JOIN mapKeys(metrics) AS key, mapValues(metrics) AS value
        )
        WHERE metric IN {sql.texts(names)}
        GROUP BY app, environment, metric, mark
        ORDER BY app, environment, metric, length(values) DESC, mark LIMIT 1 BY app, environment, metric""",
        {**(bound or {}), "start": start, "end": end},
    )
    found: dict[AppEnvironment, dict[str, dict[str, float]]] = {}
    for row in rows:
        of_app = found.setdefault(AppEnvironment(row["app"], row["environment"]), {})
        of_app[row["metric"]] = dict(zip(row["traces"], row["values"], strict=True))
    return found


def align(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[Floats, Floats]:
    """The values of the traces that have both, in one order."""
    both = [trace_id for trace_id in a if trace_id in b]
    return np.array([a[one] for one in both], np.float64), np.array([b[one] for one in both], np.float64)


def _sample_minutes(minutes: Sequence[tuple[int, int]], max_traces: int) -> tuple[list[int], int]:
    """As many minutes as it takes, the first first, and how many traces they have."""
    found, traces = [], 0
    for minute, n in minutes:
        found.append(minute)
        traces += n
        if traces >= max_traces:
            break
    return found, traces


_HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class MetricTotals:
    """Values of one metric under one fingerprint: `n` > 0 of them, their sum and the sum of their squares."""

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
        """The ones, where every value is 0 or 1: of values from 0 to 1 no others add up as their squares do."""
        if self.min < 0 or self.max > 1 or self.squares != self.total:
            return None
        return Share(round(self.total), self.n)


class Group(NamedTuple):
    """Whose values they are."""

    app: str
    environment: str
    metric: str
    model: str
    prompt_version: str


def metric_totals(
    database: Database, metrics: Iterable[MetricRef], settings: WindowSettings, period: Period
) -> dict[Group, MetricTotals]:
    """Of live records, uncut; where an evaluator's fingerprint changed, of the one with most: others never mix."""
    names = sorted(one.name for one in metrics)
    rows = database.rows(
        f"""
        SELECT app, environment, evaluator, metric, toString(fingerprint) AS mark, model, prompt_version,
            sum(scored) AS n, sum(windows.sum) AS total, sum(sum_squares) AS squares,
            min(windows.min) AS least, max(windows.max) AS greatest
        FROM windows FINAL
        WHERE {windows_condition(database, settings, period)} AND metric IN {sql.texts(names)} AND scored > 0
        GROUP BY app, environment, evaluator, metric, mark, model, prompt_version
        HAVING least IS NOT NULL ORDER BY ALL"""
    )
    records_by_version: dict[tuple[str, str, str], Counter[str]] = {}
    for row in rows:
        records_by_version.setdefault((row["app"], row["environment"], row["evaluator"]), Counter())[row["mark"]] += (
            row["n"]
        )
    most = {place: counts.most_common(1)[0][0] for place, counts in records_by_version.items()}
    return {
        Group(*(row[name] for name in Group._fields)): MetricTotals(
            row["n"], row["total"], row["squares"], row["least"], row["greatest"]
        )
        for row in rows
        if row["mark"] == most[row["app"], row["environment"], row["evaluator"]]
    }


def windows_condition(database: Database, settings: WindowSettings, period: Period) -> str:
    """Condition on live windows of the period, uncut: hours as far as there are any, base windows after them."""
    first, end = int(period.start.timestamp()), int(period.end.timestamp())
    within = (
        f"run_id = 'live' AND segment = '' AND start >= toDateTime({first}, 'UTC') AND start < toDateTime({end}, 'UTC')"
    )
    base = f"size_s = {settings.base_s}"
    if settings.base_s == _HOUR_S or _HOUR_S not in settings.all_sizes_s or first % _HOUR_S or end % _HOUR_S:
        return f"{within} AND {base}"
    rows = database.rows(
        f"SELECT evaluator, toUnixTimestamp(max(start)) + {_HOUR_S} AS until FROM windows "
        f"WHERE {within} AND size_s = {_HOUR_S} GROUP BY evaluator ORDER BY evaluator"
    )
    if not rows:
        return f"{within} AND {base}"
    # An hour closes for all evaluators of a lane at once, and lanes at times of their own.
    names = sql.array((sql.text(row["evaluator"]) for row in rows), "String")
    untils = sql.array((str(row["until"]) for row in rows), "UInt32")
    after = f"toUnixTimestamp(start) >= transform(toString(evaluator), {names}, {untils}, toUInt32({first}))"
    return f"{within} AND (size_s = {_HOUR_S} OR ({base} AND {after}))"


def merge_prompt_versions(found: Mapping[Group, MetricTotals]) -> dict[Group, MetricTotals]:
    """All prompt versions of a model as one, whose version is empty."""
    models: dict[Group, MetricTotals] = {}
    for group, own in found.items():
        model = group._replace(prompt_version="")
        models[model] = models[model] + own if model in models else own
    return models
