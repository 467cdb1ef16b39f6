"""Say why a field is not recorded, and what to switch on in the application."""

from collections.abc import Iterable, Mapping

from ragtide.stream.ingest.otel.names import GENAI, KINDS, LF, OI, TL, VA
from ragtide.stream.ingest.otel.spans import Span
from ragtide.stream.ingest.otel.unwrap import Reason

REASONS: Mapping[Reason, str] = {
    "not_sent": "no span has an attribute for it",
    "redacted": "the instrumentation hides it",
    "content_by_reference": "the content is kept elsewhere, and the span has its address only",
    "ambiguous": "the value is an object of several texts, and none has a usual name",
    "no_text": "it is there without a text",
    "not_in_prompt": "it is there without a text, and otel.contexts_from_prompt finds none in the prompt",
    "wrong_type": "the value has a type that is not read",
    "out_of_range": "the number is larger than any count, cost or time",
    "no_span": "no span of this kind came",
    "incomplete": "some of the spans that count have no value, and a part is no sum",
    "clock": "the times of the spans contradict each other",
}

_GENAI_CONTENT = (
    "set OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental and "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY in the application"
)
_GENAI_DOCUMENTS = (
    "this instrumentation records ids and scores of documents only; record their texts on the retrieval span, "
    "as OpenInference's and Traceloop's instrumentation do"
)
_FROM_PROMPT = "or set otel.contexts_from_prompt, if the prompt of the LLM call holds them"
_OI_INPUT = "set OPENINFERENCE_HIDE_INPUTS, _HIDE_INPUT_MESSAGES and _HIDE_INPUT_TEXT to false in the application"
_OI_OUTPUT = "set OPENINFERENCE_HIDE_OUTPUTS, _HIDE_OUTPUT_MESSAGES and _HIDE_OUTPUT_TEXT to false in the application"
_TL_CONTENT = "set TRACELOOP_TRACE_CONTENT=true in the application"
_SWITCHES: Mapping[tuple[str, str], str] = {
    (GENAI, "question"): _GENAI_CONTENT,
    (GENAI, "answer"): _GENAI_CONTENT,
    (GENAI, "contexts"): _GENAI_CONTENT,
    (GENAI, "contexts.text"): _GENAI_DOCUMENTS,
    (OI, "question"): _OI_INPUT,
    (OI, "answer"): _OI_OUTPUT,
    (OI, "contexts"): _OI_OUTPUT,
    (OI, "contexts.text"): _OI_OUTPUT,
    (TL, "question"): _TL_CONTENT,
    (TL, "answer"): _TL_CONTENT,
    (TL, "contexts"): _TL_CONTENT,
    (TL, "contexts.text"): _TL_CONTENT,
    (VA, "question"): "set recordInputs: true in experimental_telemetry",
    (VA, "answer"): "set recordOutputs: true in experimental_telemetry",
    (LF, "question"): "set the input of the trace in the application",
    (LF, "answer"): "set the output of the trace in the application",
}
_ALWAYS: Mapping[str, str] = {
    "session_id": "set the attribute session.id, or gen_ai.conversation.id, on a span of the application",
    "user_id": "set the attribute user.id on a span of the application",
    "environment": "set deployment.environment.name in OTEL_RESOURCE_ATTRIBUTES",
    "app": "set OTEL_SERVICE_NAME in the application",
    "expected": "set the attribute ragtide.expected, or send a label",
}


def hint_of(field: str, reason: Reason, conventions: frozenset[str]) -> str:
    """What to do in the application, by the conventions that its spans follow; "" if there is nothing to say."""
    if reason in ("redacted", "not_sent", "no_text", "content_by_reference"):
        found = [_SWITCHES[one, field] for one in sorted(conventions) if (one, field) in _SWITCHES]
        if field == "contexts.text" and reason == "no_text":
            found.append(_FROM_PROMPT if found else _FROM_PROMPT.removeprefix("or "))
        if found:
            return "; ".join(dict.fromkeys(found))
    if reason == "not_in_prompt":
        return "compare otel.context_start, .context_end and .context_template with the prompt of the LLM call"
    if reason == "no_span" and field == "contexts":
        return "instrument the retriever, or give its span the attribute openinference.span.kind=RETRIEVER"
    if reason == "ambiguous":
        return "set input.value and output.value on the root span to the texts themselves"
    return _ALWAYS.get(field, "")


def conventions_of(spans: Iterable[Span]) -> frozenset[str]:
    """The conventions that spans follow. Traceloop writes names of OpenTelemetry GenAI too: its spans are its own."""
    found: set[str] = set()
    for span in spans:
        if span.scope.name == "ai":
            found.add(VA)
            continue
        marks = {convention for attribute, convention, _ in KINDS if attribute in span.attributes}
        found |= marks - {GENAI} if TL in marks else marks
    return frozenset(found - {GENAI} if TL in found else found)
