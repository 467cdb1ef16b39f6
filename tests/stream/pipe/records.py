"""Records of canonical traces for the tests."""

import json
from typing import Any

from ragtide.sinks.version import pack, source_of
from ragtide.stream.ingest.records import StoredRecord

AT_MS = 1_772_366_400_000  # 2026-03-01T12:00:00Z
AT = "2026-03-01T12:00:00Z"


def clock() -> float:
    """The worker's clock, in seconds since 1970: a month after `AT`."""
    return AT_MS / 1000 + 30 * 86_400


def fields(**changes: Any) -> dict[str, Any]:
    """A small trace as JSON fields; a change to ... leaves the field out."""
    trace: dict[str, Any] = {
        "trace_id": "t-1",
        "time": AT,
        "app": "docs",
        "environment": "prod",
        "question": "What does json.dumps return?",
        "answer": "It returns a string.",
        "contexts": [{"id": "c-1", "text": "json.dumps returns a string.", "score": 0.9, "rank": 1}],
        "model": {"requested": "small", "served": "small-2", "prompt_version": "p7"},
        "latency": {"total_s": 1.5, "first_token_s": 0.2},
        "tokens": {"input": 100, "output": 20},
        "cost_usd": 0.002,
        "segments": {"tenant": "acme"},
    }
    trace.update(changes)
    return {name: value for name, value in trace.items() if value is not ...}


def version(offset: int, revision: int = 0, evaluator: int = 0) -> int:
    """Of the rows that the record at this offset of partition 0 is made into."""
    return pack(AT_MS, offset, revision, evaluator, source=source_of("rag.traces", 0))


def record(
    value: Any = None, *, offset: int = 0, partition: int = 0, timestamp: int = AT_MS, **changes: Any
) -> StoredRecord:
    """A record of `value` (bytes as they are, otherwise JSON; None: the small trace with `changes`)."""
    if not isinstance(value, bytes):
        value = json.dumps(fields(**changes) if value is None else value).encode()
    return StoredRecord("rag.traces", partition, offset, timestamp, b"t-1", value)
