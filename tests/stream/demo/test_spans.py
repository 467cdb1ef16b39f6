"""The demo's spans become the traces that the demo sends without them."""

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.demo_faults import Bench, values_of
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.trace import Trace
from ragtide.stream.demo.faults import FAULTS
from ragtide.stream.demo.spans import span_messages
from ragtide.stream.demo.traffic import encode
from ragtide.stream.ingest.adjustments import Adjustments
from ragtide.stream.ingest.canonical_json import decode_canonical
from ragtide.stream.ingest.otel import Span, decode_spans, map_spans

pytestmark = pytest.mark.onnx
_COUNT = 40


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


def by_spans(traces: Sequence[Trace]) -> list[Trace]:
    """The traces as stage `assemble` makes them of the demo's spans, in the same order."""
    spans: dict[str, list[Span]] = defaultdict(list)
    for message in (message for trace in traces for message in span_messages(trace)):
        batch = decode_spans(message.value, "otlp_json")
        assert not batch.counts.refused
        assert not batch.counts.adjusted
        for span in batch.spans:
            spans[span.trace_id].append(span)
    found = {}
    for trace_id, of_trace in spans.items():
        mapped = map_spans(of_trace)
        assert not mapped.unmapped
        [one] = mapped.traces
        found[trace_id] = decode_canonical(one.encode(), Adjustments())
    return [found[trace.trace_id] for trace in traces]


def fields_of(trace: Trace) -> dict[str, Any]:
    """What the trace says, without its measured times and what the instrumentation adds."""
    fields: dict[str, Any] = json.loads(encode(trace))
    for chunk in fields["contexts"]:
        assert chunk.pop("metadata", {"source": chunk["source"]}) in ({}, {"source": chunk["source"]})
    return {name: value for name, value in fields.items() if name not in ("time", "latency", "span_id", "attributes")}


@pytest.mark.parametrize("fault", [None, *FAULTS.values()], ids=lambda fault: fault.name if fault else "none")
def test_spans_of_a_trace_become_this_trace_with_the_same_scores(bench: Bench, fault: Any) -> None:
    traces = bench.traces(fault, seed=3, count=_COUNT)
    mapped = by_spans(traces)
    assert any(trace.condition for trace in traces), "some are golden"
    assert [fields_of(one) for one in mapped] == [fields_of(one) for one in traces]
    for one, trace in zip(mapped, traces, strict=True):
        assert abs((one.time - trace.time).total_seconds()) < 0.001
        assert one.span_id == f"{trace.trace_id[:15]}1"
        assert one.latency is not None
        assert trace.latency is not None
        for name in ("total_s", "retrieval_s", "generation_s"):
            assert getattr(one.latency, name) == pytest.approx(getattr(trace.latency, name), abs=1e-8)
    by_input = [values_of(bench.plan, Resources(bench.encoder), some) for some in (traces, mapped)]
    assert by_input[0].keys() == by_input[1].keys() > {"groundedness.groundedness", "text_matching.passes"}
    for metric, values in by_input[0].items():
        assert list(by_input[1][metric]) == pytest.approx(list(values), abs=1e-8), metric


def test_spans_come_in_two_messages_keyed_by_trace_without_the_root_in_the_first(bench: Bench) -> None:
    [trace] = bench.traces(None, seed=3, count=1)
    first, second = span_messages(trace)
    assert first.key == second.key == trace.trace_id.encode()
    below, above = (decode_spans(one.value, "otlp_json").spans for one in (first, second))
    assert [span.name for span in below] == ["retrieve", "answer"]
    assert [span.name for span in above] == ["docs-assistant"]
    assert {span.parent_id for span in below} == {above[0].span_id}
    assert above[0].parent_id == ""
