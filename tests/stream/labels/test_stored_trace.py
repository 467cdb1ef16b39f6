"""A trace made of its stored texts is the one that was stored, whatever was recorded and whatever was left out."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from ragtide.evaluators.trace import Trace
from ragtide.sinks.rows import TextRow
from ragtide.sinks.settings import RetentionSettings
from ragtide.stream.ingest.decoding import Limits, decode_trace
from ragtide.stream.ingest.rows import text_row, with_context
from ragtide.stream.ingest.stored_trace import StoredTexts, rebuild_trace
from ragtide.stream.settings.sections import IngestSettings
from tests.stream.pipe.records import AT, fields, record

LIMITS = Limits.of(IngestSettings(), RetentionSettings(), timely=False)
EVERYTHING: dict[str, Any] = {
    "session_id": "s",
    "user_id": "u",
    "expected": ["A string.", ""],
    "condition": '"string" OR "text"',
    "constraints": [["a", ["b"]]],
    "relevance": {"c-1": 2.0},
    "labels": {"expected": ["a"], "predicted": "b", "scores": {"a": 0.25}},
    "artifacts": [{"name": "out.txt", "media_type": "text/plain", "text": "done"}, {"name": "big", "size": 9}],
    "boxes": {"expected": [{"label": "cat", "box": [0, 1, 2.5, 3]}], "predicted": []},
    "model": {
        "requested": "m",
        "served": "m-1",
        "provider": "p",
        "host": "h",
        "prompt_version": "7",
        "collection": "c",
    },
    "latency": {"total_s": 2, "retrieval_s": 0.5, "generation_s": 1.25, "first_token_s": 0.1},
    "tokens": {"input": 10, "output": 5, "cached": 4},
    "error": {"type": "Timeout", "message": "after 2 s"},
    "categories": ["privacy"],
    "task": "classification",
    "relationships": [{"type": "perturbation_of", "trace_id": "o", "techniques": [{"technique": "typo"}]}],
    "test_case": {"suite": "s", "key": "k"},
    "attributes": {"deep": [{"er": [1, 2.5, None, True, "\N{SNOWMAN}"]}]},
    "unheard_of": "kept",
    "contexts": [
        {"id": "a", "text": "first", "score": 0.5, "rank": 1, "source": "web", "metadata": {"page": 3}},
        {"id": "b", "text": ""},
        {"id": "c", "score": 12},
    ],
}


def stored(row: TextRow) -> StoredTexts:
    return StoredTexts(**{name: getattr(row, name) for name in StoredTexts.__struct_fields__})


def again(trace: Trace, row: TextRow) -> Trace:
    """With what is filled in on ingest alone put back."""
    return replace(rebuild_trace(stored(row), trace.user_id or ""), source=trace.source)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        EVERYTHING,
        {"contexts": [], "expected": [], "attributes": {}, "answer": "", "segments": {}},
        {
            "contexts": ...,
            "question": ...,
            "model": ...,
            "latency": ...,
            "tokens": ...,
            "cost_usd": ...,
            "segments": ...,
        },
        {"answer": ..., "error": {"type": "E"}, "labels": {}, "expected": ...},
        {"error": {"type": "E", "message": ""}, "time": "2026-03-01T13:00:00.125+01:00"},
        *({name: value} for name, value in EVERYTHING.items()),
    ],
)
def test_it_is_the_trace_that_was_stored(changes: dict[str, Any]) -> None:
    at = record(**changes)
    trace = decode_trace(at, LIMITS).trace
    row = text_row(with_context(trace, at, "live", 0), with_rest=True)
    assert again(trace, row) == trace


def test_the_rest_holds_no_text_twice_and_nobodys_name() -> None:
    at = record(**EVERYTHING)
    row = text_row(with_context(decode_trace(at, LIMITS).trace, at, "live", 0), with_rest=True)
    rest = json.loads(row.rest)
    assert rest["trace_id"] == "t-1"
    assert rest["time"] == AT
    assert rest["contexts"] == [
        {"id": "a", "text": "", "score": 0.5, "rank": 1, "source": "web", "metadata": {"page": 3}},
        {"id": "b", "text": ""},
        {"id": "c", "score": 12.0},
    ]
    assert rest["expected"] == []
    assert rest["error"] == {"type": "Timeout", "message": ""}
    assert not {"question", "answer", "attributes", "user_id", "source"} & rest.keys()
    assert rest.keys() <= fields(**EVERYTHING).keys()


def test_masked_texts_have_no_rest() -> None:
    at = record()
    assert text_row(with_context(decode_trace(at, LIMITS).trace, at, "live", 0), with_rest=False).rest == ""
