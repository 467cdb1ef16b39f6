"""Spans of real instrumentation become the same trace wherever they record the same; gaps are named with what to do."""

from typing import Any

import pytest

from ragtide.stream.ingest.otel import conventions_of, hint_of, map_spans
from ragtide.stream.ingest.validation import validate
from tests.stream.otel.scene import ANSWER, HOURS, LIMITS, NAMES, PRICES, QUESTION, fields_of, recorded

TEXTS = [HOURS, PRICES]
IDS = ["hours-1", "prices-1"]
ECHO = " ".join(["text"] * 8)  # what LlamaIndex's own fake model says
HIDES = "set OPENINFERENCE_HIDE_OUTPUTS"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"
# question, answer, texts of chunks, ids of chunks, tokens
EXPECTED: dict[
    str, tuple[str | None, str | None, list[str | None] | None, list[str] | None, tuple[int, int] | None]
] = {
    "genai_langchain": (QUESTION, ANSWER, [None, None], IDS, (40, 6)),
    "genai_langchain_events": (QUESTION, ANSWER, None, None, (40, 6)),
    "genai_langchain_no_content": (None, None, None, None, (40, 6)),
    "openinference_langchain": (QUESTION, ANSWER, [*TEXTS], IDS, (40, 6)),
    "openinference_langchain_hidden": (None, None, [None, None], None, (40, 6)),
    "openinference_llama_index": (QUESTION, ECHO, [*TEXTS], None, None),
    "langfuse_sdk": (QUESTION, ANSWER, [*TEXTS], IDS, (40, 6)),
    "traceloop_llama_index": (QUESTION, ECHO, [*TEXTS], None, None),
    "traceloop_langchain": (QUESTION, ANSWER, [*TEXTS], None, (40, 6)),
}
# field: what to do
HINTS: dict[str, dict[str, str]] = {
    "genai_langchain": {"contexts.text": "or set otel.contexts_from_prompt"},
    "genai_langchain_events": {"contexts": CAPTURE},
    "genai_langchain_no_content": {"question": CAPTURE, "answer": CAPTURE, "contexts": CAPTURE},
    "openinference_langchain_hidden": {
        "question": "set OPENINFERENCE_HIDE_INPUTS",
        "answer": HIDES,
        "contexts.text": HIDES,
    },
}


def test_every_recorded_case_is_tested() -> None:
    assert sorted(EXPECTED) == NAMES


@pytest.mark.parametrize("suffix", [".binpb", ".json"])
@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_pipeline_becomes_one_trace(name: str, suffix: str) -> None:
    found = map_spans(*recorded(name, suffix))
    [mapped] = found.traces
    fields: dict[str, Any] = fields_of(mapped)
    question, answer, texts, ids, tokens = EXPECTED[name]
    assert (fields["app"], fields["environment"], fields["segments"]) == ("museum", "test", {"version": "1.4"})
    assert (fields.get("question"), fields.get("answer")) == (question, answer)
    chunks = fields.get("contexts")
    if chunks is not None and not name.endswith("llama_index"):  # both score alike: in any order
        assert [one.get("text") for one in chunks] == texts
    elif chunks is not None:
        assert sorted(one["text"] for one in chunks) == sorted(TEXTS)
        assert all(one["score"] > 0.99 for one in chunks)
    else:
        assert texts is None
    if ids is not None:
        assert chunks is not None
        assert [one["id"] for one in chunks] == ids
    told = fields.get("tokens")
    assert told == (None if tokens is None else {"input": tokens[0], "output": tokens[1]})
    latency = fields["latency"]
    assert 0 < latency["retrieval_s"] + latency["generation_s"] < latency["total_s"]
    assert found.unmapped == {}
    reasons = [fault.reason for fault in validate(mapped.encode(), LIMITS).faults]
    assert reasons == ([] if question else ["missing_question_and_answer"])


@pytest.mark.parametrize("name", NAMES)
def test_gaps_are_named_with_what_to_do(name: str) -> None:
    spans, logs = recorded(name)
    [mapped] = map_spans(spans, logs).traces
    texts = ("question", "answer", "contexts", "contexts.text")
    hints = {
        path: hint_of(path, missing.reason, conventions_of(spans))
        for path, missing in mapped.missing.items()
        if path in texts
    }
    expected = HINTS.get(name, {})
    assert hints.keys() == expected.keys()
    assert all(part in hints[path] for path, part in expected.items())


def test_the_texts_of_the_newest_conventions_are_in_log_records_only() -> None:
    spans, logs = recorded("genai_langchain_events")
    assert "answer" not in fields_of(map_spans(spans).traces[0])
    assert fields_of(map_spans(spans, logs).traces[0])["answer"] == ANSWER
