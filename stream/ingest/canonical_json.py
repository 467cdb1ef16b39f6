"""Decode canonical JSON, strictly or as clients write it. A `BadRecord` names fields and types, and quotes no value."""

import re
from typing import Any

import msgspec

from ragtide.evaluators.errors import BadRecord
from ragtide.evaluators.trace import Trace
from ragtide.stream.ingest.adjustments import Adjustments, Normalised
from ragtide.stream.ingest.fields import walk
from ragtide.stream.ingest.normalisations import skip_prefix, unwrap
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
_GOT = re.compile(r"got `(\w+)`")
_INDEX = re.compile(r"\[[^\]]*\]")
_KINDS = {
    "str": "a text",
    "int": "a number",
    "float": "a number with decimals",
    "bool": "a boolean",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_FORMATS = {
    b"\0": "Avro or Protobuf of a schema registry",
    b"Obj\x01": "Avro",
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"\x80": "a Python pickle",
    b"\xac\xed": "a serialised Java object",
    b"\x0a": "Protobuf",
    b"<": "XML",
}
# What often holds the value that is required, and often something else: a person must decide.
_NEAR = {
    "trace_id": ("id", "request_id", "run_id", "message_id", "uuid"),
    "time": ("date", "datetime", "start_time", "end_time"),
    "app": ("project", "project_name", "name"),
}


def decode_canonical(value: bytes, adjustments: Adjustments) -> Trace:
    """Decode a trace from canonical JSON; raise `BadRecord`, or `RecursionError`.

    The usual form takes one strict pass (4 KB: about 6 µs); what that refuses (unknown fields, nulls for "not
    recorded", epoch milliseconds, chunks without id, lone surrogates, long names, other forms) takes a second, lenient
    one, which counts in `adjustments` what it changed.
    """
    try:
        return _STRICT.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _decode_leniently(value, adjustments)


def _decode_leniently(value: bytes, adjustments: Adjustments) -> Trace:
    def count(rule: str) -> None:
        adjustments.normalised[Normalised(rule, "")] += 1

    value = skip_prefix(value, count)
    try:
        fields = _ANY.decode(value)
    except RecursionError:
        raise BadRecord("too_deep", "arrays and objects nested too deep to be read") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        fields = repair_json(value)
    fields = unwrap(fields, _ANY.decode, count)
    if not isinstance(fields, dict):
        raise BadRecord("not_an_object", f"found {json_kind(fields)}; a trace is a JSON object, one per message")
    normalised = normalise(fields, adjustments)
    try:
        trace = msgspec.convert(normalised, Trace)
    except msgspec.ValidationError as error:
        raise _to_bad_record(str(error), fields) from None
    except RecursionError:
        raise BadRecord("too_deep", "arrays and objects nested too deep to be read") from None
    if normalised.suspects:
        adjustments.count_unknown(trace.app, normalised.suspects)
    return trace


def repair_json(value: bytes) -> Any:
    """Replace lone surrogates by U+FFFD: inserts raise on them, and the rest of the trace is good."""
    repaired = value
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        try:
            text = value.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise BadRecord("not_utf8", f"byte {error.start} is not UTF-8{_other_format(value)}") from None
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
        what = f"malformed {place[0] if place else 'JSON: cut short'}"
        raise BadRecord("not_json", f"{what}{_other_format(value)}") from None


def _other_format(value: bytes) -> str:
    """What the record may be instead of JSON, by its first bytes, and what to do."""
    for start, found in _FORMATS.items():
        if value.startswith(start):
            return f"; looks like {found}. Send JSON in UTF-8, or name a decoder for the topic in kafka.decoders"
    return ""


def _to_bad_record(message: str, fields: dict[str, Any]) -> BadRecord:
    """A validation error as reason and detail: names of known fields, wanted and found types."""
    found = _ERROR_PATH.match(message)
    what, path = (found["what"], found["path"]) if found else (message, None)
    where = path.removeprefix("$").removeprefix(".") if path else ""
    if missing := _MISSING.match(what):
        return _missing(missing[1], where, fields)
    if many := _TOO_MANY.match(what):
        name = where.rpartition(".")[2]
        return BadRecord(f"too_many_{name}", f"{where}: more than {many[1]}; put the others into attributes", where)
    if _OUT_OF_RANGE.match(what):
        return BadRecord("wrong_value", f"{where}: {what[0].lower()}{what[1:]}", where)
    got = _GOT.search(what)
    kind = _KINDS.get(got[1], "another type") if got else "a text of another form"
    if where == "time":
        return BadRecord("bad_time", f"time: found {kind}; {_wanted(where)} wanted, e.g. 2026-03-01T12:00:00Z", where)
    return BadRecord("wrong_type", f"{where}: found {kind}; {_wanted(where)} wanted", where)


def _missing(name: str, where: str, fields: dict[str, Any]) -> BadRecord:
    if where.startswith("contexts"):
        return BadRecord("missing_field", f"{where}: one of id and text is required", f"{where}.{name}")
    if where:
        return BadRecord("missing_field", f"{where}.{name} is required", f"{where}.{name}")
    near = next((other for other in _NEAR.get(name, ()) if fields.get(other) is not None), None)
    hint = f"; rename {near} if it is meant" if near else ""
    return BadRecord(f"missing_{name}", f"{name} is required{hint}", name)


def _wanted(where: str) -> str:
    """The form that the field at this path of an error takes."""
    plain = _INDEX.sub("", where)
    found = next((field for field in walk() if field.path == plain), None)
    if found is None:
        return "another type"
    if not where.endswith("]"):
        return found.wanted
    item = {"objects": f"an object of {', '.join(found.struct.__struct_fields__)}"} if found.struct else {}
    return {"number map": "a number", **item}.get(found.kind, "a text")


def json_kind(value: Any) -> str:
    """Name the JSON type of a decoded value."""
    kinds = {list: "an array", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")
