"""Messages, documents and records as the GenAI conventions publish them: a bad part costs that part.

The shapes are those of the cases in docs/gen-ai/non-normative/tests/cases of semantic-conventions-genai; the texts are
our own.
"""

import json
from typing import Any

import pytest

from ragtide.stream.ingest.otel.documents import Document, Documents, read_documents
from ragtide.stream.ingest.otel.names import FIELDS
from ragtide.stream.ingest.otel.unwrap import Missing, assistant_text, text_of, user_text
from tests.stream.otel.scene import span

NO_USER_TEXT = Missing("no_text", "no message of user with text")
NO_ASSISTANT_TEXT = Missing("no_text", "no message of assistant with text")
TOOL_ROUND_TRIP = [
    {"role": "user", "parts": [{"type": "text", "content": "Is it raining in Bergen?"}]},
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"at": "Bergen"}}],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "yes"}]},
]


@pytest.mark.parametrize("form", ["JSON", "values"])
@pytest.mark.parametrize(
    ("messages", "found"),
    [
        (TOOL_ROUND_TRIP, "Is it raining in Bergen?"),
        ([{"role": "user", "parts": [{"type": "search_result", "source": "https://example.com"}]}], NO_USER_TEXT),
        ([{"role": "user", "parts": [{"type": "generic", "generic_type": "x"}]}], NO_USER_TEXT),
        ([{"role": "user", "parts": [{"type": "text"}, {"type": "blob", "mime_type": "image/png"}]}], NO_USER_TEXT),
        ([{"role": "user", "parts": [{"type": "blob"}, {"type": "text", "content": "And this?"}]}], "And this?"),
        ([{"parts": [{"type": "text", "content": "no role"}]}, {"role": "user"}], NO_USER_TEXT),
        ([7, None, {"role": "user", "content": "plain"}], "plain"),
        ([], NO_USER_TEXT),
    ],
)
def test_input_messages(messages: Any, found: str | Missing, form: str) -> None:
    assert user_text(json.dumps(messages) if form == "JSON" else messages) == found


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}], "finish_reason": "stop"}], "Yes."),
        (
            [
                {
                    "role": "assistant",
                    "parts": [{"type": "reasoning", "content": "hm"}, {"type": "redacted_thinking", "data": "x"}],
                }
            ],
            NO_ASSISTANT_TEXT,
        ),
        (
            [
                {"role": "assistant", "parts": [{"type": "generic", "generic_type": 123}], "finish_reason": 0},
                {"role": "assistant", "parts": {"type": "text", "content": "no list"}},
                {"role": "assistant", "parts": [{"type": "text", "content": "kept"}]},
            ],
            "kept",
        ),
        (TOOL_ROUND_TRIP, NO_ASSISTANT_TEXT),
    ],
)
def test_output_messages(messages: Any, found: str | Missing) -> None:
    assert assistant_text(messages) == found


@pytest.mark.parametrize(
    ("attribute", "documents", "found"),
    [
        (
            "gen_ai.retrieval.documents",
            [{"id": "d1", "score": 0.9, "title": "Overview"}, {"id": "d2"}, {}],
            [
                Document("d1", None, 0.9, "Overview", {"title": "Overview"}),
                Document("d2", None, None, None, {}),
                Document(None, None, None, None, {}),
            ],
        ),
        (
            "gen_ai.retrieval.documents",
            [{"id": 42, "score": "0.91"}, {"id": "d2", "score": "high"}, 7],
            [Document("42", None, 0.91, None, {}), Document("d2", None, None, None, {})],
        ),
        (
            "gen_ai.memory.records",
            [
                {"id": "m1", "content": "Likes trains", "metadata": {"source": "chat"}, "score": 0.8},
                {"id": "m2"},
                {"content": "x", "metadata": "source=chat"},
            ],
            [
                Document("m1", "Likes trains", 0.8, "chat", {"source": "chat"}),
                Document("m2", None, None, None, {}),
                Document(None, "x", None, None, {}),
            ],
        ),
        (
            "output.value",
            '[{"page_content":"x","score":NaN,"metadata":{"n":1e400}},{"page_content":"y\\udc00","score":'
            + f"{'9' * 400}"
            + "}]",
            [Document(None, "x", None, None, {"n": None}), Document(None, "y\ufffd", None, None, {})],
        ),
        ("traceloop.entity.output", {"documents": [{"page_content": "t"}]}, [Document(None, "t", None, None, {})]),
        ("gen_ai.retrieval.documents", "no list", Missing("wrong_type", "a list of documents wanted")),
        ("gen_ai.retrieval.documents", "__REDACTED__", Missing("redacted")),
    ],
)
def test_documents(attribute: str, documents: Any, found: Any) -> None:
    source = next(one for one in FIELDS["contexts"] if one.attribute == attribute)
    attributes: dict[str, Any] = {attribute: documents if isinstance(documents, str) else json.dumps(documents)}
    expected = Documents(found) if isinstance(found, list) else found
    assert read_documents(span(1, **attributes), source) == expected


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("plain", "plain"),
        ("", ""),
        ("__REDACTED__", Missing("redacted")),
        ('{"query": "q", "k": 3}', "q"),
        ('{"inputs": {"question": "q", "context": "c"}, "tags": [], "kwargs": {}}', "q"),
        ('{"query_bundle": {"query_str": "q", "image_path": null}}', "q"),
        ('{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]}', "q"),
        ('[[{"lc": 1, "kwargs": {"type": "human", "content": "q"}}]]', "q"),
        ('{"only": "q"}', "q"),
        ('{"id": "x", "model": "m"}', None),
        ('{"first": "a", "second": "b"}', Missing("ambiguous", "first, second")),
        ("[not JSON", "[not JSON"),
        ('{"inputs":{"question":"hi \\ud83d"}}', "hi \ufffd"),
        ('{"inputs":{"question":"hi \\ud83d\\ude00"},"score":NaN}', "hi \U0001f600"),
        ('{"question":"q","scores":[NaN,-Infinity,1e400,' + "9" * 5_000 + "]}", "q"),
        ('{"question": NaN}', None),
        ("12", "12"),
        (12, "12"),
        (True, "true"),
        (None, None),
        ({"question": None, "query": "q"}, "q"),
    ],
)
def test_inputs_are_unwrapped(value: Any, found: Any) -> None:
    assert text_of(value, "user") == found


def test_a_text_that_only_looks_like_json_is_itself_where_the_producer_says_so() -> None:
    answer = '{"sentiment": "good", "language": "en"}'
    assert text_of(answer, "assistant", is_plain=True) == answer
    assert text_of(answer, "assistant") == Missing("ambiguous", "language, sentiment")


def test_deep_nesting_is_not_followed() -> None:
    assert text_of("[[1, 2], [" * 20 + "1, 2" + "]]" * 20, "user") == Missing("ambiguous", "nested too deep")
