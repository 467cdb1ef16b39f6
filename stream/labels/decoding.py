"""Decode bytes into a label or a `BadRecord` with the reason, which never quotes texts of users."""

from collections.abc import Sequence
from typing import Any

import msgspec
from pydantic import ValidationError

from ragtide.evaluators.errors import BadRecord
from ragtide.stream.ingest.canonical_json import json_kind, repair_json
from ragtide.stream.ingest.records import Record, check_readable
from ragtide.stream.labels.label import SCHEMA_VERSION, Classes, Label, Verdict

_FIELDS = {name for model in (Label, Classes, Verdict) for name in model.model_fields}
_VALUE_ERRORS = {
    "string_too_short",
    "string_too_long",
    "finite_number",
    "literal_error",
    "greater_than",
    "less_than_equal",
}


def decode(record: Record, max_bytes: int) -> Label:
    """Decode the record's label; raise `BadRecord`."""
    check_readable(record)
    value = record.value
    if value is None:
        raise BadRecord("no_value", "the message has no value; a label is a JSON object")
    if len(value) > max_bytes:
        raise BadRecord("too_big", f"{len(value)} bytes; ingest.max_bytes is {max_bytes}")
    fields = _json(value)
    if not isinstance(fields, dict):
        raise BadRecord("not_an_object", f"a label is a JSON object, not {json_kind(fields)}")
    _check_schema(fields)
    try:
        return Label.model_validate(fields)
    except ValidationError as error:
        raise _named(error) from None


def _json(value: bytes) -> Any:
    try:
        return msgspec.json.decode(value)
    except RecursionError:
        raise BadRecord("too_deep", "arrays and objects nested too deep to be read") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return repair_json(value)


def _check_schema(fields: dict[str, Any]) -> None:
    """Check the schema version first: a newer one may have unknown fields."""
    version = fields.get("schema_version", SCHEMA_VERSION)
    if isinstance(version, int) and version != SCHEMA_VERSION:
        reason = "newer_schema" if version > SCHEMA_VERSION else "unknown_schema"
        raise BadRecord(
            reason, f"schema_version is {str(version)[:20]}; this version reads {SCHEMA_VERSION}, upgrade ragtide"
        )


def _named(error: ValidationError) -> BadRecord:
    """The first error as reason and detail: names of fields and types only."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    kind, where = first["type"], _place(first["loc"])
    if kind == "missing":
        return BadRecord("missing_trace_id" if where == "trace_id" else "missing_field", f"{where} is required")
    if kind == "missing_fact":
        return BadRecord(kind, f"{where}: {first['msg']}" if where else first["msg"])
    if kind == "extra_forbidden":
        return BadRecord("unknown_field", f"{where or 'a label'} has a field that no label has; see docs/labels.md")
    if where == "trace_id" and kind == "string_too_short":
        return BadRecord("missing_trace_id", "trace_id is empty")
    reason = "wrong_value" if kind in _VALUE_ERRORS else "wrong_type"
    return BadRecord(reason, f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}")


def _place(loc: Sequence[int | str]) -> str:
    """Path of field names only: keys of a map are texts of users."""
    named = []
    for step in loc:
        if step not in _FIELDS:
            break
        named.append(str(step))
    return ".".join(named)
