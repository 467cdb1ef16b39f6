"""Both encodings give the same spans; a bad span costs that span; what is no batch says so."""

import base64
import gzip
import json
import math
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ragtide.evaluators.errors import BadRecord, ConfigError
from ragtide.evaluators.slugs import is_slug
from ragtide.stream.ingest.otel import decode_logs, decode_spans
from ragtide.stream.ingest.otel.otlp_proto import _parsers
from tests.stream.otel.scene import NAMES, RECORDED, TRACE

SPAN = "00f067aa0ba902b7"
FINITE = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.text() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | FINITE | st.binary(max_size=9)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=6
)


def set_value(target: Any, value: Any) -> None:
    """Set an AnyValue of the generated classes."""
    if isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, str):
        target.string_value = value
    elif isinstance(value, int):
        target.int_value = value
    elif isinstance(value, float):
        target.double_value = value
    elif isinstance(value, bytes):
        target.bytes_value = value
    elif isinstance(value, list):
        target.array_value.SetInParent()
        for one in value:
            set_value(target.array_value.values.add(), one)
    else:
        target.kvlist_value.SetInParent()
        for key, one in value.items():
            pair = target.kvlist_value.values.add()
            pair.key = key
            set_value(pair.value, one)


def any_value(value: Any) -> dict[str, Any]:
    """An AnyValue in JSON, with 64-bit numbers as texts."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(one) for one in value]}}
    return {"kvlistValue": {"values": [{"key": key, "value": any_value(one)} for key, one in value.items()]}}


def in_proto(*attributes: dict[str, Any]) -> ExportTraceServiceRequest:
    """A batch of one span for each dict."""
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for number, given_attributes in enumerate(attributes, 1):
        span = scope.spans.add(trace_id=bytes.fromhex(TRACE), span_id=number.to_bytes(8), name=f"n{number}")
        for key, value in given_attributes.items():
            pair = span.attributes.add()
            pair.key = key
            set_value(pair.value, value)
    return request


def in_json(*spans: Any) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}).encode()


def json_span(**fields: Any) -> dict[str, Any]:
    return {"traceId": TRACE, "spanId": SPAN, "name": "n", **fields}


def attributes_of(value: Any) -> dict[str, Any]:
    return {"attributes": [{"key": "a", "value": value}]}


@given(st.lists(st.dictionaries(st.text(), VALUES, max_size=4), min_size=1, max_size=3))
@settings(deadline=None)
def test_every_value_is_read_as_the_generated_classes_wrote_it(attributes: list[dict[str, Any]]) -> None:
    spans = decode_spans(in_proto(*attributes).SerializeToString(), "otlp_proto").spans
    assert [dict(span.attributes) for span in spans] == attributes
    assert [span.name for span in spans] == [f"n{number}" for number in range(1, len(attributes) + 1)]


@given(st.dictionaries(st.text(), VALUES, max_size=4))
@settings(deadline=None)
def test_json_gives_the_same_values_as_protobuf(attributes: dict[str, Any]) -> None:
    pairs = [{"key": key, "value": any_value(value)} for key, value in attributes.items()]
    [span] = decode_spans(in_json(json_span(attributes=pairs))).spans
    assert dict(span.attributes) == attributes


@pytest.mark.parametrize("name", NAMES)
def test_recorded_spans_are_equal_in_both_encodings(name: str) -> None:
    proto, in_text = (decode_spans((RECORDED / f"{name}{suffix}").read_bytes()) for suffix in (".binpb", ".json"))
    assert proto.spans == in_text.spans
    assert len(proto.spans) > 2
    assert not proto.counts.refused
    assert not in_text.counts.refused


def test_recorded_log_records_are_equal_in_both_encodings() -> None:
    proto, in_text = (
        decode_logs((RECORDED / f"genai_langchain_events.logs{suffix}").read_bytes()) for suffix in (".binpb", ".json")
    )
    assert proto.events == in_text.events
    assert [event.name for event in proto.events] == ["gen_ai.client.inference.operation.details"]


def test_a_bad_span_costs_that_span() -> None:
    request = in_proto({"a": 1}, {"b": 2}, {"c": 3}, {"d": 4})
    spans = request.resource_spans[0].scope_spans[0].spans
    spans[0].trace_id = b"short"
    spans[1].span_id = bytes(8)
    spans[2].parent_span_id = b"abc"
    batch = decode_spans(request.SerializeToString())
    assert [dict(span.attributes) for span in batch.spans] == [{"c": 3}, {"d": 4}]
    assert batch.spans[0].parent_id == ""
    assert batch.counts.refused == {"bad_trace_id": 1, "bad_span_id": 1}
    assert batch.counts.adjusted == {"bad_parent_id": 1}


def test_a_malformed_span_in_protobuf_costs_that_span() -> None:
    whole = in_proto({"a": "long enough to be cut"}, {"b": 2}).SerializeToString()
    start = whole.index(b"long enough")
    broken = whole[:start] + b"\xff" * 11 + whole[start + 11 :]  # no longer UTF-8: read with U+FFFD
    batch = decode_spans(broken)
    assert batch.spans[0].attributes == {"a": "�" * 11 + " to be cut"}
    assert batch.counts.adjusted == {"not_utf8": 1}
    lengths = whole[: start - 1] + b"\x7f" + whole[start:]  # a text longer than its span
    batch = decode_spans(lengths)
    assert [dict(span.attributes) for span in batch.spans] == [{"b": 2}]
    assert batch.counts.refused == {"malformed": 1}


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"traceId": "xyz"}, "bad_trace_id"),
        ({"traceId": "0" * 32}, "bad_trace_id"),
        ({"traceId": TRACE[:-2]}, "bad_trace_id"),
        ({"spanId": "not base64!!"}, "bad_span_id"),
        ({"spanId": 7}, "malformed"),
        ({"attributes": "none"}, "malformed"),
    ],
)
def test_a_bad_span_in_json_costs_that_span(wrong: dict[str, Any], reason: str) -> None:
    batch = decode_spans(in_json(json_span(**wrong), json_span()))
    assert [span.span_id for span in batch.spans] == [SPAN]
    assert batch.counts.refused == {reason: 1}


def test_ids_in_base64_are_read_and_counted() -> None:
    ids = {
        "traceId": base64.b64encode(bytes.fromhex(TRACE)).decode(),
        "spanId": base64.b64encode(bytes.fromhex(SPAN)).decode(),
    }
    assert ids["traceId"].endswith("==")
    batch = decode_spans(in_json(json_span(**ids)))
    assert [(span.trace_id, span.span_id) for span in batch.spans] == [(TRACE, SPAN)]
    assert batch.counts.adjusted == {"base64_id": 2}


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({"intValue": "12"}, 12),
        ({"intValue": 12}, 12),
        ({"doubleValue": "0.5"}, 0.5),
        ({"stringValue": ""}, ""),
        ({"arrayValue": {}}, []),
        ({"somethingNew": 1}, None),
        (None, None),
    ],
)
def test_forms_of_json_values(value: Any, read: Any) -> None:
    [span] = decode_spans(in_json(json_span(**attributes_of(value)))).spans
    assert span.attributes == {"a": read}


@pytest.mark.parametrize("value", [{"intValue": []}, {"intValue": "x"}, {"intValue": str(2**70)}, {"bytesValue": "!"}])
def test_an_attribute_of_a_wrong_type_costs_that_attribute(value: Any) -> None:
    pairs = [{"key": "a", "value": value}, {"key": "b", "value": {"stringValue": "kept"}}]
    batch = decode_spans(in_json(json_span(attributes=pairs)))
    assert [dict(span.attributes) for span in batch.spans] == [{"b": "kept"}]
    assert batch.counts.adjusted == {"bad_attribute": 1}


def test_half_a_surrogate_pair_is_replaced() -> None:
    value = in_json(json_span(**attributes_of({"stringValue": "a\ud83d b"})))
    [span] = decode_spans(value).spans
    assert span.attributes == {"a": "a� b"}


def test_nan_costs_nothing_else() -> None:
    [span] = decode_spans(in_json(json_span(**attributes_of({"doubleValue": math.nan})))).spans
    assert math.isnan(float(str(span.attributes["a"])))
    [span] = decode_spans(in_proto({"a": math.nan}).SerializeToString()).spans
    assert math.isnan(float(str(span.attributes["a"])))


def test_half_a_batch_is_a_bad_record_that_quotes_nothing() -> None:
    proto = in_proto({"a": "secret"}, {"b": "secret"}).SerializeToString()
    for half in (proto[: len(proto) // 2], in_json(json_span())[:60], b"secret", b"[1]", b'{"secret": 1}', b"\0" * 9):
        with pytest.raises(BadRecord) as raised:
            decode_spans(half)
        assert is_slug(raised.value.reason)
        assert "secret" not in str(raised.value)


def test_a_batch_without_a_readable_span_is_a_bad_record_with_the_counts() -> None:
    with pytest.raises(BadRecord, match="2 bad_trace_id") as raised:
        decode_spans(in_json(json_span(traceId="x"), json_span(traceId="y")))
    assert raised.value.reason == "no_readable_item"
    logs = (RECORDED / "genai_langchain_events.logs.binpb").read_bytes()
    with pytest.raises(BadRecord):  # a topic of logs
        decode_spans(logs)


def test_an_empty_batch_has_no_spans() -> None:
    assert decode_spans(b"").spans == decode_spans(b"{}").spans == []


def test_gzip_is_unpacked_up_to_the_limit() -> None:
    value = in_json(json_span())
    assert decode_spans(gzip.compress(value)).spans == decode_spans(value).spans
    bomb = gzip.compress(b" " * 3_000_000)
    for wrong, reason in ((bomb, "too_big"), (gzip.compress(value)[:-12], "bad_gzip"), (b"\x1f\x8bxx", "bad_gzip")):
        with pytest.raises(BadRecord) as raised:
            decode_spans(wrong, largest=1_000_000)
        assert raised.value.reason == reason
    with pytest.raises(BadRecord, match="too_big"):
        decode_spans(value, largest=10)


def test_every_member_of_a_gzip_is_read_up_to_the_limit() -> None:
    first, second = (in_proto({"a": name}).SerializeToString() for name in ("first", "second"))
    members = gzip.compress(first) + gzip.compress(second)
    for value in (members, members + bytes(512)):
        assert [span.attributes["a"] for span in decode_spans(value).spans] == ["first", "second"]
    bomb = gzip.compress(b" " * 600_000) * 2
    for wrong, reason in ((bomb, "too_big"), (members[:-12], "bad_gzip"), (members + b"other", "bad_gzip")):
        with pytest.raises(BadRecord) as raised:
            decode_spans(wrong, largest=1_000_000)
        assert raised.value.reason == reason


def test_a_batch_of_10_000_spans() -> None:
    spans = decode_spans(in_proto(*({"n": number} for number in range(10_000))).SerializeToString()).spans
    assert [span.attributes["n"] for span in spans] == list(range(10_000))


@pytest.mark.parametrize("length", [0x7B, 0x5B])
def test_protobuf_whose_length_looks_like_json_is_protobuf(length: int) -> None:
    """The batch begins with a line break and a bracket."""
    for text in range(200):
        request = in_proto({"a": "x" * text})
        value = request.SerializeToString()
        if value[:2] == bytes((0x0A, length)):
            assert decode_spans(value).spans == decode_spans(value, "otlp_proto").spans
            return
    pytest.fail("no such batch was made")


def test_values_nested_too_deep_cost_at_most_their_span() -> None:
    value: Any = "x"
    for _ in range(60):
        value = [value]
    batch = decode_spans(in_proto({"a": value}, {"b": 1}).SerializeToString())
    assert batch.spans[-1].attributes == {"b": 1}
    nested: Any = {"stringValue": "x"}
    for _ in range(150):
        nested = {"arrayValue": {"values": [nested]}}
    batch = decode_spans(in_json(json_span(**attributes_of(nested)), json_span()))
    assert len(batch.spans) == 2
    assert batch.counts.adjusted == {"bad_attribute": 1}
    with pytest.raises(BadRecord):
        decode_spans(b'{"resourceSpans":' + b"[" * 100_000)


def test_log_records_without_a_span_are_counted() -> None:
    request = ExportLogsServiceRequest()
    records = request.resource_logs.add().scope_logs.add().log_records
    records.add(event_name="lonely")
    record = records.add(trace_id=bytes.fromhex(TRACE), span_id=bytes.fromhex(SPAN), event_name="gen_ai.choice")
    set_value(record.body, {"index": 0})
    batch = decode_logs(request.SerializeToString())
    assert [(event.name, event.body) for event in batch.events] == [("gen_ai.choice", {"index": 0})]
    assert batch.counts.skipped == {"no_span": 1}
    assert not batch.counts.refused


def test_without_protobuf_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    value = in_proto({"a": 1}).SerializeToString()
    _parsers.cache_clear()
    monkeypatch.setitem(sys.modules, "google.protobuf.descriptor_pb2", None)
    with pytest.raises(ConfigError, match=r"ragtide\[otel\]"):
        decode_spans(value)
    assert decode_spans(in_json(json_span())).spans
    monkeypatch.undo()
    _parsers.cache_clear()
    assert decode_spans(value).spans
