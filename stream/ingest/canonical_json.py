"""Decode canonical JSON, strictly or as clients write it. A `BadRecord` names fields and types, and quotes no value."""

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from ragtide.evaluators.errors import BadRecord
from ragtide.evaluators.trace import Trace
from ragtide.stream.ingest.normalise import normalise

_STRICT = msgspec.json.Decoder(Trace)
_ANY = msgspec.json.Decoder()
_ERROR_PATH = re.compile(r"^(?P<what>.*?)(?: - at `(?P<path>[^`]*)`)?$", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `(\w+)`")
_TOO_MANY = re.compile(r"^Expected `(?:array|object)` of length <= (\d+)")
_OUT_OF_RANGE = re.compile(r"^Expected `\w+` (?:of length )?[<>]=")
_CONSTANT = re.compile(rb"[:\[,]\s*-?(?:NaN|Infinity|inf|nan)\b")
_LONE_SURROGATE = re.compile(
    rb"(?<!\\)((?:\\\\)*)"  # an even number of backslashes before
    rb"(?:(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decode_canonical(value: bytes, cut: Counter[str]) -> Trace:
    """Decode a trace from canonical JSON; raise `BadRecord`, or `RecursionError`.

    The usual form takes one strict pass (4 KB: about 6 µs); what that refuses (unknown fields, nulls for "not
    recorded", epoch milliseconds, chunks without id, lone surrogates, long names) takes a second, lenient one, which
    counts in `cut`, by field, the names that it cut.
    """
    try:
        return _STRICT.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _decode_leniently(value, cut)


def _decode_leniently(value: bytes, cut: Counter[str]) -> Trace:
    try:
        fields = _ANY.decode(value)
    except RecursionError:
        raise BadRecord("too_deep", "arrays and objects nested too deep to be read") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        fields = repair_json(value)
    if not isinstance(fields, dict):
        raise BadRecord("not_an_object", f"a trace is a JSON object, not {json_kind(fields)}")
    normalised = normalise(fields, cut)
    _convert_time(normalised)
    try:
        return msgspec.convert(normalised, Trace)
    except msgspec.ValidationError as error:
        raise _to_bad_record(str(error)) from None
    except RecursionError:
        raise BadRecord("too_deep", "arrays and objects nested too deep to be read") from None


def repair_json(value: bytes) -> Any:
    """Replace lone surrogates by U+FFFD: inserts raise on them, and the rest of the trace is good."""
    repaired = value
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        try:
            text = value.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise BadRecord("not_utf8", f"byte {error.start} is not UTF-8") from None
        repaired = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
    repaired = _LONE_SURROGATE.sub(lambda found: found[0] if found["pair"] else found[1] + rb"\ufffd", repaired)
    try:
        return _ANY.decode(repaired)
    except RecursionError:
        raise BadRecord("too_deep", "arrays and objects nested too deep to be read") from None
    except msgspec.ValidationError:
        raise BadRecord("not_finite", "a number is too large to be one") from None
    except msgspec.DecodeError as error:
        if _CONSTANT.search(repaired):
            raise BadRecord("not_finite", "NaN and Infinity are not JSON; leave out what was not measured") from None
        place = re.search(r"\(byte \d+\)", str(error))
        raise BadRecord("not_json", f"malformed {place[0] if place else 'JSON: cut short'}") from None


def _convert_time(fields: dict[str, Any]) -> None:
    time = fields.get("time")
    if isinstance(time, bool) or not isinstance(time, (int, float)):
        return
    try:
        fields["time"] = _EPOCH + timedelta(milliseconds=time)
    except OverflowError:
        raise BadRecord("time_out_of_range", "time: before 1970 or after 2105") from None


def _to_bad_record(message: str) -> BadRecord:
    """A validation error as reason and detail: field names and types only."""
    found = _ERROR_PATH.match(message)
    what, path = (found["what"], found["path"]) if found else (message, None)
    where = path.removeprefix("$").removeprefix(".") if path else ""
    if missing := _MISSING.match(what):
        name = missing[1]
        if not where and name in ("trace_id", "time", "app"):
            return BadRecord(f"missing_{name}", f"{name} is required")
        return BadRecord("missing_field", f"{where}.{name} is required")
    if where == "time":
        return BadRecord("bad_time", "time: RFC 3339 with an offset, or milliseconds since 1970")
    if many := _TOO_MANY.match(what):
        name = where.rpartition(".")[2]
        return BadRecord(f"too_many_{name}", f"{where}: more than {many[1]}; put the others into attributes")
    reason = "wrong_value" if _OUT_OF_RANGE.match(what) else "wrong_type"
    return BadRecord(reason, f"{where}: {what[0].lower()}{what[1:]}")


def json_kind(value: Any) -> str:
    """Name the JSON type of a decoded value."""
    kinds = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")
