"""Normalise decoded JSON to a trace: drop nulls, move unknown fields, make chunk ids, cut names."""

import functools
import hashlib
import itertools
import types
import typing
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ragtide.evaluators.trace import Chunk, Name, Trace
from ragtide.stream.ingest.names import cut_names


@functools.cache
def _struct_fields(struct: type[msgspec.Struct]) -> dict[str, tuple[type[msgspec.Struct], bool]]:
    """Fields that hold a struct, and whether they hold a list of them."""
    found: dict[str, tuple[type[msgspec.Struct], bool]] = {}
    for name, hint in typing.get_type_hints(struct).items():
        for inner in typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,):
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                found[name] = (inner, False)
            for item in typing.get_args(inner):
                if isinstance(item, type) and issubclass(item, msgspec.Struct):
                    found[name] = (item, True)
    return found


@functools.cache
def _field_names(struct: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(struct.__struct_fields__)


@functools.cache
def _name_fields(struct: type[msgspec.Struct]) -> frozenset[str]:
    """Fields that hold names: one, several, or some with a number each."""
    hints = typing.get_type_hints(struct, include_extras=True)
    return frozenset(name for name, hint in hints.items() if _holds_name(hint))


def _holds_name(hint: Any) -> bool:
    return hint == Name or any(map(_holds_name, typing.get_args(hint)))


@functools.cache
def _paths(struct: type[msgspec.Struct] = Trace, path: str = "") -> dict[type[msgspec.Struct], str]:
    """Path of each struct in a trace: `model.`, `relationships.techniques.`."""
    paths = {struct: path}
    for name, (below, _) in _struct_fields(struct).items():
        paths |= _paths(below, f"{path}{name}.")
    return paths


@dataclass(slots=True)
class _Extras:
    """Unknown fields by path, and the number of cut names by field."""

    cut: Counter[str]
    unknown: dict[str, Any] = field(default_factory=dict)


def normalise(fields: dict[str, Any], cut: Counter[str]) -> dict[str, Any]:
    """Normalise to what `msgspec.convert` takes as a `Trace`: null means absent, and no unknown field is lost.

    Unknown fields go to `attributes` under their path (`latency.queue_s`), a chunk's to its `metadata`. Where one of
    that name was sent there too, that one keeps it and the unknown field is `unknown.latency.queue_s`. Names that are
    too long are cut, and counted in `cut` by field.
    """
    extras = _Extras(cut)
    known = _normalise_struct(Trace, fields, "", extras)
    known.pop("source", None)  # the broker knows the position
    if extras.unknown:
        own = known.get("attributes", {})
        if isinstance(own, dict):
            known["attributes"] = _merge_unknown(own, extras.unknown)
    return known


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
    struct: type[msgspec.Struct], fields: dict[str, Any], path: str, extras: _Extras
) -> dict[str, Any]:
    known, below, names = _field_names(struct), _struct_fields(struct), _name_fields(struct)
    normalised: dict[str, Any] = {}
    for name, value in fields.items():
        if name not in known:
            extras.unknown[path + name] = value
        elif value is None:
            continue
        elif name in below:
            normalised[name] = _normalise_nested(below[name], value, f"{path}{name}", extras)
        else:
            normalised[name] = _without_nulls(value) if name == "segments" else value
        if name in names:
            normalised[name] = cut_names(normalised[name], _paths()[struct] + name, extras.cut)
    return normalised


def _normalise_nested(kind: tuple[type[msgspec.Struct], bool], value: Any, path: str, extras: _Extras) -> Any:
    struct, many = kind
    if not many:
        return _normalise_struct(struct, value, f"{path}.", extras) if isinstance(value, dict) else value
    if not isinstance(value, list):
        return value
    if struct is Chunk:
        return [_normalise_chunk(item, extras.cut) for item in value]
    return [
        _normalise_struct(struct, item, f"{path}.{index}.", extras) if isinstance(item, dict) else item
        for index, item in enumerate(value)
    ]


def _normalise_chunk(item: Any, cut: Counter[str]) -> Any:
    """Normalise a chunk. Without an id it gets a hash of its text, equal wherever the chunk is retrieved."""
    if not isinstance(item, dict):
        return item
    extras = _Extras(cut)
    chunk = _normalise_struct(Chunk, item, "", extras)
    if extras.unknown and isinstance(chunk.get("metadata", {}), dict):
        chunk["metadata"] = _merge_unknown(chunk.get("metadata", {}), extras.unknown)
    if "id" not in chunk and isinstance(text := chunk.get("text"), str):
        chunk["id"] = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    return chunk


def _without_nulls(value: Any) -> Any:
    return {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else value
