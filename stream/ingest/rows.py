"""Make rows of traces and outcomes. Texts of users go to the texts row only."""

import hmac
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256

import msgspec

from ragtide.evaluators.judge.calls import LEFT_OUT
from ragtide.evaluators.outcome import MOST_EVIDENCE, Failed, Finding, NotApplicable, Outcome, Scored
from ragtide.evaluators.plan import PreparedEvaluator
from ragtide.evaluators.text.surrogates import replace_surrogates
from ragtide.evaluators.trace import Model, Trace
from ragtide.sinks.rows import DeadLetterRow, ExplanationRow, ScoreRow, TextRow, TraceRow
from ragtide.sinks.version import pack, revision_of
from ragtide.stream.ingest.enriched import version_of
from ragtide.stream.ingest.question_hash import QuestionHash
from ragtide.stream.ingest.records import DeadLetter, Record, broker_time
from ragtide.stream.ingest.stored_trace import rest_of

_NO_LABELS: Mapping[str, str] = {}
_NO_NUMBERS: Mapping[str, float] = {}
_NO_FINDINGS: Sequence[str] = ()
_NO_MODEL = Model()
_NOT_SAMPLED = NotApplicable("not_sampled")
_LEFT_OUT = frozenset((_NOT_SAMPLED.reason, *LEFT_OUT))
_SPAN_ID = re.compile(r"(?!0{16})[0-9a-f]{16}")
_encode = msgspec.json.encode
ScoreKey = tuple[str, str, int]  # evaluator, trace id, version


class TraceContext(msgspec.Struct, frozen=True, gc=False):
    """A trace, its record, and the values that all its rows share. One per record: a tuple takes 1 µs longer.

    `record` lies where the message lay that it enriches, where it does. `second` is its event time since 1970;
    `version` leaves the evaluator's 16 bits at 0.
    """

    trace: Trace
    record: Record
    run_id: str
    second: int
    version: int
    model: str  # served, else requested
    prompt_version: str


def with_context(trace: Trace, record: Record, run_id: str, second: int) -> TraceContext:
    """Make the context of a trace."""
    model = trace.model or _NO_MODEL
    return TraceContext(
        trace,
        record,
        run_id,
        second,
        version_of(record),
        model.served or model.requested or "",
        model.prompt_version or "",
    )


def chunk_ids(trace: Trace) -> Sequence[str]:
    """Ids of the retrieved chunks, in order."""
    return [chunk.id for chunk in trace.contexts] if trace.contexts else ()


def trace_row(ctx: TraceContext, user_key: bytes | None, hash_question: QuestionHash) -> TraceRow:
    """Make the row of `traces`. With `user_key` the user id becomes its keyed hash.

    The user of an enriched trace comes from the tables, already hashed.
    """
    trace, record = ctx.trace, ctx.record
    model = trace.model or _NO_MODEL
    latency, tokens, error, user = trace.latency, trace.tokens, trace.error, trace.user_id or ""
    if user and user_key is not None and not revision_of(ctx.version):
        user = hmac.new(user_key, user.encode(), sha256).hexdigest()[:32]
    return TraceRow(
        ctx.run_id,
        trace.app,
        trace.environment,
        trace.time,
        trace.trace_id,
        ctx.version,
        trace.session_id or "",
        user,
        trace.task or "",
        trace.probe or "",
        ctx.model,
        model.requested or "",
        model.provider or "",
        ctx.prompt_version,
        latency.total_s if latency is not None else None,
        latency.first_token_s if latency is not None else None,
        trace.cost_usd,
        tokens.input if tokens is not None else None,
        tokens.output if tokens is not None else None,
        error.type if error is not None else "",
        chunk_ids(trace),
        trace.categories,
        trace.segments,
        _encode(trace.relationships).decode() if trace.relationships else "[]",
        _encode(trace.test_case).decode() if trace.test_case is not None else "{}",
        record.topic,
        record.partition,
        record.offset,
        hash_question(trace.question),
        _span_id(trace),
    )


def _span_id(trace: Trace) -> str:
    """The id of the root span, if it is one that OpenTelemetry knows."""
    return trace.span_id if trace.span_id and _SPAN_ID.fullmatch(trace.span_id) else ""


