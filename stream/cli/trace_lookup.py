"""Look up one trace: its row, texts, scores, and the problems that name it as an example."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ragtide.drift.problems import Problem, State, load_problems
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.outcome import Evidence
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE, PROBE, TextRow, TraceRow

_STATES: Sequence[State] = ("pending", "open", "resolved")
_PLACE = (
    "run_id = {run:String} AND app = {app:String} AND environment = {environment:String} AND trace_id = {id:String}"
)
_SCORES = (
    "SELECT evaluator, status, reason, metrics, categories, parts, evidence, findings, fingerprint, weight, "
    "explanation FROM scores AS s FINAL LEFT JOIN "
    f"(SELECT evaluator, version, explanation FROM explanations FINAL WHERE {_PLACE}) AS e USING (evaluator, version) "
    f"WHERE {_PLACE} ORDER BY evaluator"
)
_read_evidence = msgspec.json.Decoder(tuple[Evidence, ...]).decode


@dataclass(frozen=True, slots=True)
class Score:
    """The outcome of one evaluator; `status` and `reason` as in table `scores`."""

    evaluator: str
    status: str
    reason: str
    metrics: Mapping[str, float]
    categories: Mapping[str, str]
    parts: Mapping[str, float]
    evidence: tuple[Evidence, ...]
    findings: Sequence[str]
    fingerprint: str
    weight: float
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """One trace of one run. `texts` is None where none are stored, or no longer."""

    trace: TraceRow
    texts: TextRow | None
    scores: tuple[Score, ...]
    problems: tuple[Problem, ...]

    @property
    def is_masked(self) -> bool:
        """Whether the texts differ from those that were evaluated, so that offsets of evidence do not fit them."""
        return self.texts is not None and not self.texts.rest


def find_trace(
    database: Database, trace_id: str, app: str | None, environment: str | None, run_id: str | None
) -> StoredTrace:
    """Find the trace. Without `run_id` it is one of live traffic or of a probe.

    Raises `ConfigError` if there is none, or if several applications or environments have one of this id.
    """
    runs = [LIVE, PROBE] if run_id is None else [run_id]
    rows = database.rows(
        f"SELECT {', '.join(TraceRow._fields)} FROM traces FINAL "
        "WHERE run_id IN {runs:Array(String)} AND trace_id = {id:String} ORDER BY version DESC",
        {"runs": runs, "id": trace_id},
    )
    found = [
        trace
        for trace in (TraceRow(**row) for row in rows)
        if app in (None, trace.app) and environment in (None, trace.environment)
    ]
    if not found:
        raise ConfigError(_absent(trace_id, runs, [TraceRow(**row) for row in rows]))
    if len(places := {(one.app, one.environment) for one in found}) > 1:
        listed = ", ".join(f"--app {of} --environment {there!r}" for of, there in sorted(places))
        raise ConfigError(f"several traces have the id {trace_id!r}; choose one: {listed}")
    trace = found[0]
    bound = {"run": trace.run_id, "app": trace.app, "environment": trace.environment, "id": trace_id}
    texts = database.rows(f"SELECT {', '.join(TextRow._fields)} FROM trace_texts FINAL WHERE {_PLACE}", bound)
    return StoredTrace(
        trace,
        TextRow(**texts[0]) if texts else None,
        tuple(_score(row) for row in database.rows(_SCORES, bound)),
        _problems(database, trace),
    )


def _absent(trace_id: str, runs: Sequence[str], elsewhere: Sequence[TraceRow]) -> str:
    if elsewhere:
        places = ", ".join(sorted({f"{one.app} {one.environment}".strip() for one in elsewhere}))
        return f"no trace {trace_id!r} of that application and environment; there is one of {places}"
    where = "live traffic" if runs[0] == LIVE else f"run {runs[0]}"
    return (
        f"no trace {trace_id!r} in {where}: it never arrived, is a dead letter (`ragtide dead-letters list --each`), "
        "belongs to a replay (--run), or is older than retention.traces_days"
    )


def _score(row: Mapping[str, Any]) -> Score:
    return Score(**{**row, "evidence": _read_evidence(row["evidence"] or "[]")})


def _problems(database: Database, trace: TraceRow) -> tuple[Problem, ...]:
    """Problems of the application with the trace among their examples; of live traffic and probes only."""
    if trace.run_id not in (LIVE, PROBE):
        return ()
    rows = database.rows(
        "SELECT DISTINCT problem_id FROM problem_events FINAL WHERE app = {app:String} AND has(examples, {id:String})",
        {"app": trace.app, "id": trace.trace_id},
    )
    ids = [row["problem_id"] for row in rows]
    return tuple(load_problems(database, states=_STATES, ids=ids)) if ids else ()
