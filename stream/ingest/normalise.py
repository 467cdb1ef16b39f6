"""Normalise decoded JSON to a trace: drop nulls, read other forms, move unknown fields, make chunk ids, cut names."""

import itertools
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ragtide.evaluators.trace import LONGEST_NAME, Chunk, Trace, chunk_id
from ragtide.stream.ingest.adjustments import Adjustments, Normalised, Suspects
from ragtide.stream.ingest.fields import Field, fields_of
from ragtide.stream.ingest.names import cut_names
from ragtide.stream.ingest.normalisations import (
    WRAPPERS,
    Count,
    convert,
    convert_time,
    field_meant,
    normalise_context,
    normalise_error,
)

_NESTED_KINDS = ("texts", "label", "text map", "number map")


@dataclass(slots=True)
class _Extras:
    """Unknown fields by path; those that look like mistakes; the counts of what was changed."""

    adjustments: Adjustments
    suspects: Suspects
    unknown: dict[str, Any] = field(default_factory=dict)


class NormalisedTrace(dict[str, Any]):
    """What `msgspec.convert` takes as a `Trace`. `suspects` are the unknown fields that look like mistakes."""

    suspects: set[str]


def normalise(fields: dict[str, Any], adjustments: Adjustments) -> NormalisedTrace:
    """Normalise to what `msgspec.convert` takes as a `Trace`: null means absent, and no unknown field is lost.

    Unknown fields go to `attributes` under their path (`latency.queue_s`), a chunk's to its `metadata`. Where one of
    that name was sent there too, that one keeps it and the unknown field is `unknown.latency.queue_s`. Names that are
    too long are cut. Values of other forms are read by the rules of `ragtide.stream.ingest.normalisations`. Both are
    counted in `adjustments`. Raises `BadRecord` for a time whose unit is not certain.
    """
    extras = _Extras(adjustments, Suspects())
    known = NormalisedTrace(_normalise_struct(Trace, fields, "", "", extras))
    known.suspects = extras.suspects.fields
    known.pop("source", None)  # the broker knows the position
    if "time" in known:
        known["time"] = convert_time(known["time"], _counter(extras, "time"))
    if extras.unknown:
        own = known.get("attributes", {})
        if isinstance(own, dict):
            known["attributes"] = _merge_unknown(own, extras.unknown)
    return known


def _counter(extras: _Extras, path: str) -> Count:
    normalised = extras.adjustments.normalised

    def count(rule: str) -> None:
        normalised[Normalised(rule, path)] += 1

    return count


def _merge_unknown(own: dict[str, Any], unknown: dict[str, Any]) -> dict[str, Any]:
    both = dict(own)
    for name, value in unknown.items():
        both[name if name not in both else _free_name(name, both)] = value
    return both


def _free_name(name: str, taken: dict[str, Any]) -> str:
    """Find a free name by numbering: each candidate is tried for one field only, however many fields are hostile."""
    candidates = itertools.chain([f"unknown.{name}"], (f"unknown{number}.{name}" for number in itertools.count(2)))
    return next(free for free in candidates if free not in taken)


def _normalise_struct(
    struct: type[msgspec.Struct], fields: dict[str, Any], path: str, place: str, extras: _Extras
) -> dict[str, Any]:
    """The known fields of a struct, normalised. `path` has no indices (`relationships.`), `place` has them."""
    known = fields_of(struct, path)
    normalised: dict[str, Any] = {}
    for name, value in fields.items():
        described = known.get(name)
        if described is None:
            if meant := field_meant(struct, name, fields):
                described, rule = known[meant[0]], meant[1]
            if described is None or meant is None or meant[0] in normalised:
                extras.unknown[place + name] = value
                extras.suspects.add(struct, path, name)
                continue
            extras.adjustments.normalised[Normalised(rule, described.path)] += 1
            name = meant[0]  # from here on the field has its own name
        is_plain = described.is_plain and type(value) in described.json_types
        if is_plain and (not described.is_name or len(value) <= LONGEST_NAME):
            normalised[name] = value
        elif value is not None:
            normalised[name] = _normalise_value(described, value, place + name, extras)
    return normalised


def _normalise_value(described: Field, value: Any, place: str, extras: _Extras) -> Any:
    if described.kind == "time":
        return value
    if type(value) not in described.json_types or described.kind in _NESTED_KINDS:
        value = convert(described, value, _counter(extras, described.path))
    struct = described.struct
    if struct is not None:
        value = _normalise_nested(struct, described, value, place, extras)
    return cut_names(value, described.path, extras.adjustments.cut) if described.is_name else value


def _normalise_nested(struct: type[msgspec.Struct], described: Field, value: Any, place: str, extras: _Extras) -> Any:
    path = f"{described.path}."
    if described.kind == "object":
        if described.path == "error":
            value = normalise_error(value, _counter(extras, described.path))
        return _normalise_struct(struct, value, path, f"{place}.", extras) if isinstance(value, dict) else value
    if not isinstance(value, list):
        return value
    if struct is Chunk:
        count = _counter(extras, "contexts")
        return [_normalise_chunk(item, extras, count) for item in value]
    return [
        _normalise_struct(struct, item, path, f"{place}.{index}.", extras) if isinstance(item, dict) else item
        for index, item in enumerate(value)
    ]


def _normalise_chunk(item: Any, above: _Extras, count: Count) -> Any:
    """Normalise a chunk. Without an id it gets a hash of its text, equal wherever the chunk is retrieved."""
    if type(item) is not dict or not item.keys().isdisjoint(WRAPPERS):
        item = normalise_context(item, count)
        if not isinstance(item, dict):
            return item
    extras = _Extras(above.adjustments, above.suspects)
    chunk = _normalise_struct(Chunk, item, "contexts.", "", extras)
    if extras.unknown and isinstance(chunk.get("metadata", {}), dict):
        chunk["metadata"] = _merge_unknown(chunk.get("metadata", {}), extras.unknown)
    if "id" not in chunk and isinstance(text := chunk.get("text"), str):
        chunk["id"] = chunk_id(text)
    return chunk
