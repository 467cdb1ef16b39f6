"""What teams send: each plausible variant of a trace is read by a rule with a name, or refused with what to write."""

import json
from typing import Any, NamedTuple

import pytest

from ragtide.evaluators.errors import BadRecord
from ragtide.evaluators.trace import Trace
from ragtide.sinks.settings import RetentionSettings
from ragtide.stream.ingest.adjustments import Adjustments, UnknownField, nearest_field
from ragtide.stream.ingest.decoding import Limits, decode_trace
from ragtide.stream.ingest.fields import all_fields
from ragtide.stream.ingest.normalisations import NAMES, RULES
from ragtide.stream.settings.sections import IngestSettings
from tests.stream.pipe.records import AT_MS, fields, record

LIVE = Limits.of(IngestSettings(), RetentionSettings(), timely=True)
AT_S = AT_MS // 1000
SECRET = "kept-from-every-message"


class Taken(NamedTuple):
    """A variant, the rules that read it, and values of the trace by path."""

    sent: dict[str, Any] | bytes
    rules: set[str]
    values: dict[str, Any]


class Refused(NamedTuple):
    """A variant, the field at fault, and the sentence."""

    sent: dict[str, Any] | bytes
    key: str
    sentence: str


def of(**changes: Any) -> bytes:
    return json.dumps(fields(**changes)).encode()


