"""Every bad record gets a reason and a place, never its content; every good one keeps all it says."""

import contextlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtide.evaluators.errors import BadRecord
from ragtide.evaluators.trace import Chunk, Source, Trace
from ragtide.sinks.settings import RetentionSettings
from ragtide.stream.ingest.decoding import Limits, decode_trace
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.settings.sections import IngestSettings
from tests.stream.pipe.records import AT_MS, fields, record

LIVE = Limits.of(IngestSettings(), RetentionSettings(), timely=True)
REPLAY = Limits.of(IngestSettings(), RetentionSettings(), timely=False)
SECRET = "kept-from-every-message"


def bad(value: Any = None, *, limits: Limits = LIVE, **changes: Any) -> BadRecord:
    with pytest.raises(BadRecord) as caught:
        decode_trace(record(value, **changes), limits)
    return caught.value


def test_a_trace_in_full() -> None:
    trace = decode_trace(record(offset=7, partition=3), LIVE).trace
    assert trace.trace_id == "t-1"
    assert trace.time == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert trace.contexts == (Chunk("c-1", "json.dumps returns a string.", 0.9, 1),)
    assert trace.source == Source("rag.traces", 3, 7)
    assert trace.task == "question_answering"
    assert trace.expected is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "not_json"),
        (b"hello", "not_json"),
        (b'{"trace_id": "a"', "not_json"),
        (b"{} {}", "not_json"),
        (b"\xff\xfe", "not_utf8"),
        (b"[1]", "not_an_object"),
        (b"null", "not_an_object"),
        (b'"text"', "not_an_object"),
        (b"{}", "missing_trace_id"),
        (b"[" * 100_000, "too_deep"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "too_deep"),
        (b'{"a":"\\ud800","b":' + b"[" * 5000 + b"]" * 5000 + b"}", "too_deep"),
    ],
)
def test_what_is_no_trace_at_all(value: bytes, reason: str) -> None:
    assert bad(value).reason == reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"trace_id": ...}, "missing_trace_id"),
        ({"trace_id": None}, "missing_trace_id"),
        ({"trace_id": ""}, "missing_trace_id"),
        ({"app": ...}, "missing_app"),
        ({"app": ""}, "missing_app"),
        ({"time": ...}, "missing_time"),
        ({"question": ..., "answer": ...}, "missing_question_and_answer"),
        ({"question": None, "answer": None}, "missing_question_and_answer"),
        ({"trace_id": [7]}, "wrong_type"),
        ({"contexts": 7}, "wrong_type"),
        ({"contexts": [1]}, "wrong_type"),
        ({"segments": {"tenant": ["a"]}}, "wrong_type"),
        ({"tokens": {"input": 1.5}}, "wrong_type"),
        ({"latency": []}, "wrong_type"),
        ({"tokens": {"input": -1}}, "wrong_value"),
        ({"tokens": {"output": 1 << 63}}, "wrong_value"),
        ({"cost_usd": -0.01}, "wrong_value"),
        ({"latency": {"total_s": 2.0, "first_token_s": -0.5}}, "wrong_value"),
        ({"trace_id": "t" * 1_025}, "wrong_value"),
        ({"relationships": [{"test_case": SECRET}]}, "missing_field"),
        ({"contexts": [{"score": 1}]}, "missing_field"),
        ({"schema_version": 2}, "newer_schema"),
        ({"schema_version": 0}, "unknown_schema"),
        ({"time": "2026-03-01T12:00:00"}, "time_without_offset"),
        ({"time": "yesterday"}, "bad_time"),
        ({"time": True}, "bad_time"),
        ({"time": "1969-12-31T23:59:59Z"}, "time_out_of_range"),
        ({"time": "2106-01-01T00:00:00Z"}, "time_out_of_range"),
        ({"time": "0001-01-01T00:00:00+10:00"}, "time_out_of_range"),
        ({"time": 1e300}, "time_out_of_range"),
        ({"time": -1}, "time_out_of_range"),
    ],
)
def test_a_field_that_is_wrong_is_named(changes: dict[str, Any], reason: str) -> None:
    error = bad(**changes)
    assert error.reason == reason
    named = {"missing_question_and_answer": "question"}.get(reason, next(iter(changes)))
    assert named in error.detail
    assert SECRET not in str(error)


def test_messages_never_quote_the_record() -> None:
    for changes in (
        {"trace_id": [SECRET]},
        {"time": SECRET},
        {"segments": {SECRET: [SECRET]}},
        {"relevance": {SECRET: SECRET}},
        {"contexts": [{"id": "c", "text": {SECRET: SECRET}}]},
        {"attributes": SECRET},
    ):
        assert SECRET not in str(bad(**changes))
    assert SECRET not in str(bad(f'{{"trace_id": "{SECRET}'.encode()))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_nan_and_infinity_are_refused_by_name(number: str) -> None:
    text = json.dumps(fields()).replace('"score": 0.9', f'"score": {number}')
    assert bad(text.encode()).reason == "not_finite"


