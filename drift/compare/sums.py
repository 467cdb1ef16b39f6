"""What the database adds up for a comparison: counts, means and variances, so that no record's row leaves it."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from drift.compare.difference import Sample
from drift.compare.result import Moved, Question
from drift.windows.scope import MINUTE, WHOLE_MINUTES
from evaluators.errors import ConfigError
from sinks.clickhouse.database import Database

FAILED = ""  # in place of a metric's key: 1 where the evaluator failed, 0 where it scored
_FINGERPRINTS = 5


class Evaluated(NamedTuple):
    """What a run has of one evaluator."""

    failed: int
    fingerprints: tuple[str, ...]


class Sums(NamedTuple):
    """One metric's values: all of each run, and of the traces that both have their values and differences."""

    key: str
    a: Sample
    b: Sample
    pairs_a: float  # means of the pairs
    pairs_b: float
    differences: Sample
    moved: tuple[Moved, ...]


def evaluated(database: Database, question: Question, run: str) -> dict[str, Evaluated]:
    """By evaluator; raises `ConfigError` where the run has nothing that was asked for."""
    rows = database.rows(
        f"""
        SELECT evaluator, countIf(status = 'failed') AS failed,
            arraySort(groupUniqArray({_FINGERPRINTS})(fingerprint)) AS fingerprints
        FROM scores FINAL WHERE {_where(question, "run_id = {run:String}")} GROUP BY evaluator""",
        _bound(question) | {"run": run},
        _settings(question),
    )
    if not rows:
        raise ConfigError(_nothing(database, run))
    return {row["evaluator"]: Evaluated(row["failed"], tuple(row["fingerprints"])) for row in rows}


def sums(database: Database, question: Question, evaluator: str) -> list[Sums]:
    """Of each metric of an evaluator, sorted; a trace that stands twice in a run counts in its newest version."""
    both = "in_a AND in_b"
    rows = database.rows(
        f"""
        SELECT key, countIf(in_a) AS n_a, avgIf(a, in_a) AS mean_a, varSampStableIf(a, in_a) AS var_a,
            countIf(in_b) AS n_b, avgIf(b, in_b) AS mean_b, varSampStableIf(b, in_b) AS var_b,
            countIf({both}) AS pairs, avgIf(a, {both}) AS pairs_a, avgIf(b, {both}) AS pairs_b,
            avgIf(b - a, {both}) AS mean_d, varSampStableIf(b - a, {both}) AS var_d,
            groupArraySortedIf({question.top:d})((-abs(b - a), trace_id, a, b), {both} AND a != b) AS moved
        FROM (
            SELECT key, mapContains(of_a.held, key) AS in_a, mapContains(of_b.held, key) AS in_b,
                of_a.held[key] AS a, of_b.held[key] AS b, of_a.trace_id AS trace_id
            FROM ({_held(question, "a")}) AS of_a
            FULL JOIN ({_held(question, "b")}) AS of_b ON of_a.trace_id = of_b.trace_id
            ARRAY JOIN arrayDistinct(arrayConcat(mapKeys(of_a.held), mapKeys(of_b.held))) AS key
        )
        GROUP BY key ORDER BY key""",
        _bound(question) | {"a": question.run_a, "b": question.run_b, "evaluator": evaluator},
        _settings(question),
    )
    return [_sums(row) for row in rows]


def incomplete(database: Database, runs: Sequence[str]) -> tuple[str, ...]:
    """Those of the runs whose replay began and did not complete."""
    rows = database.rows(
        "SELECT run_id FROM runs FINAL WHERE run_id IN {runs:Array(String)} AND state != 'completed' ORDER BY run_id",
        {"runs": list(runs)},
    )
    return tuple(row["run_id"] for row in rows)


def _held(question: Question, run: str) -> str:
    """Trace ids of a run with a map of what the evaluator's row holds."""
    where = _where(question, f"run_id = {{{run}:String}} AND evaluator = {{evaluator:String}}")
    return f"""
        SELECT trace_id, mapConcat(CAST(metrics, 'Map(String, Float64)'), map('{FAILED}', toFloat64(status = 'failed')))
            AS held
        FROM scores FINAL WHERE {where} AND status IN ('scored', 'failed')
        ORDER BY version DESC LIMIT 1 BY trace_id"""


def _where(question: Question, run: str) -> str:
    conditions = {
        "app = {app:String}": question.app,
        "time >= {start:DateTime64(3, 'UTC')}": question.start,
        "time < {end:DateTime64(3, 'UTC')}": question.end,
    }
    return " AND ".join([run, *(condition for condition, value in conditions.items() if value is not None)])


def _settings(question: Question) -> Mapping[str, int]:
    whole = all(time is None or time.timestamp() % MINUTE == 0 for time in (question.start, question.end))
    return WHOLE_MINUTES if whole else {}


def _bound(question: Question) -> dict[str, Any]:
    bound = {"app": question.app, "start": question.start, "end": question.end}
    return {name: value for name, value in bound.items() if value is not None}


def _sums(row: dict[str, Any]) -> Sums:
    return Sums(
        key=row["key"],
        a=Sample(row["n_a"], row["mean_a"], row["var_a"]),
        b=Sample(row["n_b"], row["mean_b"], row["var_b"]),
        pairs_a=row["pairs_a"],
        pairs_b=row["pairs_b"],
        differences=Sample(row["pairs"], row["mean_d"], row["var_d"]),
        moved=tuple(Moved(*one[1:]) for one in row["moved"]),
    )


def _nothing(database: Database, run: str) -> str:
    """Why a run has no scores that were asked for."""
    known = [row["run_id"] for row in database.rows("SELECT DISTINCT run_id FROM scores ORDER BY run_id")]
    if run in known:
        return f"run {run!r} has no scores of that application and time"
    near = difflib.get_close_matches(run, known, n=5) or known[:20]
    return (
        f"there is no run {run!r}; there {'are' if near else 'is none with scores'}{': ' * bool(near)}{', '.join(near)}"
    )
