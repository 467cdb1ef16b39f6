"""The Collector's settings on docs/opentelemetry.md: a real Collector takes them, and large spans reach Kafka whole."""

import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from ragtide.stream.ingest.otel import Encoding, decode_logs, decode_spans
from ragtide.stream.settings.loader import load_values
from tests.infra.collector import Collector, refusal
from tests.infra.go_programs import GO
from tests.stream.collector.exporting import (
    export_logs,
    export_logs_over_grpc,
    export_spans,
    export_spans_over_grpc,
    recorded_spans,
)
from tests.stream.collector.page import printed, settings
from tests.stream.collector.site import Site, stored
from tests.stream.core.traffic import Broker, eventually
from tests.stream.otel.scene import NAMES, RECORDED

pytestmark = [
    pytest.mark.collector,
    pytest.mark.skipif(GO is None, reason="Go is missing"),
    pytest.mark.timeout(1200),  # the first of all runs builds the Collector
]

LARGEST = load_values({}).settings.kafka.max_record_bytes
TRACE = RECORDED / "openinference_langchain.binpb"  # 9 spans


def test_the_collector_takes_the_printed_settings(tmp_path: Path) -> None:
    file = tmp_path / "collector.yaml"
    file.write_text(printed())
    assert refusal(file) == ""
    file.write_text(printed().replace("brokers:", "broker:"))
    assert "broker" in refusal(file), "it would take anything"


@pytest.mark.kafka
@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
def test_a_request_larger_than_a_message_comes_in_several(kafka: Broker, tmp_path: Path, encoding: Encoding) -> None:
    spans = large_spans(size=900_000, count=3)
    with (
        Site(kafka, tmp_path, [encoding]) as site,
        Collector(
            tmp_path,
            settings(kafka, site.spans_topic(encoding), site.logs_topic(encoding), encoding, by_trace=True),
        ) as collector,
    ):
        export_spans(collector.url, spans)
        eventually(lambda: collector.metric("exporter_sent_spans") == len(spans), 60, collector.log)
        assert collector.metric("receiver_accepted_spans") == len(spans)
        messages = stored(kafka, site.spans_topic(encoding))
    sizes = [len(one.value) for one in messages]
    assert sum(sizes) > 2 * LARGEST
    assert max(sizes) < LARGEST
    found = [span.span_id for one in messages for span in decode_spans(one.value, encoding).spans]
    assert sorted(found) == sorted(f"{span.context.span_id:016x}" for span in spans)


@pytest.mark.kafka
def test_over_grpc_the_same_spans_and_log_records_come(kafka: Broker, tmp_path: Path) -> None:
    """Together the spans have more than gRPC's default limit of 4 MiB for a request."""
    now_ns = time.time_ns()
    spans = [one for at, name in enumerate(NAMES, 1) for one in recorded_spans(RECORDED / f"{name}.binpb", at, now_ns)]
    spans += large_spans(size=300_000, count=2, first=100)
    logs = RECORDED / "genai_langchain_events.logs.binpb"
    found: dict[str, list[list[Any]]] = {}
    with Site(kafka, tmp_path, ["http", "grpc"]) as site:
        for way in site.names:
            topics = site.spans_topic(way), site.logs_topic(way)
            with Collector(tmp_path / way, settings(kafka, *topics, "otlp_proto", by_trace=True)) as collector:
                if way == "http":
                    export_spans(collector.url, spans)
                    export_logs(collector.url, logs, 1)
                else:
                    export_spans_over_grpc(collector.grpc_endpoint, spans)
                    export_logs_over_grpc(collector.grpc_endpoint, logs, 1)
                assert collector.metric("receiver_accepted_spans") == len(spans), collector.log()
                assert collector.stop() == 0, collector.log()
            found[way] = [
                sorted(
                    (one for message in stored(kafka, topics[0]) for one in decode_spans(message.value).spans),
                    key=lambda one: (one.trace_id, one.span_id),
                ),
                [
                    msgspec.structs.replace(one, time_ns=0)
                    for message in stored(kafka, topics[1])
                    for one in decode_logs(message.value).events
                ],
            ]
    assert found["grpc"] == found["http"]
    assert [len(one) for one in found["grpc"]] == [len(spans), 1]


@pytest.mark.kafka
def test_a_span_larger_than_a_batch_costs_those_behind_it_and_the_sdk_can_prevent_it(
    kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = random.Random(2).randbytes(3_500_000).hex()
    [small, *others] = recorded_spans(TRACE, 1, time.time_ns())
    with (
        Site(kafka, tmp_path, ["large"]) as site,
        Collector(
            tmp_path,
            settings(kafka, site.spans_topic("large"), site.logs_topic("large"), "otlp_proto", by_trace=False),
        ) as collector,
    ):
        export_spans(collector.url, [small, with_text(others[0], text), *others[1:]])
        eventually(lambda: collector.metric("exporter_sent_spans") == 1, 60, collector.log)
        assert "one span size is greater than max size" in collector.log()
        monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "1000000")
        limited = TracerProvider(shutdown_on_exit=False).get_tracer("t").start_span("large", attributes={"text": text})
        limited.end()
        assert isinstance(limited, ReadableSpan)
        export_spans(collector.url, [limited])
        eventually(lambda: collector.metric("exporter_sent_spans") == 2, 60, collector.log)
        messages = stored(kafka, site.spans_topic("large"))
    found = {span.name: span for one in messages for span in decode_spans(one.value).spans}
    assert found.keys() == {small.name, "large"}
    assert found["large"].attributes["text"] == text[:1_000_000]


def large_spans(size: int, count: int, first: int = 1) -> Sequence[ReadableSpan]:
    """Recorded traces, with a text of so many characters on every span."""
    rng = random.Random(1)
    return [
        with_text(span, rng.randbytes(size // 2).hex())
        for trace_id in range(first, first + count)
        for span in recorded_spans(TRACE, trace_id, time.time_ns())
    ]


def with_text(span: ReadableSpan, text: str) -> ReadableSpan:
    return ReadableSpan(
        span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes={**span.attributes, "text": text},
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )
