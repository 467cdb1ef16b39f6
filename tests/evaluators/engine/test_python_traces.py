"""Traces made in Python: the forms that they take are those of messages, and other forms are refused by name."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec import structs

from ragtide.evaluators.outcome import Scored
from ragtide.evaluators.trace import AppError, Artifact, Boxes, Chunk, Labels, Latency, Model, Tokens, Trace
from ragtide.stream.ingest.adjustments import Adjustments
from ragtide.stream.ingest.canonical_json import decode_canonical
from tests.evaluators.builtin.scoring import outcomes

TIME = datetime(2026, 11, 21, 12, tzinfo=UTC)


def made(**fields: Any) -> Trace:
    return Trace(trace_id="t", time=TIME, app="shop", **fields)


def sent(**fields: Any) -> Trace:
    message = {"trace_id": "t", "time": "2026-11-21T12:00:00Z", "app": "shop", **fields}
    return decode_canonical(msgspec.json.encode(message), Adjustments())


@pytest.mark.parametrize(
    "fields",
    [
        {"expected": "Paris is the capital."},
        {"expected": ["Paris", "The city of Paris"]},
        {"expected": []},
        {"contexts": "France is a country."},
        {"contexts": ["France is a country.", "Paris is a city."]},
        {"contexts": []},
        {"contexts": {"text": "France is a country.", "score": 0.5}},
        {"contexts": [{"id": "fr", "text": "France.", "metadata": {"page": 3}}, {"text": "Paris.", "id": None}]},
        {"contexts": [{"id": "fr"}]},
        {"latency": {"total_s": 1.5}, "tokens": {"input": 3}, "model": {"requested": "m"}},
        {"error": {"type": "Timeout"}, "labels": {"expected": "yes", "predicted": ["no"]}},
    ],
)
def test_a_trace_made_in_python_is_what_the_message_gives(fields: dict[str, Any]) -> None:
    assert made(answer="Paris", **fields) == sent(answer="Paris", **fields)


def test_one_reference_is_not_read_letter_by_letter() -> None:
    [one, several] = outcomes("exact_match", [made(answer="Paris", expected=text) for text in ("Paris", ["Paris"])])
    assert one == several == Scored({"exact_match": 1.0})


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"expected": 42}, "expected: found a value of type int; a text or a tuple of texts wanted"),
        ({"expected": {"a": 1}}, "expected: found a value of type dict; a text or a tuple of texts wanted"),
        ({"expected": ["a", None]}, "expected[1]: found a value of type NoneType; a text wanted"),
        ({"contexts": 42}, "contexts: found a value of type int; a tuple of Chunk, or of texts, wanted"),
        ({"contexts": [1]}, "contexts[0]: found a value of type int; a Chunk, a text or a dict of its fields wanted"),
        ({"contexts": ["a", {"score": 1}]}, "contexts[1]: one of id and text is required"),
        (
            {"contexts": [{"page_content": "a", "id": "1"}]},
            "contexts[0]: Object contains unknown field `page_content`; the fields are id, text, score, rank, source, "
            "metadata",
        ),
        ({"answer": ["a"]}, "answer: found a value of type list; a text wanted"),
        ({"question": b"a"}, "question: found a value of type bytes; a text wanted"),
        ({"relevance": [1, 0]}, "relevance: found a value of type list; an object wanted"),
        ({"latency": 1.5}, "latency: found a value of type float; a Latency wanted"),
        (
            {"latency": {"total_s": "fast"}},
            "latency: Expected `float | null`, got `str` - at `$.total_s`; the fields are total_s, retrieval_s, "
            "generation_s, first_token_s",
        ),
    ],
)
def test_another_form_is_refused_with_the_key_and_the_form_wanted(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError) as error:
        made(**fields)
    assert str(error.value) == says


def test_a_sound_trace_keeps_its_values() -> None:
    contexts, expected = (Chunk("a", "text"), Chunk("b")), ("Paris",)
    fields: dict[str, Any] = {
        **{"contexts": contexts, "expected": expected, "labels": Labels("a", "b"), "boxes": Boxes((), ())},
        **{"model": Model("m"), "latency": Latency(1.0), "tokens": Tokens(1), "error": AppError("Timeout")},
        **{"artifacts": (Artifact("a"),), "relevance": {"a": 1.0}, "answer": "x\ud800", "question": None},
    }
    trace = made(**fields)
    assert all(getattr(trace, name) is value for name, value in fields.items())
    assert structs.replace(trace, answer="b").contexts is contexts
