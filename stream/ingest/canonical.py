"""Canonical JSON, strictly or as clients write it; a `BadRecord` names fields and types, and quotes no value."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from evaluators.errors import BadRecord
from evaluators.trace import Trace
from stream.ingest.lenient import tidy

_STRICT = msgspec.json.Decoder(Trace)
_ANY = msgspec.json.Decoder()
_PLACE = re.compile(r"^(?P<what>.*?)(?: - at `(?P<path>[^`]*)`)?$", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `(\w+)`")
_CONSTANT = re.compile(rb"[:\[,]\s*-?(?:NaN|Infinity|inf|nan)\b")
_LONE_SURROGATE = re.compile(
    rb"(?<!\\)((?:\\\\)*)"  # an even number of backslashes before
    rb"(?:(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def canonical(value: bytes) -> Trace:
    """The trace that canonical JSON tells; raises `BadRecord`, or `RecursionError`.

    The usual form takes one strict pass (4 KB: about 6 µs); what that refuses (unknown fields, nulls for "not
    recorded", epoch milliseconds, chunks without id, lone surrogates) takes a second, lenient one.
    """
    try:
        return _STRICT.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _lenient(value)


def _lenient(value: bytes) -> Trace:
    try:
        fields = _ANY.decode(value)
    except RecursionError:
        raise BadRecord("too_deep", "arrays and objects nested too deep to be read") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        fields = json_mended(value)
    if not isinstance(fields, dict):
        raise BadRecord("not_an_object", f"a trace is a JSON object, not {json_kind(fields)}")
    tidied = tidy(fields)
    _mend_time(tidied)
    try:
        return msgspec.convert(tidied, Trace)
    except msgspec.ValidationError as error:
        raise _named(str(error)) from None
    except RecursionError:
        raise BadRecord("too_deep", "arrays and objects nested too deep to be read") from None


def json_mended(value: bytes) -> Any:
    """The JSON with lone surrogates replaced by U+FFFD: inserts raise on them, and the rest of the trace is good."""
    mended = value
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        try:
            text = value.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise BadRecord("not_utf8", f"byte {error.start} is not UTF-8") from None
        mended = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
    mended = _LONE_SURROGATE.sub(lambda found: found[0] if found["pair"] else found[1] + rb"\ufffd", mended)
    try:
        return _ANY.decode(mended)
    except RecursionError:
        raise BadRecord("too_deep", "arrays and objects nested too deep to be read") from None
    except msgspec.ValidationError:
        raise BadRecord("not_finite", "a number is too large to be one") from None
    except msgspec.DecodeError as error:
        if _CONSTANT.search(mended):
            raise BadRecord("not_finite", "NaN and Infinity are not JSON; leave out what was not measured") from None
        place = re.search(r"\(byte \d+\)", str(error))
        raise BadRecord("not_json", f"malformed {place[0] if place else 'JSON: cut short'}") from None


def _mend_time(fields: dict[str, Any]) -> None:
    time = fields.get("time")
    if isinstance(time, bool) or not isinstance(time, (int, float)):
        return
    try:
        fields["time"] = _EPOCH + timedelta(milliseconds=time)
    except OverflowError:
        raise BadRecord("time_out_of_range", "time: before 1970 or after 2105") from None


def _named(message: str) -> BadRecord:
    """A validation error as reason and detail: field names and types only."""
    found = _PLACE.match(message)
    what, path = (found["what"], found["path"]) if found else (message, None)
    where = path.removeprefix("$").removeprefix(".") if path else ""
    if missing := _MISSING.match(what):
        name = missing[1]
        if not where and name in ("trace_id", "time", "app"):
            return BadRecord(f"missing_{name}", f"{name} is required")
        return BadRecord("missing_field", f"{where}.{name} is required")
    if where == "time":
        return BadRecord("bad_time", "time: RFC 3339 with an offset, or milliseconds since 1970")
    return BadRecord("wrong_type", f"{where}: {what[0].lower()}{what[1:]}")


def json_kind(value: Any) -> str:
    """What a decoded value is, in words."""
    kinds = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")
