"""Batches of spans and log records, good and bad, sorted by trace."""

import gzip
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ragtide.stream.ingest.otel import decode_logs, decode_spans
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.settings.otel import OtelSettings
from ragtide.stream.worker.assembly.messages import decode_part, read_head
from ragtide.stream.worker.assembly.rekeying import Rekeyed, rekey
from tests.stream.assembly.otlp import batch, recorded_spans
from tests.stream.otel.scene import NAMES, RECORDED

LARGEST = 1 << 20
OTEL = OtelSettings(log_topics=("logs",), encodings={"logs": "otlp_proto"})


def records(*values: bytes | None, topic: str = "otlp_spans") -> list[StoredRecord]:
    return [StoredRecord(topic, 0, offset, 1, None, value) for offset, value in enumerate(values)]


def spans_in(done: Rekeyed) -> list[Any]:
    return [span for output in done.outputs for span in decode_part(output.value).spans]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("suffix", [".binpb", ".json"])
def test_recorded_spans_and_logs_stay_as_they_are(name: str, suffix: str) -> None:
    value = (RECORDED / f"{name}{suffix}").read_bytes()
    done = rekey(records(value), OTEL, LARGEST)
    assert spans_in(done) == decode_spans(value).spans
    assert done.spans == len(spans_in(done))
    [output] = done.outputs
    assert output.key.decode() == spans_in(done)[0].trace_id
    assert read_head(output.value).has_root
    logs = RECORDED / f"{name}.logs.binpb"
    if logs.exists():
        [output] = rekey(records(logs.read_bytes(), topic="logs"), OTEL, LARGEST).outputs
        assert decode_part(output.value).logs == decode_logs(logs.read_bytes()).events


def test_spans_of_several_messages_are_one_message_per_trace() -> None:
    parts = [recorded_spans("openinference_langchain", trace) for trace in (1, 2)]
    mixed = [batch([one, other]) for one, other in zip(*parts, strict=True)]
    done = rekey(records(*mixed), OTEL, LARGEST)
    assert sorted(output.key for output in done.outputs) == [trace.to_bytes(16).hex().encode() for trace in (1, 2)]
    assert len(spans_in(done)) == 2 * len(mixed)


def test_of_large_messages_few_are_in_memory_at_once_and_no_span_is_lost() -> None:
    values = []
    for number in range(6):
        [part] = recorded_spans("openinference_langchain", 1)[:1]
        [span] = part.resource_spans[0].scope_spans[0].spans
        span.span_id = (number + 1).to_bytes(8)
        span.attributes.add(key="big").value.string_value = "x" * (150 << 10)
        values.append(batch([part]))
    done = rekey(records(*values), OTEL, LARGEST)
    assert [len(decode_part(output.value).spans) for output in done.outputs] == [2, 2, 2]
    assert spans_in(done) == [span for value in values for span in decode_spans(value).spans]


def test_a_bad_span_costs_that_span_and_a_bad_message_that_message() -> None:
    parts = recorded_spans("openinference_langchain", 1)
    wrong = ExportTraceServiceRequest()
    wrong.CopyFrom(parts[0])
    wrong.resource_spans[0].scope_spans[0].spans[0].span_id = b"x"
    bomb = gzip.compress(bytes(200 << 20))
    done = rekey(records(batch([*parts, wrong]), b"neither", None, bomb, batch(parts)[:-7]), OTEL, LARGEST)
    assert done.refused == {"bad_span_id": 1}
    assert len(spans_in(done)) == len(parts)
    assert [(letter.record.offset, letter.reason) for letter in done.dead] == [
        (1, "not_otlp"),
        (2, "no_value"),
        (3, "too_big"),
        (4, "not_otlp"),
    ]
    assert {letter.stage for letter in done.dead} == {"spans"}


def test_a_trace_of_16_mb_is_split_and_a_span_that_fits_no_message_is_counted() -> None:
    parts = recorded_spans("openinference_langchain", 1)
    for number in range(8 * 17):
        [more] = recorded_spans("openinference_langchain", 1)[:1]
        [span] = more.resource_spans[0].scope_spans[0].spans
        span.span_id = (number + 1000).to_bytes(8)
        span.attributes.add(key="big").value.string_value = "x" * (128 << 10)
        parts.append(more)
    huge = recorded_spans("openinference_langchain", 1)[0]
    huge.resource_spans[0].scope_spans[0].spans[0].span_id = (7).to_bytes(8)
    huge.resource_spans[0].scope_spans[0].spans[0].attributes.add(key="big").value.string_value = "x" * (2 << 20)
    value = batch([*parts, huge])
    assert len(value) > 16 << 20
    done = rekey(records(value), OTEL, LARGEST)
    assert max(len(output.value) for output in done.outputs) < 1_000_000
    assert done.refused == {"span_too_large": 1}
    assert len(spans_in(done)) == len(parts)
    large = rekey(records(value), OTEL, 8 * LARGEST)
    assert sorted(len(output.value) for output in large.outputs)[-2] < 1_000_000
    assert large.refused == {}
    assert len(spans_in(large)) == len(parts) + 1


def test_a_log_record_that_fits_no_message_is_counted() -> None:
    value = (RECORDED / "genai_langchain_events.logs.binpb").read_bytes()
    logs = ExportLogsServiceRequest.FromString(value)
    [scope] = logs.resource_logs[0].scope_logs
    for name in ("first", "second"):
        huge = scope.log_records.add()
        huge.CopyFrom(scope.log_records[0])
        huge.attributes.add(key=name).value.string_value = "x" * (2 << 20)
    done = rekey(records(logs.SerializeToString(), topic="logs"), OTEL, LARGEST)
    assert done.refused == {"span_too_large": 2}
    [output] = done.outputs
    assert decode_part(output.value).logs == decode_logs(value).events


def test_wrong_types_of_attributes_are_kept_or_counted() -> None:
    value = (
        b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":'
        b'"eee19b7ec3c1b174","endTimeUnixNano":"18446744073709551615","attributes":[{"key":"a","value":{"intValue":'
        b'"99999999999999999999"}},{"key":"b","value":7},{"key":"c","value":{"arrayValue":{"values":[{"bytesValue":'
        b'"AAEC"},{"doubleValue":"NaN"}]}}}]}]}]}]}'
    )
    done = rekey(records(value), OTEL, LARGEST)
    assert done.spans == 1
    assert done.dead == []
    assert done.adjusted["bad_attribute"] + done.refused.total() >= 1
    assert [one.span_id for one in spans_in(done)] == ["eee19b7ec3c1b174"]
