"""Whatever bytes and attributes hold: a bad record or a trace, never another error, and no number that is none."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ragtide.evaluators.errors import BadRecord
from ragtide.evaluators.slugs import is_slug
from ragtide.stream.ingest.otel import LogEvent, decode_logs, decode_spans, map_spans
from ragtide.stream.ingest.otel.names import DETAILS_EVENT, FIELDS, KINDS
from ragtide.stream.ingest.otel.spans import SpanEvent
from ragtide.stream.ingest.validation import validate
from tests.stream.otel.scene import LIMITS, RECORDED, TRACE, oi, span

FILES = [path.read_bytes() for path in sorted(RECORDED.glob("*.*")) if path.suffix in (".binpb", ".json")]
SOURCES = sorted({source.attribute.partition(":")[0] for sources in FIELDS.values() for source in sources})
FLATTENED = [
    "llm.input_messages.0.message.role",
    "llm.input_messages.0.message.content",
    "llm.input_messages.0.message.contents.1.message_content.text",
    "llm.input_messages.0.message.contents.x.message_content.text",
    "llm.output_messages.99999999.message.content",
    "retrieval.documents.0.document.content",
    "retrieval.documents.0.document.metadata",
    "retrieval.documents.1.document.score",
    "reranker.output_documents.0.document.id",
    "gen_ai.prompt.0.content",
    "gen_ai.completion..content",
]
TEXTS = st.text(max_size=8) | st.sampled_from(
    [
        *("__REDACTED__", "", "{}", "[]", "[[]]", "[null]", '{"documents": [1, null, {"id": {}}]}', "{broken", "1e999"),
        *('[{"role": "user", "parts": [{"type": "text", "content": 7}]}]', '{"messages": 3, "question": null}'),
        *('[{"role": "assistant", "content": [{"type": "text", "text": "a"}]}]', '{"total": "x"}', '{"model": 5}'),
    ]
)
SCALARS = TEXTS | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.binary(max_size=4) | st.none()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "parts", "type", "id", "text", "score", "x"]), inner)
    ),
    max_leaves=8,
)
KIND = st.sampled_from([(attribute, value) for attribute, _, kinds in KINDS for value in kinds])
ATTRIBUTES = st.dictionaries(st.sampled_from([*SOURCES, *FLATTENED]), VALUES, max_size=8)


@st.composite
def spans(draw: st.DrawFn) -> Any:
    attribute, value = draw(KIND)
    name = draw(st.sampled_from(["db.query.result", "gen_ai.choice", "gen_ai.user.message", "exception"]))
    fields = draw(st.dictionaries(st.sampled_from(["message", "content", "db.query.result.id", "entity"]), VALUES))
    number = draw(st.integers(1, 6))
    made = span(number, draw(st.integers(0, 6)), error=draw(st.booleans()))
    times = {"start_ns": draw(st.integers(0, 2**64 - 1)), "end_ns": draw(st.integers(0, 2**64 - 1))}
    return replace(
        made,
        attributes={attribute: value, **draw(ATTRIBUTES)},
        events=(SpanEvent(name, 0, fields),),
        resource=draw(ATTRIBUTES),
        **(times if draw(st.booleans()) else {}),
    )


@given(st.lists(spans(), min_size=1, max_size=6), ATTRIBUTES, VALUES)
@settings(max_examples=150, deadline=None)
def test_any_attributes_become_traces_that_ingest_reads_or_refuses(made: Any, details: Any, body: Any) -> None:
    logs = (
        LogEvent(TRACE, made[0].span_id, DETAILS_EVENT, 0, details, body),
        LogEvent(TRACE, made[-1].span_id, "gen_ai.choice", 0, details, body),
    )
    for trace in map_spans(made, logs).traces:
        for fault in validate(trace.encode(), LIMITS).faults:
            assert is_slug(fault.reason)
            assert fault.reason in {
                *("missing_question_and_answer", "missing_app", "missing_time", "time_out_of_range"),
                *("control_characters", "too_deep", "bad_time"),
            }, fault


@given(st.sampled_from(FILES), st.data())
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_a_batch_or_a_bad_record(file: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(file)))
    end = data.draw(st.integers(start, min(len(file), start + 20)))
    broken = file[:start] + data.draw(st.binary(max_size=20)) + file[end:]
    for decode in (decode_spans, decode_logs):
        try:
            decode(broken)
        except BadRecord as bad:
            assert is_slug(bad.reason)  # noqa: PT017  # that nothing is raised is right too


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
@settings(deadline=None)
def test_no_bytes_raise_another_error(value: bytes) -> None:
    for prefix in (b"", b'{"resourceSpans":', b"\n"):
        try:
            decode_spans(prefix + value)
        except BadRecord as bad:
            assert is_slug(bad.reason)  # noqa: PT017  # that nothing is raised is right too


def test_many_candidates_of_one_field_take_no_long_time() -> None:
    flattened: dict[str, Any] = {f"llm.input_messages.{n}.message.content": "x" for n in range(50_000)}
    [trace] = map_spans(
        [replace(span(1, **oi("LLM")), attributes={"openinference.span.kind": "LLM", **flattened})]
    ).traces
    assert trace.missing["question"].reason == "no_text"
