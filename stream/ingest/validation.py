"""Say of a record whether it is a trace, and of each of its fields that is refused what to write."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ragtide.evaluators.errors import BadRecord
from ragtide.stream.ingest.adjustments import Adjustments
from ragtide.stream.ingest.decoding import Limits, decode_trace
from ragtide.stream.ingest.records import StoredRecord

_MOST_FAULTS = 20  # of one record
_FIRST_STEP = re.compile(r"[^.\[]+")
# In place of a required field that is refused or missing, so that the other fields can be checked too.
_PLACEHOLDERS: Mapping[str, Any] = {
    "trace_id": "-",
    "time": "2000-01-01T00:00:00Z",
    "app": "-",
    "question": "",
    "schema_version": 1,
}


@dataclass(frozen=True, slots=True)
class Validation:
    """The faults of a record, none if it is a trace; what decoding changed, and the fields that nothing measures."""

    faults: tuple[BadRecord, ...] = ()
    adjustments: Adjustments = field(default_factory=Adjustments)


def validate(value: bytes, limits: Limits) -> Validation:
    """Validate the bytes of a message. Finds the faults of all fields, each field's first."""
    faults: list[BadRecord] = []
    fields: dict[str, Any] | None = None
    while len(faults) < _MOST_FAULTS:
        adjustments = Adjustments()
        try:
            decode_trace(StoredRecord("", 0, 0, 0, None, value), limits, adjustments=adjustments)
            return Validation(tuple(faults), adjustments)
        except BadRecord as fault:
            faults.append(fault)
            fields = _object(value) if fields is None else fields
            step = _FIRST_STEP.match(fault.key)
            if fields is None or step is None or not _mend(fields, step[0]):
                break
            value = msgspec.json.encode(fields)
    return Validation(tuple(faults))


def _object(value: bytes) -> dict[str, Any] | None:
    try:
        decoded = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return decoded if isinstance(decoded, dict) else None


def _mend(fields: dict[str, Any], name: str) -> bool:
    """Make the field one that is accepted; False where that cannot be."""
    if name not in fields and name not in _PLACEHOLDERS:
        return False
    fields.pop(name, None)
    if name in _PLACEHOLDERS:
        fields[name] = _PLACEHOLDERS[name]
    return True