def test_unknown_fields_are_kept() -> None:
    trace = decode_trace(
        record(
            thumbs="up",
            attributes={"own": 1},
            latency={"total_s": 1.5, "queue_s": 0.3},
            contexts=[{"id": "c", "text": "x", "page": 3, "metadata": {"lang": "en"}}],
            error={"type": "Timeout", "code": 504},
        ),
        LIVE,
    ).trace
    assert trace.attributes == {"own": 1, "thumbs": "up", "latency.queue_s": 0.3, "error.code": 504}
    assert trace.contexts is not None
    assert trace.contexts[0].metadata == {"lang": "en", "page": 3}
    assert trace.latency is not None
    assert trace.latency.total_s == 1.5


def test_an_unknown_field_takes_nobodys_place() -> None:
    trace = decode_trace(
        record(
            user_tier="gold",
            attributes={"user_tier": "silver", "unknown.user_tier": "bronze"},
            contexts=[{"id": "c", "text": "x", "page": 3, "metadata": {"page": 7}}],
        ),
        LIVE,
    ).trace
    assert trace.attributes == {
        "user_tier": "silver",
        "unknown.user_tier": "bronze",
        "unknown2.user_tier": "gold",
    }
    assert trace.contexts is not None
    assert trace.contexts[0].metadata == {"page": 7, "unknown.page": 3}


def test_null_is_the_same_as_absent() -> None:
    nulls: dict[str, Any] = {
        "environment": None,
        "categories": None,
        "contexts": None,
        "latency": {"total_s": None},
        "probe": None,
    }
    absent: dict[str, Any] = {**dict.fromkeys(nulls, ...), "latency": {}}
    assert decode_trace(record(**nulls), LIVE).trace == decode_trace(record(**absent), LIVE).trace
    assert decode_trace(record(segments={"tenant": None, "topic": "json"}), LIVE).trace.segments == {"topic": "json"}


def test_empty_is_not_absent() -> None:
    trace = decode_trace(record(contexts=[], answer=""), LIVE).trace
    assert trace.contexts == ()
    assert trace.answer == ""


def test_a_chunk_without_id_gets_the_same_one_wherever_it_is_retrieved() -> None:
    first = decode_trace(record(contexts=[{"text": "abc"}, {"id": "named", "text": "abc"}]), LIVE).trace.contexts
    again = decode_trace(record(trace_id="t-2", contexts=[{"score": 1}, {"text": "abc"}][1:]), LIVE).trace.contexts
    assert first is not None
    assert again is not None
    assert first[0].id == again[0].id == "ba7816bf8f01cfea"  # sha256("abc"), FIPS 180-2
    assert first[1].id == "named"


@pytest.mark.parametrize("time", [AT_MS, float(AT_MS), AT_MS + 0.25, "2026-03-01T14:00:00+02:00"])
def test_times_are_utc_to_the_millisecond(time: object) -> None:
    trace = decode_trace(record(time=time), LIVE).trace
    assert trace.time == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert trace.time.tzinfo is UTC


def test_microseconds_are_cut_so_that_no_client_rounds_into_the_next_minute() -> None:
    assert decode_trace(record(time="2026-03-01T11:59:59.999999Z"), LIVE).trace.time.microsecond == 999_000


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (rb"a\ud800b", "a\ufffdb"),
        (rb"\udc00", "\ufffd"),
        (rb"\ud83d\ude00", "\U0001f600"),
        (rb"\ud800\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\\ud800", "\\ud800"),
        (b"a\xed\xa0\x80b", "a\ufffdb"),
        (rb"nul\u0000 stays", "nul\x00 stays"),
    ],
)
def test_lone_surrogates_are_replaced_and_nul_is_kept(text: bytes, read: str) -> None:
    value = json.dumps(fields()).encode().replace(b"It returns a string.", text)
    trace = decode_trace(record(value), LIVE).trace
    assert trace.answer == read
    trace.answer.encode()


def test_a_large_answer_is_read_and_a_record_beyond_the_limit_is_not() -> None:
    assert len(decode_trace(record(answer="x" * 5_000_000), LIVE).trace.answer or "") == 5_000_000
    error = bad(answer="x" * (9 << 20))
    assert error.reason == "too_big"
    assert "ingest.max_bytes" in error.detail


