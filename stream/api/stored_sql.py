"""Statements that read stored rows; every value is a bound parameter. Filters without a value are left out."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ragtide.drift.label_sample import SCORES, THUMBS, label_sums, people_estimates

_TIME = "DateTime64(3, 'UTC')"
_CONDITIONS = {
    "apps": "app IN {apps:Array(String)}",
    "environments": "environment IN {environments:Array(String)}",
    "states": "state IN {states:Array(String)}",
    "types": "type IN {types:Array(String)}",
    "run": "run_id = {run:String}",
    "size_s": "size_s = {size_s:UInt32}",
}
# A metric is named itself, or by its evaluator.
_METRICS = "(metric IN {metrics:Array(String)} OR splitByChar('.', metric)[1] IN {metrics:Array(String)})"


def scores(filters: Mapping[str, Any], start: datetime | None, end: datetime | None) -> str:
    """A row per trace and metric; without a score, a row per trace and evaluator."""
    where = _where(filters, _between("time", start, end))
    if filters.get("metrics"):
        evaluators = "arrayMap(name -> splitByChar('.', name)[1], {metrics:Array(String)})"
        where += f" AND evaluator IN (SELECT arrayJoin({evaluators}))"
        where += " AND (key = '' OR evaluator IN {metrics:Array(String)} OR "
        where += "concat(evaluator, '.', key) IN {metrics:Array(String)})"
    return f"""
        SELECT time, trace_id, app, environment, evaluator, if(key = '', '', concat(evaluator, '.', key)) AS metric,
            if(key = '', NULL, metrics[key]) AS value, status, reason, evidence, findings, model, prompt_version,
            segments, fingerprint, weight
        FROM scores FINAL LEFT ARRAY JOIN mapKeys(CAST(metrics, 'Map(String, Float64)')) AS key
        WHERE {where}
        ORDER BY time DESC, trace_id, evaluator, metric LIMIT {{limit:UInt64}}"""


def windows(filters: Mapping[str, Any], start: datetime | None, end: datetime | None) -> str:
    """A row per window, metric and other dimensions."""
    conditions = [*_between("start", start, end), "segment = {segment:String}"]
    conditions += [_METRICS] if filters.get("metrics") else []
    return f"""
        SELECT toDateTime64(w.start, 3, 'UTC') AS start, size_s, app, environment, metric, model, prompt_version,
            segment, segment_value, fingerprint, seen, sampled, applicable, scored, failed, skipped, failures,
            if(scored > 0 AND evaluator NOT IN {{combined:Array(String)}}, sum / scored, NULL) AS mean, value, min, max,
            sum, sum_squares, state, incomplete, revision
        FROM (SELECT * FROM windows FINAL WHERE {_where(filters, conditions)}) AS w
        ORDER BY start DESC, app, environment, metric, model, prompt_version, segment_value, fingerprint
        LIMIT {{limit:UInt64}}"""


def people(filters: Mapping[str, Any], verdict: str, start: datetime | None, end: datetime | None) -> str:
    """A row per interval of some days and metric: what people would say of all its answers."""
    by = ["start", "app", "environment", "metric"]
    scores = f"""
        SELECT toStartOfInterval(time, toIntervalDay({{days:UInt32}})) AS start, app, environment, evaluator, metric,
            trace_id, value AS score_of_judge, weight
        FROM metric_values WHERE {_where(filters, [_METRICS, *_between("time", start, end)])}"""
    of_label = THUMBS if verdict == "thumbs" else SCORES
    sums = label_sums(scores, "labels", of_label, by)
    rows = people_estimates(sums, of_label, by)
    return f"""
        SELECT toDateTime64(p.start, 3, 'UTC') AS start, * EXCEPT start FROM ({rows}) AS p
        ORDER BY start DESC, app, environment, metric LIMIT {{limit:UInt64}}"""


def problems(filters: Mapping[str, Any], start: datetime | None, end: datetime | None) -> str:
    """A row per episode of a problem."""
    conditions = [_METRICS] if filters.get("metrics") else []
    conditions += [f"last_seen_at >= {{start:{_TIME}}}"] if start else []
    conditions += [f"first_seen_at < {{end:{_TIME}}}"] if end else []
    return f"""
        SELECT * FROM problems WHERE {_where(filters, conditions)}
        ORDER BY ifNull(opened_at, first_seen_at) DESC, problem_id, episode DESC LIMIT {{limit:UInt64}}"""


def insights(filters: Mapping[str, Any], start: datetime | None, end: datetime | None) -> str:
    """A row per insight that holds."""
    conditions = ["NOT withdrawn"]
    conditions += [f"period_end > {{start:{_TIME}}}"] if start else []
    conditions += [f"period_start < {{end:{_TIME}}}"] if end else []
    return f"""
        SELECT toDateTime64(i.period_start, 3, 'UTC') AS period_start,
            toDateTime64(i.period_end, 3, 'UTC') AS period_end, insight_id, type, app, environment, description,
            attributes, examples, actions
        FROM (SELECT * FROM insights FINAL WHERE {_where(filters, conditions)}) AS i
        ORDER BY period_start DESC, type, app, insight_id LIMIT {{limit:UInt64}}"""


def _between(column: str, start: datetime | None, end: datetime | None) -> list[str]:
    lower = [f"{column} >= {{start:{_TIME}}}"] if start else []
    return lower + ([f"{column} < {{end:{_TIME}}}"] if end else [])


def _where(filters: Mapping[str, Any], others: Sequence[str]) -> str:
    chosen = [condition for name, condition in _CONDITIONS.items() if filters.get(name)]
    return " AND ".join([*chosen, *others]) or "true"
