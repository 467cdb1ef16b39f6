"""Compare the metrics of two stored runs: ClickHouse sums their values."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from ragtide.drift.compare.decision import FAILURE, EvaluatorRun, MetricSums, compare_sums, shared_evaluators
from ragtide.drift.compare.model import CompareQuery, Comparison, MovedTrace
from ragtide.drift.stats import Sample
from ragtide.drift.windows import MINUTE_S, WHOLE_MINUTES, MetricRef
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database

_MAX_VERSIONS = 5
_CONDITIONS = {
    "app": "app = {app:String}",
    "start": "time >= {start:DateTime64(3, 'UTC')}",
    "end": "time < {end:DateTime64(3, 'UTC')}",
}


def compare(database: Database, declared: Mapping[str, MetricRef], query: CompareQuery) -> Comparison:
    """Compare every metric that both runs have, by name. Raises `ConfigError` for an unknown run or metric.

    The failure rate of an evaluator is compared as `evaluator.(failed)`.
    """
    of_a, of_b = (_evaluator_runs(database, query, run) for run in (query.run_a, query.run_b))
    sums = {name: _metric_sums(database, query, name) for name in shared_evaluators(of_a, of_b, query)}
    incomplete = _incomplete_runs(database, (query.run_a, query.run_b))
    return compare_sums(sums, of_a, of_b, declared, query, incomplete)


def _evaluator_runs(database: Database, query: CompareQuery, run: str) -> dict[str, EvaluatorRun]:
    """Read failures and versions by evaluator. Raises `ConfigError` if the run has no such scores."""
    statement = f"""
        SELECT evaluator, countIf(status = 'failed') AS failed,
            arraySort(groupUniqArray({_MAX_VERSIONS})(fingerprint)) AS fingerprints
        FROM scores FINAL WHERE {_where(query, "run_id = {run:String}")} GROUP BY evaluator"""
    rows = _rows(database, query, statement, run=run)
    if not rows:
        raise ConfigError(_no_scores_message(database, run))
    return {row["evaluator"]: EvaluatorRun(row["failed"], tuple(row["fingerprints"])) for row in rows}


def _metric_sums(database: Database, query: CompareQuery, evaluator: str) -> list[MetricSums]:
    """Aggregate each metric of an evaluator, sorted; of a trace scored twice in a run the newest version counts."""
    both = "in_a AND in_b"
    statement = f"""
        SELECT key, (countIf(in_a), avgIf(a, in_a), varSampStableIf(a, in_a)) AS all_a,
            (countIf(in_b), avgIf(b, in_b), varSampStableIf(b, in_b)) AS all_b,
            avgIf(a, {both}) AS pairs_a, avgIf(b, {both}) AS pairs_b,
            (countIf({both}), avgIf(b - a, {both}), varSampStableIf(b - a, {both})) AS differences,
            groupArraySortedIf({query.top:d})((-abs(b - a), trace_id, a, b), {both} AND a != b) AS moved
        FROM (
            SELECT key, mapContains(of_a.held, key) AS in_a, mapContains(of_b.held, key) AS in_b,
                of_a.held[key] AS a, of_b.held[key] AS b, of_a.trace_id AS trace_id
            FROM ({_select_values(query, "a")}) AS of_a
            FULL JOIN ({_select_values(query, "b")}) AS of_b ON of_a.trace_id = of_b.trace_id
            ARRAY JOIN arrayDistinct(arrayConcat(mapKeys(of_a.held), mapKeys(of_b.held))) AS key
        )
        GROUP BY key ORDER BY key"""
    return [
        MetricSums(
            key=row["key"],
            a=Sample(*row["all_a"]),
            b=Sample(*row["all_b"]),
            pairs_a=row["pairs_a"],
            pairs_b=row["pairs_b"],
            differences=Sample(*row["differences"]),
            moved=tuple(MovedTrace(*one[1:]) for one in row["moved"]),
        )
        for row in _rows(database, query, statement, a=query.run_a, b=query.run_b, evaluator=evaluator)
    ]


def _incomplete_runs(database: Database, runs: Sequence[str]) -> tuple[str, ...]:
    """Return the runs whose replay began but did not complete."""
    rows = database.rows(
        "SELECT run_id FROM runs FINAL WHERE run_id IN {runs:Array(String)} AND state != 'completed' ORDER BY run_id",
        {"runs": list(runs)},
    )
    return tuple(row["run_id"] for row in rows)


def _select_values(query: CompareQuery, run: str) -> str:
    """Select trace ids of a run with a map of the evaluator's values."""
    where = _where(query, f"run_id = {{{run}:String}} AND evaluator = {{evaluator:String}}")
    return f"""
        SELECT trace_id, mapConcat(CAST(metrics, 'Map(String, Float64)'),
            map('{FAILURE}', toFloat64(status = 'failed'))) AS held
        FROM scores FINAL WHERE {where} AND status IN ('scored', 'failed')
        ORDER BY version DESC LIMIT 1 BY trace_id"""


def _where(query: CompareQuery, run: str) -> str:
    return " AND ".join([run, *(_CONDITIONS[name] for name in _bounds(query))])


def _bounds(query: CompareQuery) -> dict[str, Any]:
    bounds = {"app": query.app, "start": query.start, "end": query.end}
    return {name: value for name, value in bounds.items() if value is not None}


def _rows(database: Database, query: CompareQuery, statement: str, **parameters: str) -> Sequence[dict[str, Any]]:
    whole = all(time is None or time.timestamp() % MINUTE_S == 0 for time in (query.start, query.end))
    return database.rows(statement, _bounds(query) | parameters, WHOLE_MINUTES if whole else {})


def _no_scores_message(database: Database, run: str) -> str:
    """Explain why a run has no matching scores."""
    known = [row["run_id"] for row in database.rows("SELECT DISTINCT run_id FROM scores ORDER BY run_id")]
    if run in known:
        return f"run {run!r} has no scores of this application and interval"
    near = difflib.get_close_matches(run, known, n=5) or known[:20]
    return f"unknown run {run!r}; runs with scores: {', '.join(near) or 'none'}"
