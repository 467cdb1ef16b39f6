"""The fields of a trace as data: which values each takes. Derived from the types of `ragtide.evaluators.trace`."""

import functools
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import msgspec

from ragtide.evaluators.trace import LONGEST_NAME, Chunk, Trace

Kind = Literal[
    "text",
    "texts",
    "number",
    "count",
    "object",
    "objects",
    "text map",
    "number map",
    "time",
    "label",
    "text or number",
    "list",
    "any object",
]
_JSON_TYPES: dict[Kind, tuple[type, ...]] = {
    "text": (str,),
    "texts": (list,),
    "number": (int, float),
    "count": (int,),
    "object": (dict,),
    "objects": (list,),
    "text map": (dict,),
    "number map": (dict,),
    "time": (),
    "label": (str, list),
    "text or number": (str, int, float),
    "list": (list,),
    "any object": (dict,),
}
_WANTED: dict[Kind, str] = {
    "text": "a text",
    "texts": "a list of texts",
    "number": "a number",
    "count": "a whole number",
    "text map": "an object of texts",
    "number map": "an object of numbers",
    "time": "RFC 3339 with an offset or milliseconds since 1970",
    "label": "a text or a list of texts",
    "text or number": "a text or a number",
    "list": "a list",
    "any object": "an object",
}
_NESTED: tuple[Kind, ...] = ("texts", "label", "text map", "number map", "object", "objects", "time")
_SET_ON_INGEST = "source"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct. `struct` is the type of its value or items. `is_name`: it holds names, which are cut."""

    path: str
    kind: Kind
    struct: type[msgspec.Struct] | None
    is_name: bool
    required: bool
    description: str
    json_types: tuple[type, ...]
    wanted: str
    is_plain: bool  # nothing in a value of `json_types` needs a closer look, a long name aside


@functools.cache
def fields_of(struct: type[msgspec.Struct], path: str = "") -> Mapping[str, Field]:
    """The fields of a struct by name; `path` is its place in a trace, such as `model.`."""
    hints = typing.get_type_hints(struct, include_extras=True)
    # A chunk without an id gets one.
    required = {field.name for field in msgspec.structs.fields(struct) if field.required and struct is not Chunk}
    return {name: _field(path + name, hint, name in required) for name, hint in hints.items() if name[0] != "_"}


def _field(path: str, hint: Any, required: bool) -> Field:
    kind, struct = _kind_of(hint)
    if struct is None:
        wanted = _WANTED[kind]
    else:
        names = ", ".join(struct.__struct_fields__)
        wanted = f"an object of {names}" if kind == "object" else f"a list of objects of {names}"
    descriptions = [meta.description for meta in _metas(hint) if meta.description]
    description = descriptions[-1] if descriptions else ""
    is_name = _holds_name(hint)
    is_plain = kind not in _NESTED and (kind == "text" or not is_name)
    return Field(path, kind, struct, is_name, required, description, _JSON_TYPES[kind], wanted, is_plain)


def _kind_of(hint: Any) -> tuple[Kind, type[msgspec.Struct] | None]:
    plain = _plain(hint)
    if isinstance(plain, types.UnionType) or typing.get_origin(plain) is typing.Union:
        members = [_plain(one) for one in typing.get_args(plain) if one is not type(None)]
        if len(members) > 1:
            return ("text or number" if float in members else "label"), None
        plain = members[0]
    if isinstance(plain, type) and issubclass(plain, msgspec.Struct):
        return "object", plain
    simple: dict[Any, Kind] = {str: "text", float: "number", int: "count", datetime: "time"}
    if plain in simple:
        return simple[plain], None
    below = [_plain(one) for one in typing.get_args(plain) if one is not ...]
    if typing.get_origin(plain) is tuple:
        if isinstance(below[0], type) and issubclass(below[0], msgspec.Struct):
            return "objects", below[0]
        return ("texts" if below[0] is str else "list"), None
    maps: dict[Any, Kind] = {str: "text map", float: "number map"}
    return maps.get(below[1], "any object"), None


def _plain(hint: Any) -> Any:
    return _plain(typing.get_args(hint)[0]) if hasattr(hint, "__metadata__") else hint


def _metas(hint: Any) -> list[msgspec.Meta]:
    return [meta for meta in getattr(hint, "__metadata__", ()) if isinstance(meta, msgspec.Meta)]


def _holds_name(hint: Any) -> bool:
    if _plain(hint) is str and any(meta.max_length == LONGEST_NAME for meta in _metas(hint)):
        return True
    return any(_holds_name(one) for one in typing.get_args(hint) if one is not ...)


@functools.cache
def leaf_names(struct: type[msgspec.Struct]) -> tuple[str, ...]:
    """Names of a struct's fields, without what ingest sets."""
    return tuple(name for name in struct.__struct_fields__ if name != _SET_ON_INGEST or struct is Chunk)


@functools.cache
def all_fields() -> tuple[str, ...]:
    """Paths of all fields of a trace that a producer may send: `latency.total_s`, `contexts.text`."""
    return tuple(field.path for field in walk())


def walk(struct: type[msgspec.Struct] = Trace, path: str = "") -> list[Field]:
    """All fields of a trace, each before those of its object; without what ingest sets."""
    found = []
    for name, field in fields_of(struct, path).items():
        if path or name != _SET_ON_INGEST:
            found.append(field)
            found += walk(field.struct, f"{field.path}.") if field.struct else []
    return found
