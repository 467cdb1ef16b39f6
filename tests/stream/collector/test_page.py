"""The Collector's settings on docs/opentelemetry.md: a real Collector takes them, and large spans reach Kafka whole."""

import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from ragtide.stream.ingest.otel import Encoding, decode_spans
from ragtide.stream.settings.loader import load_values
from tests.infra.collector import Collector, refusal
from tests.infra.go_programs import GO
from tests.stream.collector.exporting import export_spans, recorded_spans
from tests.stream.collector.page import printed, settings
from tests.stream.collector.site import Site, stored
from tests.stream.core.traffic import Broker, eventually
from tests.stream.otel.scene import RECORDED

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


def large_spans(size: int, count: int) -> Sequence[ReadableSpan]:
    """Recorded traces, with a text of so many characters on every span."""
    rng = random.Random(1)
    return [
        with_text(span, rng.randbytes(size // 2).hex())
        for trace_id in range(1, count + 1)
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