DOCUMENT = {"lc": 1, "type": "constructor", "id": ["langchain", "Document"]}
TAKEN = {
    "number as user_id": Taken(of(user_id=42), {"number_as_text"}, {"user_id": "42"}),
    "boolean as user_id": Taken(of(user_id=True), {"number_as_text"}, {"user_id": "true"}),
    "number as session_id": Taken(of(session_id=1.5), {"number_as_text"}, {"session_id": "1.5"}),
    "number as trace_id": Taken(of(trace_id=1 << 127), {"number_as_text"}, {"trace_id": str(1 << 127)}),
    "number as segment value": Taken(
        of(segments={"tenant": 7, "beta": False, "none": None}),
        {"number_as_text"},
        {"segments": {"tenant": "7", "beta": "false"}},
    ),
    "number as prompt version": Taken(
        of(model={"prompt_version": 3}), {"number_as_text"}, {"model.prompt_version": "3"}
    ),
    "number as chunk id": Taken(of(contexts=[{"id": 9, "text": "x"}]), {"number_as_text"}, {"contexts.0.id": "9"}),
    "number as answer": Taken(of(answer=42), {"number_as_text"}, {"answer": "42"}),
    "number as label": Taken(
        of(labels={"expected": 1, "predicted": [0, "b"]}),
        {"number_as_text"},
        {"labels.expected": "1", "labels.predicted": ("0", "b")},
    ),
    "contexts as texts": Taken(
        of(contexts=["abc", "d"]), {"context_as_text"}, {"contexts.0.text": "abc", "contexts.0.id": "ba7816bf8f01cfea"}
    ),
    "contexts as one text": Taken(of(contexts="abc"), {"single_value", "context_as_text"}, {"contexts.0.text": "abc"}),
    "contexts as one object": Taken(of(contexts={"text": "abc"}), {"single_value"}, {"contexts.0.text": "abc"}),
    "LangChain documents": Taken(
        of(contexts=[{"page_content": "abc", "metadata": {"source": "a.md"}, "type": "Document"}]),
        {"other_name"},
        {"contexts.0.text": "abc", "contexts.0.metadata": {"source": "a.md", "type": "Document"}},
    ),
    "LangChain documents, serialised": Taken(
        of(contexts=[{**DOCUMENT, "kwargs": {"page_content": "abc"}}]),
        {"context_wrapped", "other_name"},
        {"contexts.0.text": "abc"},
    ),
    "LangChain.js documents": Taken(of(contexts=[{"pageContent": "abc"}]), {"other_name"}, {"contexts.0.text": "abc"}),
    "LangChain documents with scores": Taken(
        of(contexts=[[{"page_content": "abc"}, 0.83]]),
        {"context_with_score", "other_name"},
        {"contexts.0.text": "abc", "contexts.0.score": 0.83},
    ),
    "LangChain retrieval chain": Taken(
        of(question=..., contexts=..., input="why?", context=[{"page_content": "abc"}]),
        {"other_name"},
        {"question": "why?", "contexts.0.text": "abc"},
    ),
    "LangChain RetrievalQA": Taken(
        of(question=..., answer=..., contexts=..., query="why?", result="so", source_documents=[{"page_content": "c"}]),
        {"other_name"},
        {"question": "why?", "answer": "so", "contexts.0.text": "c"},
    ),
    "LlamaIndex nodes": Taken(
        of(contexts=[{"node": {"id_": "n", "text": "abc", "metadata": {"p": 1}}, "score": 0.5}]),
        {"context_wrapped", "other_name"},
        {"contexts.0.id": "n", "contexts.0.text": "abc", "contexts.0.score": 0.5, "contexts.0.metadata": {"p": 1}},
    ),
    "Haystack documents": Taken(
        of(contexts=[{"id": "h", "content": "abc", "meta": {"p": 1}, "score": 0.5}]),
        {"other_name"},
        {"contexts.0.text": "abc", "contexts.0.metadata": {"p": 1}},
    ),
    "OpenInference documents": Taken(
        of(contexts=[{"document.id": "d", "document.content": "abc", "document.score": 0.4}]),
        {"other_name"},
        {"contexts.0.id": "d", "contexts.0.text": "abc", "contexts.0.score": 0.4},
    ),
    "points of Qdrant": Taken(
        of(contexts=[{"id": "p", "score": 0.9, "payload": {"text": "abc", "page": 3}}]),
        {"context_wrapped"},
        {"contexts.0.id": "p", "contexts.0.text": "abc", "contexts.0.metadata": {"page": 3}},
    ),
    "hits of Elasticsearch": Taken(
        of(contexts=[{"_id": "e", "_score": 12.1, "_source": {"content": "abc"}}]),
        {"context_wrapped", "other_name"},
        {"contexts.0.id": "e", "contexts.0.text": "abc", "contexts.0.score": 12.1},
    ),
    "Ragas sample": Taken(
        of(
            question=...,
            answer=...,
            contexts=...,
            user_input="q",
            response="a",
            retrieved_contexts=["c"],
            reference="r",
        ),
        {"other_name", "context_as_text", "single_value"},
        {"question": "q", "answer": "a", "contexts.0.text": "c", "expected": ("r",)},
    ),
    "DeepEval test case": Taken(
        of(
            question=...,
            answer=...,
            contexts=...,
            input="q",
            actual_output="a",
            retrieval_context=["c"],
            context=["ideal"],
            expected_output="r",
        ),
        {"other_name", "context_as_text", "single_value"},
        {"question": "q", "answer": "a", "contexts.0.text": "c", "expected": ("r",)},
    ),
    "chat messages": Taken(
        of(question=[{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]),
        {"messages_as_text"},
        {"question": "q"},
    ),
    "content parts": Taken(
        of(
            answer=[
                {"type": "text", "text": "a"},
                {"type": "image_url", "image_url": {}},
                {"type": "text", "text": "b"},
            ]
        ),
        {"messages_as_text"},
        {"answer": "a\nb"},
    ),
    "chat completion": Taken(
        of(answer=..., response={"choices": [{"message": {"role": "assistant", "content": "a"}}]}),
        {"other_name", "messages_as_text"},
        {"answer": "a"},
    ),
    "model as a text": Taken(of(model="small"), {"model_as_text"}, {"model.requested": "small"}),
    "model_name": Taken(
        of(model=..., model_name="small"), {"other_name", "model_as_text"}, {"model.requested": "small"}
    ),
    "model with a name": Taken(of(model={"name": "small"}), {"other_name"}, {"model.requested": "small"}),
    "expected as a text": Taken(of(expected="yes"), {"single_value"}, {"expected": ("yes",)}),
    "ground_truth": Taken(of(ground_truth="yes"), {"other_name", "single_value"}, {"expected": ("yes",)}),
    "categories as a text": Taken(of(categories="privacy"), {"single_value"}, {"categories": ("privacy",)}),
    "camel case": Taken(
        of(trace_id=..., cost_usd=..., traceId="t-9", sessionId="s", costUSD=0.5, model={"promptVersion": "p8"}),
        {"camel_case"},
        {"trace_id": "t-9", "session_id": "s", "cost_usd": 0.5, "model.prompt_version": "p8"},
    ),
    "timestamp": Taken(of(time=..., timestamp="2026-03-01T12:00:00Z"), {"other_name"}, {}),
    "@timestamp": Taken(of(time=..., **{"@timestamp": AT_MS}), {"other_name"}, {}),
    "service.name and env": Taken(
        of(app=..., environment=..., **{"service.name": "shop", "env": "prod"}),
        {"other_name"},
        {"app": "shop", "environment": "prod"},
    ),
    "byte order mark": Taken(b"\xef\xbb\xbf" + of(), {"byte_order_mark"}, {"app": "docs"}),
    "Schema Registry prefix": Taken(b"\0\0\0\0\x07" + of(), {"schema_registry_prefix"}, {"app": "docs"}),
    "JSON within a text": Taken(json.dumps(of().decode()).encode(), {"json_in_text"}, {"app": "docs"}),
    "Kafka Connect": Taken(
        json.dumps({"schema": {"type": "struct"}, "payload": fields()}).encode(), {"envelope"}, {"app": "docs"}
    ),
    "CloudEvent": Taken(
        json.dumps({"specversion": "1.0", "id": "1", "source": "/x", "type": "t", "data": fields()}).encode(),
        {"envelope"},
        {"app": "docs"},
    ),
    "epoch seconds": Taken(of(time=AT_S), {"time_in_seconds"}, {}),
    "epoch seconds with decimals": Taken(of(time=AT_S + 0.0), {"time_in_seconds"}, {}),
    "epoch microseconds": Taken(of(time=AT_MS * 1000), {"time_in_microseconds"}, {}),
    "epoch nanoseconds": Taken(of(time=AT_MS * 1_000_000), {"time_in_nanoseconds"}, {}),
    "epoch milliseconds in a text": Taken(of(time=str(AT_MS)), {"text_as_number"}, {}),
    "ISO 8601, basic": Taken(of(time="20260301T120000Z"), {"time_in_iso_8601"}, {}),
    "cost as a text": Taken(of(cost_usd="0.002"), {"text_as_number"}, {"cost_usd": 0.002}),
    "tokens with a decimal point": Taken(of(tokens={"input": 100.0}), {"decimal_as_count"}, {"tokens.input": 100}),
    "tokens as a text": Taken(of(tokens={"input": "100"}), {"text_as_number"}, {"tokens.input": 100}),
    "schema_version as a text": Taken(of(schema_version="1"), {"text_as_number"}, {"schema_version": 1}),
    "error as a text": Taken(
        of(error="timed out"), {"error_as_text"}, {"error.type": "error", "error.message": "timed out"}
    ),
    "empty error": Taken(of(error=""), {"no_error"}, {"error": None}),
    "error of white space": Taken(of(error=" "), {"no_error"}, {"error": None}),
    "false as error": Taken(of(error=False), {"no_error"}, {"error": None}),
    "error without a type": Taken(of(error={"message": "no"}), {"error_without_type"}, {"error.type": "error"}),
    "relevance as ids": Taken(of(relevance=["c-1", 2]), {"ids_as_relevance"}, {"relevance": {"c-1": 1.0, "2": 1.0}}),
    "relevance as booleans": Taken(
        of(relevance={"c-1": True, "c-2": "0.5"}),
        {"boolean_as_number", "text_as_number"},
        {"relevance": {"c-1": 1.0, "c-2": 0.5}},
    ),
}
WANTED_TIME = "time: found {}; RFC 3339 with an offset or milliseconds since 1970 wanted"
REFUSED = {
    "seconds before 2001": Refused(
        of(time=900_000_000), "time", "time: looks like seconds; milliseconds or RFC 3339 wanted"
    ),
    "milliseconds of 1970": Refused(
        of(time=5_000_000_000), "time", "time: looks like seconds; milliseconds or RFC 3339 wanted"
    ),
    "local time": Refused(of(time="2026-03-01T12:00:00"), "time", "time: RFC 3339 demands an offset"),
    "time in words": Refused(of(time=SECRET), "time", WANTED_TIME.format("a text of another form")),
    "time as an object": Refused(of(time={"$date": SECRET}), "time", WANTED_TIME.format("an object")),
    "boolean as time": Refused(of(time=True), "time", WANTED_TIME.format("a boolean")),
    "id instead of trace_id": Refused(
        of(trace_id=..., id=SECRET), "trace_id", "trace_id is required; rename id if it is meant"
    ),
    "project instead of app": Refused(
        of(app=..., project=SECRET), "app", "app is required; rename project if it is meant"
    ),
    "prompt alone": Refused(of(question=..., answer=..., prompt=SECRET), "question", "one of question and answer"),
    "latency as a number": Refused(
        of(latency=1.5),
        "latency",
        "latency: found a number with decimals; an object of total_s, retrieval_s, generation_s, first_token_s wanted",
    ),
    "tokens as a number": Refused(
        of(tokens=120), "tokens", "tokens: found a number; an object of input, output, cached wanted"
    ),
    "tokens in words": Refused(
        of(tokens={"input": SECRET}), "tokens.input", "tokens.input: found a text; a whole number wanted"
    ),
    "boolean as cost": Refused(of(cost_usd=True), "cost_usd", "cost_usd: found a boolean; a number wanted"),
    "relevance as 0 and 1": Refused(
        of(relevance=[0, 1, 1]), "relevance", "relevance: found a list of 0 and 1 without chunk ids; an object of chunk"
    ),
    "relevance as booleans in a list": Refused(of(relevance=[True, False]), "relevance", "a list of 0 and 1"),
    "true as error": Refused(of(error=True), "error", "error: found a boolean; an object of type, message wanted"),
    "answer as an object": Refused(of(answer={SECRET: SECRET}), "answer", "answer: found an object; a text wanted"),
    "segments as a list": Refused(
        of(segments=[SECRET]), "segments", "segments: found a list; an object of texts wanted"
    ),
    "segment as an object": Refused(
        of(segments={SECRET: {"a": 1}}), "segments[...]", "segments[...]: found an object; a text wanted"
    ),
    "contexts as numbers": Refused(
        of(contexts=[1, 2]),
        "contexts[0]",
        "contexts[0]: found a number; an object of id, text, score, rank, source, metadata wanted",
    ),
    "context without text and id": Refused(
        of(contexts=[{"score": 1}]), "contexts[0].id", "contexts[0]: one of id and text is required"
    ),
    "labels as a text": Refused(
        of(labels=SECRET), "labels", "labels: found a text; an object of expected, predicted, scores wanted"
    ),
    "attributes as a list": Refused(
        of(attributes=[SECRET]), "attributes", "attributes: found a list; an object wanted"
    ),
    "list of traces": Refused(b"[" + of() + b"]", "", "found an array; a trace is a JSON object, one per message"),
    "Avro with a Schema Registry prefix": Refused(
        b"\0\0\0\0\x07\x02\x06t-1", "", "looks like Avro or Protobuf of a schema registry. Send JSON in UTF-8"
    ),
    "UTF-16": Refused(of().decode().encode("utf-16"), "", "looks like UTF-16. Send JSON in UTF-8, or name a decoder"),
    "gzip": Refused(b"\x1f\x8b\x08\0\0\0\0\0", "", "looks like gzip. Send JSON in UTF-8, or name a decoder"),
    "text": Refused(b"2026-03-01 INFO answered", "", "malformed"),
}


def at_path(trace: Trace, path: str) -> Any:
    value: Any = trace
    for step in path.split("."):
        value = value[int(step)] if step.isdigit() else getattr(value, step)
    return value


@pytest.mark.parametrize("variant", TAKEN.values(), ids=TAKEN)
def test_a_variant_is_read_and_counted_by_rule(variant: Taken) -> None:
    adjustments = Adjustments()
    trace = decode_trace(record(variant.sent), LIVE, adjustments=adjustments).trace
    assert {path: at_path(trace, path) for path in variant.values} == variant.values
    assert trace.time.timestamp() == AT_S
    assert {normalised.rule for normalised in adjustments.normalised} == variant.rules
    assert {normalised.field for normalised in adjustments.normalised} <= {"", *all_fields()}


@pytest.mark.parametrize("variant", REFUSED.values(), ids=REFUSED)
def test_a_variant_is_refused_with_key_wanted_form_and_found_type(variant: Refused) -> None:
    with pytest.raises(BadRecord) as caught:
        decode_trace(record(variant.sent), LIVE)
    assert caught.value.key == variant.key
    assert variant.sentence in caught.value.detail
    assert SECRET not in str(caught.value)


def test_the_corpus_is_of_more_than_42_and_knows_every_rule() -> None:
    assert len(TAKEN) + len(REFUSED) >= 42
    assert set().union(*(variant.rules for variant in TAKEN.values())) == set(RULES)


def test_the_canonical_form_is_not_counted() -> None:
    adjustments = Adjustments()
    decode_trace(record(), LIVE, adjustments=adjustments)
    decode_trace(record(time=AT_MS, session_id=None, contexts=[{"text": "no id"}]), LIVE, adjustments=adjustments)
    assert adjustments == Adjustments()


def test_a_field_that_was_sent_wins_over_other_names_for_it() -> None:
    trace = decode_trace(record(query="other", traceId="t-2", ground_truth=None), LIVE).trace
    assert (trace.question, trace.trace_id) == ("What does json.dumps return?", "t-1")
    assert trace.attributes == {"query": "other", "traceId": "t-2", "ground_truth": None}


def test_a_distance_is_no_score() -> None:
    trace = decode_trace(record(contexts=[{"id": "c-1", "text": "x", "distance": 0.1}]), LIVE).trace
    assert trace.contexts is not None
    assert (trace.contexts[0].score, trace.contexts[0].metadata) == (None, {"distance": 0.1})


def test_no_other_name_stands_for_two_fields() -> None:
    for names in NAMES.values():
        listed = [name for some in names.values() for name in some]
        assert len(listed) == len(set(listed))


@pytest.mark.parametrize(
    ("changes", "field", "nearest"),
    [
        ({"latency": {"total_ms": 1500}}, "latency.total_ms", "latency.total_s, in seconds"),
        ({"tokens": {"prompt_tokens": 7}}, "tokens.prompt_tokens", "tokens.input"),
        ({"latency": {"totl_s": 1.5}}, "latency.totl_s", "latency.total_s"),
        ({"anwser": "x"}, "anwser", "answer"),
        ({"latency_ms": 1500}, "latency_ms", "latency.total_s, in seconds"),
        ({"usage": {"prompt_tokens": 7}}, "usage", "tokens"),
        ({"total_s": 1.5}, "total_s", None),
        ({"contexts": [{"id": "c", "txt": "x"}]}, "contexts.txt", "contexts.text"),
        ({"latency": {"queue_s": 1}}, "latency.queue_s", None),
    ],
)
def test_an_unknown_field_that_was_meant_to_be_measured_is_counted(
    changes: dict[str, Any], field: str, nearest: str | None
) -> None:
    adjustments = Adjustments()
    decode_trace(record(**changes), LIVE, adjustments=adjustments)
    counted = field != "total_s"  # at the top it may be anything
    assert adjustments.unknown == ({UnknownField("docs", field): 1} if counted else {})
    assert not counted or nearest_field(field) == nearest


def test_fields_that_are_sent_on_purpose_are_not_counted() -> None:
    adjustments = Adjustments()
    extra: dict[str, Any] = {
        "thumbs": "up",
        "sources": ["a"],
        "question_id": 7,
        "user_tier": "gold",
        "metadata": {"a": 1},
        "x": 1,
    }
    decode_trace(record(**extra, contexts=[{"id": "c", "page": 3}]), LIVE, adjustments=adjustments)
    assert adjustments.unknown == {}


def test_hostile_names_of_fields_take_bounded_memory_and_are_not_quoted() -> None:
    adjustments = Adjustments()
    for number in range(300):
        latency = {f"x{number}_{i}": 1 for i in range(100)} | {f"ann{number}@example.com": 1, "long" * 100: 1, "a b": 1}
        decode_trace(record(app=f"app-{number}", latency=latency), LIVE, adjustments=adjustments)
    assert len(adjustments.unknown) == 200
    assert all(unknown.field.replace(".", "_").isidentifier() for unknown in adjustments.unknown)
