"""Any order and any split of the spans into messages gives the same traces."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ragtide.stream.ingest.otel import LogEvent, Span, decode_spans, map_spans
from tests.stream.otel.scene import NAMES, RECORDED, TRACE, recorded, span

KINDS = ("CHAIN", "AGENT", "RETRIEVER", "RERANKER", "LLM", "TOOL", "EVALUATOR", "GUARDRAIL", None)
TEXTS = st.sampled_from(["", "a", "b c", "__REDACTED__", '{"question": "q", "answer": "a"}', "[1, 2]"])
DOCUMENTS = st.lists(st.sampled_from(["h", "p", "d"]), max_size=3)


@st.composite
def spans(draw: st.DrawFn) -> list[Span]:
    """Trees, forests and cycles, with equal times, repeats of spans and several versions of one."""
    made = []
    for number in range(1, draw(st.integers(1, 9)) + 1):
        kind = draw(st.sampled_from(KINDS))
        attributes: dict[str, Any] = {} if kind is None else {"openinference__span__kind": kind}
        if draw(st.booleans()):
            attributes |= {"input__value": draw(TEXTS), "output__value": draw(TEXTS)}
        if draw(st.booleans()):
            attributes |= {"llm__token_count__prompt": draw(st.integers(0, 9)), "session__id": draw(TEXTS)}
        for rank, text in enumerate(draw(DOCUMENTS)):
            for prefix in ("retrieval__documents", "reranker__output_documents"):
                attributes[f"{prefix}__{rank}__document__content"] = text
        parent, start, end = draw(st.tuples(st.integers(0, 10), st.integers(0, 3), st.integers(0, 3)))
        made.append(span(draw(st.integers(1, number)), parent, start, end, error=draw(st.booleans()), **attributes))
    return made


def mapped(found: Sequence[Span], logs: Sequence[LogEvent] = ()) -> list[tuple[Any, ...]]:
    result = map_spans(found, logs)
    traces = [(one.encode(), one.origins, one.missing) for one in result.traces]
    return [*traces, (+result.counts, result.unmapped)]


@given(spans(), st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_any_order_and_any_repeats_give_the_same_traces(made: list[Span], random: Any) -> None:
    again = [*made, *random.sample(made, random.randint(0, len(made)))]
    random.shuffle(again)
    assert mapped(again) == mapped(made)


@given(st.sampled_from(NAMES), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_any_split_of_recorded_spans_into_messages_gives_the_same_traces(name: str, random: Any) -> None:
    whole = ExportTraceServiceRequest.FromString((RECORDED / f"{name}.binpb").read_bytes())
    parts = []
    for resource in whole.resource_spans:
        for scope in resource.scope_spans:
            for one in scope.spans:
                part = ExportTraceServiceRequest()
                added = part.resource_spans.add(resource=resource.resource).scope_spans.add(scope=scope.scope)
                added.spans.append(one)
                parts.append(part)
    random.shuffle(parts)
    messages = [ExportTraceServiceRequest() for _ in range(random.randint(1, len(parts)))]
    for part in parts:
        random.choice(messages).MergeFrom(part)
    again = [span for message in messages for span in decode_spans(message.SerializeToString()).spans]
    original, logs = recorded(name)
    random.shuffle(logs)
    assert mapped(again, logs) == mapped(original, logs)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["CHAIN", "LLM", "RETRIEVER", "RERANKER", "TOOL", "EVALUATOR"])
@pytest.mark.parametrize("shape", ["chain", "flat", "cycle"])
def test_10_000_spans_of_one_trace_are_mapped(shape: str, kind: str) -> None:
    last = 10_000
    before = {number: number - 1 for number in range(1, last + 1)}
    parents = {"chain": before, "flat": dict.fromkeys(before, 1) | {1: 0}, "cycle": before | {1: last}}[shape]
    made = [
        span(number, parents[number], number / 1000, 20, openinference__span__kind=kind, input__value="q")
        for number in range(1, last + 1)
    ]
    if kind == "EVALUATOR":
        assert map_spans(made[::-1]).counts["judge_span"] == last
        return
    [trace] = map_spans(made[::-1]).traces
    assert trace.fields["trace_id"] == TRACE
    assert len(trace.request.spans) == last
