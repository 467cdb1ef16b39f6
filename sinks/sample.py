"""Sample rows for tests of sinks; no column is empty."""

from datetime import UTC, datetime, timedelta
from typing import Any

from ragtide.sinks.rows import (
    Block,
    DeadLetterRow,
    DirtyRow,
    EmbeddingRow,
    ExplanationRow,
    ProgressRow,
    ScoreRow,
    TextRow,
    TraceRow,
)

# Not `live`: those rows end their life counted from the time of the event, which may be long ago.
RUN = "check"
NOON = datetime(2026, 3, 1, 12, 0, 30, 250_000, tzinfo=UTC)

_TRACE = TraceRow(
    run_id=RUN,
    app="app",
    environment="prod",
    time=NOON,
    trace_id="t",
    version=1,
    session_id="s",
    user_id="u",
    task="qa",
    probe="",
    model="m",
    model_requested="m-latest",
    provider="p",
    prompt_version="v1",
    latency_s=1.5,
    first_token_s=0.25,
    cost_usd=0.001,
    input_tokens=120,
    output_tokens=30,
    error="",
    chunk_ids=["c1", "c2"],
    categories=["k"],
    segments={"tenant": "a"},
    relationships="[]",
    test_case="{}",
    topic="rag.traces",
    partition=3,
    offset=77,
    question_hash="5d1f",
    span_id="00f067aa0ba902b7",
)
_TEXT = TextRow(
    run_id=RUN,
    app="app",
    environment="prod",
    time=NOON,
    trace_id="t",
    version=1,
    question="why?",
    answer="because",
    chunk_ids=["c1"],
    chunks=["a chunk"],
    expected=["it is so"],
    error_message="",
    attributes="{}",
    rest='{"app":"app"}',
)
_SCORE = ScoreRow(
    run_id=RUN,
    app="app",
    environment="prod",
    evaluator="text_matching",
    time=NOON,
    trace_id="t",
    version=1,
    status="scored",
    reason="",
    metrics={"precision": 0.1, "recall": 1.0},
    categories={"language": "en"},
    parts={"true": 3.0},
    evidence="[]",
    findings=["cut"],
    fingerprint="f",
    weight=0.5,
    model="m",
    prompt_version="v1",
    segments={"tenant": "a"},
)
_EXPLANATION = ExplanationRow(
    run_id=RUN,
    app="app",
    environment="prod",
    evaluator="fact_check",
    time=NOON,
    trace_id="t",
    version=1,
    explanation="It landed in 1969: right.",
)
_EMBEDDING = EmbeddingRow(
    run_id=RUN,
    app="app",
    environment="prod",
    time=NOON,
    trace_id="t",
    version=1,
    model="encoder@1",
    vector=[0.5, -0.75, 0.0],
    answer=[127, -3, 0],
    answer_claims=["eur:0f", "stance:a1"],
)


def trace(trace_id: str, **changes: Any) -> TraceRow:
    """A trace's row with these columns changed."""
    return _TRACE._replace(trace_id=trace_id, **changes)


def text(trace_id: str, **changes: Any) -> TextRow:
    """Its texts."""
    return _TEXT._replace(trace_id=trace_id, **changes)


def score(trace_id: str, **changes: Any) -> ScoreRow:
    """One of its scores."""
    return _SCORE._replace(trace_id=trace_id, **changes)


def explanation(trace_id: str, **changes: Any) -> ExplanationRow:
    """What a judge wrote about a score of it."""
    return _EXPLANATION._replace(trace_id=trace_id, **changes)


def embedding(trace_id: str, **changes: Any) -> EmbeddingRow:
    """Its question's vector."""
    return _EMBEDDING._replace(trace_id=trace_id, **changes)


def block(traces: int = 3) -> Block:
    """Rows for every table, a second apart."""
    minute = NOON.replace(second=0, microsecond=0)
    times = [NOON + timedelta(seconds=number) for number in range(traces)]
    return Block(
        traces=[trace(f"t{number}", time=time) for number, time in enumerate(times)],
        texts=[text(f"t{number}", time=time) for number, time in enumerate(times)],
        scores=[
            score(f"t{number}", time=time, evaluator=evaluator)
            for number, time in enumerate(times)
            for evaluator in ("operations", "text_matching")
        ],
        explanations=[explanation(f"t{number}", time=time) for number, time in enumerate(times)],
        embeddings=[embedding(f"t{number}", time=time) for number, time in enumerate(times)],
        dead_letters=[DeadLetterRow(RUN, "rag.traces", 0, 9, NOON, "not_json", "line 1", "decode", 17, "ab" * 32)],
        dirty=[DirtyRow(RUN, "app", "prod", "fast", minute, "mark")],
        progress=[ProgressRow("fast", "rag.traces", 0, "w1", NOON, 10, 0)],
    )
