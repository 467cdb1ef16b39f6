"""Compare the metrics of two runs, corrected for multiple testing."""

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ragtide.drift.compare.model import ChangeVerdict, CompareQuery, Comparison, MetricChange, MovedTrace, VersionPair
from ragtide.drift.stats import Difference, Sample, benjamini_hochberg, paired_difference, unpaired_difference
from ragtide.drift.windows import MINUTE_S, WHOLE_MINUTES, MetricRef
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database

_FAILURE = ""  # the metric key of failures: 1 where the evaluator failed, 0 where it scored
_MAX_VERSIONS = 5
_CONDITIONS = {
    "app": "app = {app:String}",
    "start": "time >= {start:DateTime64(3, 'UTC')}",
    "end": "time < {end:DateTime64(3, 'UTC')}",
}


class _EvaluatorRun(NamedTuple):
    """Failures and versions of one evaluator in a run."""

    failed: int
    fingerprints: tuple[str, ...]


class _MetricSums(NamedTuple):
    """One metric's values: all of each run, and those of traces in both with their differences."""

    key: str
    a: Sample
    b: Sample
    pairs_a: float  # means of the pairs
    pairs_b: float
    differences: Sample
    moved: tuple[MovedTrace, ...]


def compare(database: Database, declared: Mapping[str, MetricRef], query: CompareQuery) -> Comparison:
    """Compare every metric that both runs have, by name. Raises `ConfigError` for an unknown run or metric.

    The failure rate of an evaluator is compared as `evaluator.(failed)`.
    """
    of_a, of_b = (_evaluator_runs(database, query, run) for run in (query.run_a, query.run_b))
    wanted = {name.partition(".")[0] for name in query.metrics}
    both = [name for name in sorted(of_a.keys() & of_b.keys()) if not wanted or name in wanted]
    changes = [
        _change(name, found, of_a[name], of_b[name], declared, query)
        for name in both
        for found in _metric_sums(database, query, name)
        if (found.key and _is_selected(f"{name}.{found.key}", query.metrics))
        or (not found.key and of_a[name].failed + of_b[name].failed)
    ]
    there = {change.metric for change in changes}
    if absent := [name for name in query.metrics if name not in there and name not in both]:
        raise ConfigError(
            f"both runs lack {', '.join(absent)}; they share: {', '.join(sorted(of_a.keys() & of_b.keys()))}"
        )
    return Comparison(
        metrics=tuple(_with_verdicts(changes, query)),
        only_a=tuple(sorted(of_a.keys() - of_b.keys())),
        only_b=tuple(sorted(of_b.keys() - of_a.keys())),
        fingerprints={
            name: VersionPair(of_a[name].fingerprints, of_b[name].fingerprints)
            for name in both
            if of_a[name].fingerprints != of_b[name].fingerprints
        },
        incomplete=_incomplete_runs(database, (query.run_a, query.run_b)),
    )


def _is_selected(metric: str, names: Sequence[str]) -> bool:
    return not names or metric in names or metric.partition(".")[0] in names


def _change(
    evaluator: str,
    found: _MetricSums,
    of_a: _EvaluatorRun,
    of_b: _EvaluatorRun,
    declared: Mapping[str, MetricRef],
    query: CompareQuery,
) -> MetricChange:
    pairs = found.differences.n
    by_pairs = pairs > 0 and 2 * pairs >= min(found.a.n, found.b.n)
    difference = _difference(found, by_pairs, 1 - query.alpha)
    name = f"{evaluator}.{found.key or '(failed)'}"
    known = declared.get(name)
    return MetricChange(
        metric=name,
        better="lower" if found.key == _FAILURE else known.metric.better if known else None,
        verdict="unknown",
        method="paired" if by_pairs else "welch",
        paired=pairs,
        only_a=found.a.n - pairs,
        only_b=found.b.n - pairs,
        mean_a=_finite(found.pairs_a if by_pairs else found.a.mean),
        mean_b=_finite(found.pairs_b if by_pairs else found.b.mean),
        difference=difference.value,
        low=difference.low,
        high=difference.high,
        p=difference.p,
        p_adjusted=None,
        coverage_a=_coverage(found.key, found.a.n, of_a),
        coverage_b=_coverage(found.key, found.b.n, of_b),
        moved=found.moved,
    )


def _difference(found: _MetricSums, by_pairs: bool, confidence: float) -> Difference:
    """Compare the pairs if at least half of the smaller run is paired, else all values as independent samples."""
    if by_pairs:
        return paired_difference(found.differences, confidence)
    return unpaired_difference(found.a, found.b, confidence) if found.a.n and found.b.n else Difference()


def _finite(mean: float) -> float | None:
    """Replace the mean of no values, or an overflow, by None."""
    return mean if math.isfinite(mean) else None


def _coverage(key: str, scored: int, evaluated: _EvaluatorRun) -> float | None:
    applicable = scored + evaluated.failed
    return scored / applicable if key != _FAILURE and applicable else None


def _with_verdicts(changes: Sequence[MetricChange], query: CompareQuery) -> list[MetricChange]:
    """Set verdict and adjusted p-value of changes that have a p-value."""
    known = [change for change in changes if change.p is not None]
    adjusted = benjamini_hochberg([change.p for change in known if change.p is not None])
    judged = {
        change.metric: replace(change, p_adjusted=p, verdict=_verdict(change, p, query))
        for change, p in zip(known, adjusted, strict=True)
    }
    return [judged.get(change.metric, change) for change in changes]


def _verdict(change: MetricChange, p: float, query: CompareQuery) -> ChangeVerdict:
    difference = change.difference or 0.0
    if p > query.alpha or abs(difference) < query.min_change:
        return "same"
    if change.better is None:
        return "differs"
    return "better" if (difference > 0) == (change.better == "higher") else "worse"


def _evaluator_runs(database: Database, query: CompareQuery, run: str) -> dict[str, _EvaluatorRun]:
    """Read failures and versions by evaluator. Raises `ConfigError` if the run has no such scores."""
    statement = f"""
        SELECT evaluator, countIf(status = 'failed') AS failed,
            arraySort(groupUniqArray({_MAX_VERSIONS})(fingerprint)) AS fingerprints
        FROM scores FINAL WHERE {_where(query, "run_id = {run:String}")} GROUP BY evaluator"""
    rows = _rows(database, query, statement, run=run)
    if not rows:
        raise ConfigError(_no_scores_message(database, run))
    return {row["evaluator"]: _EvaluatorRun(row["failed"], tuple(row["fingerprints"])) for row in rows}


def _metric_sums(database: Database, query: CompareQuery, evaluator: str) -> list[_MetricSums]:
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
        _MetricSums(
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
            map('{_FAILURE}', toFloat64(status = 'failed'))) AS held
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