def text_row(ctx: TraceContext, *, with_rest: bool) -> TextRow:
    """Make the row of `trace_texts`; `with_rest` if nothing is masked, so that the trace can be rebuilt."""
    trace = ctx.trace
    return TextRow(
        ctx.run_id,
        trace.app,
        trace.environment,
        trace.time,
        trace.trace_id,
        ctx.version,
        trace.question,
        trace.answer,
        chunk_ids(trace),
        [chunk.text or "" for chunk in trace.contexts] if trace.contexts else (),
        trace.expected or (),
        (trace.error.message or "") if trace.error is not None else "",
        _encode(trace.attributes).decode() if trace.attributes else "{}",
        rest_of(trace) if with_rest else "",
    )


def score_rows(
    ctxs: Sequence[TraceContext],
    prepared: PreparedEvaluator,
    outcomes: Sequence[Outcome | None],
    weights: Sequence[float],
    evidence_cut: Counter[str],
    findings_of: dict[ScoreKey, tuple[Finding, ...]],
    sums: Sequence[Mapping[str, float]] | None = None,
) -> list[ScoreRow]:
    """Make the rows of one evaluator's outcomes, in order. An outcome None (the task is not evaluated) has no row.

    A trace that a limit of judges left out is stored like one outside the sample, with the limit as reason. `sums` are
    further parts of each row. Stores the first 1,000 places of evidence of each outcome; `evidence_cut` counts, by
    evaluator, those with more. Rows have the kinds of findings only; `findings_of` keeps them whole.
    """
    evaluator, fingerprint = prepared.evaluator.id, prepared.fingerprint
    version = pack(0, 0, evaluator_version=prepared.evaluator.version)
    rows = []
    more: Sequence[Mapping[str, float]] = [_NO_NUMBERS] * len(ctxs) if sums is None else sums
    for ctx, outcome, weight, own in zip(ctxs, outcomes, weights, more, strict=True):
        if outcome is None:
            continue
        metrics, categories, parts = _NO_NUMBERS, _NO_LABELS, _NO_NUMBERS
        status, reason, evidence, findings = "scored", "", "[]", _NO_FINDINGS
        if isinstance(outcome, Failed):
            status, reason = "failed", outcome.kind
        else:
            if isinstance(outcome, Scored):
                metrics, categories, parts = outcome.metrics, outcome.categories, outcome.parts
                if outcome.evidence:
                    evidence = _encode(outcome.evidence[:MOST_EVIDENCE]).decode()
                    evidence_cut[evaluator] += len(outcome.evidence) > MOST_EVIDENCE
            else:
                status, reason = "sampled_out" if is_left_out(outcome) else "not_applicable", outcome.reason
            if outcome.findings:
                findings = [finding.kind for finding in outcome.findings]
                findings_of[evaluator, ctx.trace.trace_id, ctx.version + version] = outcome.findings
        trace = ctx.trace
        rows.append(
            ScoreRow(
                ctx.run_id,
                trace.app,
                trace.environment,
                evaluator,
                trace.time,
                trace.trace_id,
                ctx.version + version,
                status,
                reason,
                metrics,
                categories,
                {**parts, **own} if own else parts,
                evidence,
                findings,
                fingerprint,
                weight,
                ctx.model,
                ctx.prompt_version,
                trace.segments,
            )
        )
    return rows


def explanation_rows(
    rows: Sequence[ScoreRow], outcomes: Sequence[Outcome | None], mask: Callable[[str], str]
) -> Iterator[ExplanationRow]:
    """Make the rows of `explanations` for the rows of an evaluator's outcomes, in order. `mask` masks their texts."""
    explained = [
        outcome.explanation if isinstance(outcome, Scored) else "" for outcome in outcomes if outcome is not None
    ]
    for row, explanation in zip(rows, explained, strict=True):
        if explanation:
            place = (row.run_id, row.app, row.environment, row.evaluator, row.time, row.trace_id, row.version)
            yield ExplanationRow(*place, mask(replace_surrogates(explanation)))


def is_left_out(outcome: NotApplicable) -> bool:
    """Whether the trace was not in the sample, or a limit of judges left it out."""
    return outcome.reason in _LEFT_OUT


def with_not_sampled(
    outcomes: Sequence[Outcome | None], ctxs: Sequence[TraceContext], prepared: PreparedEvaluator, places: Sequence[int]
) -> list[Outcome | None]:
    """Return the outcomes with those of traces outside the sample, at these places, which the evaluator did not see."""
    found = list(outcomes)
    for at in places:
        found[at] = _NOT_SAMPLED if prepared.selects(ctxs[at].trace) else None
    return found


def dead_letter_row(letter: DeadLetter, run_id: str) -> DeadLetterRow:
    """Make the row of a dead letter: position and reason; the content only as size and hash."""
    record, reason, stage, detail = letter
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