def test_no_value_is_a_dead_letter() -> None:
    with pytest.raises(BadRecord, match="no_value"):
        decode_trace(StoredRecord("rag.traces", 0, 0, AT_MS, b"k", None), LIVE)


@pytest.mark.parametrize("name", ["attributes", "metadata", "constraints"])
def test_nesting_is_limited_everywhere(name: str) -> None:
    def nested(levels: int) -> Any:
        return {} if levels == 0 else {"a": nested(levels - 1)}

    def changes(levels: int) -> dict[str, Any]:
        if name == "metadata":
            return {"contexts": [{"id": "c", "metadata": nested(levels)}]}
        return {name: nested(levels) if name == "attributes" else [nested(levels)]}

    decode_trace(record(**changes(20)), LIVE)
    assert bad(**changes(40)).reason == "too_deep"


def test_event_time_is_measured_against_the_brokers() -> None:
    def offset(seconds: float) -> dict[str, Any]:
        return {"time": AT_MS + int(seconds * 1000)}

    decode_trace(record(**offset(600)), LIVE)
    assert bad(**offset(600.001)).reason == "in_the_future"
    decode_trace(record(**offset(-7 * 86400)), LIVE)
    assert bad(**offset(-7 * 86400 - 0.001)).reason == "too_old"


@pytest.mark.parametrize("time", ["1970-01-01T00:00:00Z", "2100-01-01T00:00:00Z"])
def test_replays_take_any_time_that_tables_can_hold(time: str) -> None:
    assert bad(time=time).reason in ("too_old", "in_the_future")
    assert decode_trace(record(time=time), REPLAY).trace.time == datetime.fromisoformat(time)


def test_the_task_is_the_apps_where_the_trace_names_none() -> None:
    limits = Limits.of(IngestSettings(tasks={"docs": "summarization"}), RetentionSettings(), timely=True)
    assert decode_trace(record(), limits).trace.task == "summarization"
    assert decode_trace(record(app="other"), limits).trace.task == "question_answering"
    assert decode_trace(record(task="agent"), limits).trace.task == "agent"


PRICES = {
    "small-2": {"input_usd": 2.0, "output_usd": 10.0, "cached_usd": 0.5},
    "big": {"input_usd": 5, "output_usd": 20},
}


@pytest.mark.parametrize(
    ("changes", "cost"),
    [
        ({}, 0.0004),  # (100 * 2 + 20 * 10) / 1e6
        ({"tokens": {"input": 100, "output": 20, "cached": 40}}, 0.00034),  # (60 * 2 + 40 * 0.5 + 20 * 10) / 1e6
        ({"model": {"requested": "big"}, "tokens": {"input": 100, "output": 20, "cached": 40}}, 0.0009),
        ({"cost_usd": 0.7}, 0.7),
        ({"cost_usd": 0}, 0.0),
        ({"model": {"served": "unknown", "requested": "big"}}, None),
        ({"model": None}, None),
        ({"tokens": {"input": 100}}, None),
    ],
)
def test_cost_is_as_told_else_by_the_price_table(changes: dict[str, Any], cost: float | None) -> None:
    limits = Limits.of(IngestSettings.model_validate({"prices": PRICES}), RetentionSettings(), timely=True)
    assert decode_trace(record(**{"cost_usd": None, **changes}), limits).trace.cost_usd == pytest.approx(cost)


def test_where_it_lies_is_told_by_the_broker_alone() -> None:
    for claimed in ({"topic": "x", "partition": 9, "offset": 9}, "nonsense"):
        assert decode_trace(record(source=claimed, offset=5), LIVE).trace.source == Source("rag.traces", 0, 5)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.binary(max_size=200), JSON.map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass"))))
def test_nothing_but_bad_record_is_ever_raised_for_any_bytes(value: bytes) -> None:
    with pytest.raises(BadRecord):
        decode_trace(record(value), LIVE)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from([*Trace.__struct_fields__, "unknown"]), JSON, max_size=6))
def test_nothing_but_bad_record_is_ever_raised_for_any_field(changes: dict[str, Any]) -> None:
    with contextlib.suppress(BadRecord):
        trace = decode_trace(record({**fields(), **changes}), LIVE).trace
        for text in (trace.question, trace.answer, trace.trace_id, trace.app):
            (text or "").encode()


def test_an_unknown_field_of_a_relationship_is_kept_too() -> None:
    relationships = [{"type": "perturbation_of", "seed": 7, "techniques": [{"technique": "typo", "rate": 0.1}]}]
    trace = decode_trace(record(relationships=relationships), LIVE).trace
    assert [one.techniques[0].technique for one in trace.relationships] == ["typo"]
    assert trace.attributes == {"relationships.0.seed": 7, "relationships.0.techniques.0.rate": 0.1}
