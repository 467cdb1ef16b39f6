"""Brings a decoded JSON object into the form of a trace: nulls out, unknown fields kept aside, chunk ids made."""

import functools
import hashlib
import itertools
import typing
from typing import Any

import msgspec

from evaluators.trace import Chunk, Trace


@functools.cache
def _structs_in(struct: type[msgspec.Struct]) -> dict[str, tuple[type[msgspec.Struct], bool]]:
    """Fields that hold a struct, and whether they hold a list of them."""
    found: dict[str, tuple[type[msgspec.Struct], bool]] = {}
    for name, hint in typing.get_type_hints(struct).items():
        for inner in (hint, *typing.get_args(hint)):
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                found[name] = (inner, False)
            for item in typing.get_args(inner):
                if isinstance(item, type) and issubclass(item, msgspec.Struct):
                    found[name] = (item, True)
    return found


@functools.cache
def _known(struct: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(struct.__struct_fields__)


def tidy(fields: dict[str, Any]) -> dict[str, Any]:
    """What `msgspec.convert` takes as a `Trace`: null is the same as absent, and nothing unknown is lost.

    Unknown fields go to `attributes` under their path (`latency.queue_s`), a chunk's to its `metadata`. Where one of
    that name was sent there too, that one keeps it and the unknown field is `unknown.latency.queue_s`.
    """
    unknown: dict[str, Any] = {}
    known = _tidied(Trace, fields, "", unknown)
    known.pop("source", None)  # where it lies is told by the broker
    if unknown:
        own = known.get("attributes", {})
        if isinstance(own, dict):
            known["attributes"] = _beside(own, unknown)
    return known


def _beside(own: dict[str, Any], unknown: dict[str, Any]) -> dict[str, Any]:
    both = dict(own)
    for name, value in unknown.items():
        both[name if name not in both else _free(name, both)] = value
    return both


def _free(name: str, taken: dict[str, Any]) -> str:
    """Numbered, and not nested: each name tried is tried for one field alone, however many are hostile."""
    tried = itertools.chain([f"unknown.{name}"], (f"unknown{number}.{name}" for number in itertools.count(2)))
    return next(free for free in tried if free not in taken)


def _tidied(struct: type[msgspec.Struct], fields: dict[str, Any], path: str, unknown: dict[str, Any]) -> dict[str, Any]:
    names = _known(struct)
    below = _structs_in(struct)
    kept: dict[str, Any] = {}
    for name, value in fields.items():
        if name not in names:
            unknown[path + name] = value
        elif value is None:
            continue
        elif name in below:
            kept[name] = _below(below[name], value, f"{path}{name}", unknown)
        else:
            kept[name] = _without_nulls(value) if name == "segments" else value
    return kept


def _below(kind: tuple[type[msgspec.Struct], bool], value: Any, path: str, unknown: dict[str, Any]) -> Any:
    struct, many = kind
    if not many:
        return _tidied(struct, value, f"{path}.", unknown) if isinstance(value, dict) else value
    if not isinstance(value, list):
        return value
    if struct is Chunk:
        return [_chunk(item) for item in value]
    return [
        _tidied(struct, item, f"{path}.{index}.", unknown) if isinstance(item, dict) else item
        for index, item in enumerate(value)
    ]


def _chunk(item: Any) -> Any:
    """A chunk with an id: without one, a hash of its text, the same wherever the chunk is retrieved."""
    if not isinstance(item, dict):
        return item
    unknown: dict[str, Any] = {}
    chunk = _tidied(Chunk, item, "", unknown)
    if unknown and isinstance(chunk.get("metadata", {}), dict):
        chunk["metadata"] = _beside(chunk.get("metadata", {}), unknown)
    if "id" not in chunk and isinstance(text := chunk.get("text"), str):
        chunk["id"] = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    return chunk


def _without_nulls(value: Any) -> Any:
    return {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else value
