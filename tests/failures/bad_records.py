"""Every kind of record that the issue calls bad, and what must become of it."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

DAY = timedelta(days=1)


class Dead(NamedTuple):
    """A record for the dead letters, and the reason that it must get."""

    value: bytes | None
    reason: str


def fields(trace_id: str, /, **changes: Any) -> dict[str, Any]:
    """A good trace of now; `...` takes a field out."""
    whole = {
        "trace_id": trace_id,
        "time": datetime.now(UTC).isoformat(),
        "app": "shop",
        "question": "where is my parcel",
        "answer": "it left the house yesterday",
        "latency": {"total_s": 0.5},
        **changes,
    }
    return {name: value for name, value in whole.items() if value is not ...}


def trace(trace_id: str, /, **changes: Any) -> bytes:
    return json.dumps(fields(trace_id, **changes)).encode()


def dead_ones() -> list[Dead]:
    """Small ones of every kind."""

    def number(text: str) -> bytes:
        return trace("number", cost_usd=0.25).replace(b"0.25", text.encode())

    def nested(levels: int) -> dict[str, Any]:
        return {} if levels == 0 else {"a": nested(levels - 1)}

    return [
        Dead(None, "no_value"),
        Dead(b"", "not_json"),
        Dead(b"hello", "not_json"),
        Dead(trace("cut short")[:-20], "not_json"),
        Dead(b"\xff\xfe\x00", "not_utf8"),
        Dead(b"[1, 2]", "not_an_object"),
        Dead(b'"text"', "not_an_object"),
        Dead(b"null", "not_an_object"),
        Dead(b"{}", "missing_trace_id"),
        Dead(trace("x", trace_id=...), "missing_trace_id"),
        Dead(trace(""), "missing_trace_id"),
        Dead(trace("x", trace_id=None), "missing_trace_id"),
        Dead(trace("x", app=...), "missing_app"),
        Dead(trace("x", time=...), "missing_time"),
        Dead(trace("x", question=..., answer=...), "missing_question_and_answer"),
        Dead(trace("x", trace_id=[7]), "wrong_type"),
        Dead(trace("x", answer=["a", "list"]), "wrong_type"),
        Dead(trace("x", contexts=7), "wrong_type"),
        Dead(trace("x", tokens={"input": "many"}), "wrong_type"),
        Dead(trace("x", tokens={"input": -1}), "wrong_value"),
        Dead(number("NaN"), "not_finite"),
        Dead(number("Infinity"), "not_finite"),
        Dead(number("-Infinity"), "not_finite"),
        Dead(number("1e999"), "not_finite"),
        Dead(trace("x", time="1970-01-01T00:00:00Z"), "too_old"),
        Dead(trace("x", time="2100-01-01T00:00:00Z"), "in_the_future"),
        Dead(trace("x", time="1969-12-31T00:00:00Z"), "time_out_of_range"),
        Dead(trace("x", time="yesterday"), "bad_time"),
        Dead(trace("x", attributes=nested(50)), "too_deep"),
        Dead(b"[" * 100_000, "too_deep"),
        Dead(trace("x", schema_version=9), "newer_schema"),
        Dead(trace("x", app="a" * 60_000), "name_too_long"),
        Dead(trace("x", environment="e" * 300_000), "name_too_long"),
        Dead(trace("x", task="t" * 129), "name_too_long"),
        Dead(trace("x", app="shop\x1b[2J"), "control_characters"),
        Dead(trace("x", environment="\u202egnigats"), "control_characters"),
        Dead(trace("x", segments={f"s{n}": "v" for n in range(65)}), "too_many_segments"),
    ]


def of_days(count: int) -> list[tuple[str, bytes]]:
    """One trace of each of the latest `count` days, by id; the first is of now."""
    now = datetime.now(UTC)
    return [(f"day-{n}", trace(f"day-{n}", time=(now - n * DAY).isoformat())) for n in range(count)]
