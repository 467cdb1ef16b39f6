"""The demo's traces as OpenTelemetry spans with OpenInference's names, as a Collector writes them to Kafka in JSON."""

import json
from datetime import datetime

from ragtide.evaluators.trace import Chunk, Trace
from ragtide.sinks.otlp_json import Attributes, span, span_batch
from ragtide.stream.demo.application import APP, ENVIRONMENT
from ragtide.stream.demo.message import Message
from ragtide.stream.ingest.otel.names import SEGMENT_PREFIX

SCOPE = "docs-assistant"
_SCOPE_VERSION = "1"
_NS = 1_000_000_000


def span_messages(trace: Trace) -> list[Message]:
    """Encode the spans of a trace as two messages, since batches cut traces: the root span comes in the second."""
    latency, tokens, model = trace.latency, trace.tokens, trace.model
    assert latency is not None
    assert tokens is not None
    assert model is not None
    end = _nanoseconds(trace.time)
    start = end - round((latency.total_s or 0.0) * _NS)
    searched = start + round((latency.retrieval_s or 0.0) * _NS)
    root, retriever, call = (_span_id(trace, number) for number in (1, 2, 3))
    question = {"input.value": trace.question, "input.mime_type": "text/plain"}
    chain: Attributes = {
        "openinference.span.kind": "CHAIN",
        **question,
        "output.value": trace.answer,
        "output.mime_type": "text/plain",
        "session.id": trace.session_id,
        "ragtide.task": trace.task,
        "ragtide.expected": trace.expected,
        "ragtide.condition": trace.condition,
        **{f"{SEGMENT_PREFIX}{name}": value for name, value in trace.segments.items()},
    }
    search: Attributes = {"openinference.span.kind": "RETRIEVER", **question, **_documents(trace.contexts or ())}
    llm: Attributes = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": trace.question,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": trace.answer,
        "llm.response.model_name": model.served,
        "llm.request.model_name": model.requested,
        "llm.provider": model.provider,
        "llm.prompt_template.version": model.prompt_version,
        "llm.token_count.prompt": tokens.input,
        "llm.token_count.completion": tokens.output,
        "llm.cost.total": trace.cost_usd,
    }
    below = [
        span(trace.trace_id, retriever, root, "retrieve", start, searched, search),
        span(trace.trace_id, call, root, "answer", searched, end, llm),
    ]
    above = [span(trace.trace_id, root, "", "docs-assistant", start, end, chain)]
    return [Message(trace.trace_id.encode(), _batch(spans)) for spans in (below, above)]


def _batch(spans: list[dict[str, object]]) -> bytes:
    resource = {"service.name": APP, "deployment.environment.name": ENVIRONMENT}
    return span_batch(resource, SCOPE, _SCOPE_VERSION, spans)


def _documents(chunks: tuple[Chunk, ...]) -> dict[str, str | float | None]:
    found: dict[str, str | float | None] = {}
    for number, chunk in enumerate(chunks):
        document = f"retrieval.documents.{number}.document"
        found[f"{document}.id"] = chunk.id
        found[f"{document}.content"] = chunk.text
        found[f"{document}.score"] = chunk.score
        found[f"{document}.metadata"] = json.dumps({"source": chunk.source})
    return found


def _span_id(trace: Trace, number: int) -> str:
    """Ids of spans are unique within a trace."""
    return f"{trace.trace_id[:15]}{number}"


def _nanoseconds(time: datetime) -> int:
    return round(time.timestamp() * 1_000_000) * 1_000
