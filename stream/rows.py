"""Traces and outcomes become rows. What users wrote goes to the texts row and nowhere else."""

import hmac
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

import msgspec

from evaluators.outcome import Failed, NotApplicable, Outcome, Scored
from evaluators.run import Prepared
from evaluators.trace import Model, Trace
from sinks.rows import DeadLetterRow, ScoreRow, TextRow, TraceRow
from stream.records import Record, broker_time

_NO_LABELS: Mapping[str, str] = {}
_NO_NUMBERS: Mapping[str, float] = {}
_EVALUATOR_VERSION_MAX = (1 << 16) - 1
_NO_MODEL = Model()
_encode = msgspec.json.encode


class Placed(NamedTuple):
    """A trace and what all its rows share; `version` leaves the evaluator's 16 bits at 0."""

    trace: Trace
    run_id: str
    model: str
    prompt_version: str
    version: int


def placed(trace: Trace, run_id: str, version: int) -> Placed:
    """`trace` with what its rows repeat, worked out once."""
    model = trace.model or _NO_MODEL
    return Placed(trace, run_id, model.served or model.requested or "", model.prompt_version or "", version)


def trace_row(place: Placed, record: Record, user_key: bytes | None) -> TraceRow:
    """Everything known of the trace except texts; with `user_key` the user id becomes its keyed hash."""
    trace, run_id, model, prompt_version, version = place
    asked = trace.model or _NO_MODEL
    latency, tokens, error, user = trace.latency, trace.tokens, trace.error, trace.user_id or ""
    if user and user_key is not None:
        user = hmac.new(user_key, user.encode(), sha256).hexdigest()[:32]
    contexts = trace.contexts
    return TraceRow(
        run_id,
        trace.app,
        trace.environment,
        trace.time,
        trace.trace_id,
        version,
        trace.session_id or "",
        user,
        trace.task or "",
        trace.probe or "",
        model,
        asked.requested or "",
        asked.provider or "",
        prompt_version,
        latency.total_s if latency is not None else None,
        latency.first_token_s if latency is not None else None,
        trace.cost_usd,
        tokens.input if tokens is not None else None,
        tokens.output if tokens is not None else None,
        error.type if error is not None else "",
        [chunk.id for chunk in contexts] if contexts else (),
        trace.categories,
        trace.segments,
        _encode(trace.relationships).decode() if trace.relationships else "[]",
        _encode(trace.test_case).decode() if trace.test_case is not None else "{}",
        record.topic,
        record.partition,
        record.offset,
    )


def text_row(place: Placed) -> TextRow:
    """What users wrote."""
    trace = place.trace
    contexts = trace.contexts
    return TextRow(
        place.run_id,
        trace.app,
        trace.environment,
        trace.time,
        trace.trace_id,
        place.version,
        trace.question,
        trace.answer,
        [chunk.id for chunk in contexts] if contexts else (),
        [chunk.text or "" for chunk in contexts] if contexts else (),
        trace.expected or (),
        (trace.error.message or "") if trace.error is not None else "",
        _encode(trace.attributes).decode() if trace.attributes else "{}",
    )


def score_row(place: Placed, prepared: Prepared, outcome: Outcome, weight: float) -> ScoreRow:
    """One evaluator's outcome for one trace."""
    evidence: str = "[]"
    findings: Sequence[str] = ()
    metrics, categories, parts = _NO_NUMBERS, _NO_LABELS, _NO_NUMBERS
    reason = ""
    match outcome:
        case Scored():
            status = "scored"
            metrics, categories, parts = outcome.metrics, outcome.categories, outcome.parts
            if outcome.evidence:
                evidence = _encode(outcome.evidence).decode()
            if outcome.findings:
                findings = [finding.kind for finding in outcome.findings]
        case NotApplicable():
            status, reason = "not_applicable", outcome.reason
            if outcome.findings:
                findings = [finding.kind for finding in outcome.findings]
        case Failed():
            status, reason = "failed", outcome.kind
    return _score(place, prepared, status, reason, metrics, categories, parts, evidence, findings, weight)


def sampled_out_row(place: Placed, prepared: Prepared, weight: float) -> ScoreRow:
    """Says that the evaluator would have looked at the trace, had it been in the sample."""
    return _score(place, prepared, "sampled_out", "sampling", _NO_NUMBERS, _NO_LABELS, _NO_NUMBERS, "[]", (), weight)


def dead_letter_row(record: Record, run_id: str, reason: str, detail: str, stage: str) -> DeadLetterRow:
    """Where a record lay and why it was set aside; its content only as size and hash."""
    value = record.value or b""
    return DeadLetterRow(
        run_id,
        record.topic,
        record.partition,
        record.offset,
        broker_time(record),
        reason,
        detail,
        stage,
        len(value),
        sha256(value).hexdigest(),
    )


def _score(
    place: Placed,
    prepared: Prepared,
    status: str,
    reason: str,
    metrics: Mapping[str, float],
    categories: Mapping[str, str],
    parts: Mapping[str, float],
    evidence: str,
    findings: Sequence[str],
    weight: float,
) -> ScoreRow:
    trace = place.trace
    evaluator = prepared.evaluator
    return ScoreRow(
        place.run_id,
        trace.app,
        trace.environment,
        evaluator.id,
        trace.time,
        trace.trace_id,
        place.version + min(max(evaluator.version, 0), _EVALUATOR_VERSION_MAX),
        status,
        reason,
        metrics,
        categories,
        parts,
        evidence,
        findings,
        prepared.fingerprint,
        weight,
        place.model,
        place.prompt_version,
        trace.segments,
    )
