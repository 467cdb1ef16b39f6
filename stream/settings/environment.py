"""Environment variables of settings: `kafka.topics` is `RAGTIDE_KAFKA__TOPICS`."""

import difflib
import json
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.settings.parsing import MAX_DEPTH, read_json

PREFIX = "RAGTIDE_"
CONFIG_VARIABLE = "RAGTIDE_CONFIG"  # which file to read; not a setting itself
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VariableSetting:
    """One setting from the environment."""

    path: Path
    value: Any
    variable: str


def leaves(model: type[BaseModel], above: Path = ()) -> Iterator[tuple[Path, FieldInfo]]:
    """Every setting that is not a section, in the order of the model's fields."""
    for name, field in model.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            yield from leaves(section, (*above, name))
        else:
            yield (*above, name), field


def variable_of(path: Path) -> str:
    """The environment variable that sets `path`."""
    return PREFIX + "__".join(path).upper()


def model_at(model: type[BaseModel], path: Iterable[str | int]) -> type[BaseModel] | None:
    """The section (or the model of a list's or table's items) at `path`; None without one."""
    found: type[BaseModel] | None = model
    for step in path:
        if isinstance(step, int) or found is None:
            continue
        field = found.model_fields.get(step)
        found = _model_in(field.annotation) if field is not None else found
    return found


def nearest(name: str, valid: Iterable[str], shared: str = "", listed_by: str = "") -> str:
    """`did you mean X?`, or the valid names if none is similar, or `listed_by`, the command that lists them.

    `shared`: the common prefix of all names; it is not compared, because it would make all of them similar.
    """
    names = [each.removeprefix(shared) for each in valid]
    if near := closest(name.removeprefix(shared), names):
        return f"did you mean {shared}{near}?"
    if listed_by:
        return f"`{listed_by}` lists every name"
    return f"valid: {', '.join(shared + each for each in sorted(names))}"


def closest(name: str, valid: Iterable[str], cutoff: float = 0.6) -> str:
    """The name of `valid` that was probably meant; empty: none is similar."""
    return next(iter(difflib.get_close_matches(name, valid, n=1, cutoff=cutoff)), "")


def from_environment(model: type[BaseModel], environ: Mapping[str, str]) -> list[VariableSetting]:
    """Read RAGTIDE_ variables; an unknown one is a `ConfigError` with the most similar valid name.

    Lists are JSON or comma-separated, tables JSON or one variable per key (`RAGTIDE_SAMPLING__LANES__JUDGE=0.1`).
    """
    fields = dict(leaves(model))
    variables = {variable_of(path): path for path in fields}
    found = []
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name == CONFIG_VARIABLE:
            continue
        path, rest = _match(name, variables)
        if path is None or (rest and not _holds(fields[path].annotation, dict)):
            raise ConfigError(f"{name}: no such setting; {_hint(name.upper(), variables)}")
        value = (
            _parse_table_value(name, environ[name])
            if rest
            else _parse_value(name, environ[name], fields[path].annotation)
        )
        found.append(VariableSetting(path + rest, value, name))
    return found


def _hint(name: str, variables: Iterable[str]) -> str:
    every = [*variables, CONFIG_VARIABLE]
    section = "".join(name.rpartition("__")[:2])
    siblings = [variable for variable in every if section and variable.startswith(section)]
    return nearest(name, siblings, section) if siblings else nearest(name, every, PREFIX, "ragtide config")


def _match(name: str, variables: Mapping[str, Path]) -> tuple[Path | None, Path]:
    parts = name.upper().split("__")
    if len(parts) > MAX_DEPTH:
        return None, ()
    for length in range(len(parts), 0, -1):
        path = variables.get("__".join(parts[:length]))
        if path is not None:
            return path, tuple(part.lower() for part in name.split("__")[length:])
    return None, ()


def _parse_table_value(name: str, text: str) -> Any:
    try:
        return read_json(text, name)
    except json.JSONDecodeError:
        return text


def _parse_value(name: str, text: str, annotation: Any) -> Any:
    if not _holds(annotation, dict) and not _holds(annotation, tuple) and not _holds(annotation, list):
        return text
    if text.lstrip().startswith(("[", "{")):
        try:
            return read_json(text, name)
        except json.JSONDecodeError as error:
            raise ConfigError(f"{name}: not valid JSON at column {error.colno}") from None
    if _holds(annotation, dict):
        raise ConfigError(f"{name}: a table is given as JSON, or key by key as {name}__<KEY>=<value>")
    return [part.strip() for part in text.split(",") if part.strip()]


def _holds(annotation: Any, kind: type) -> bool:
    origin = typing.get_origin(annotation) or annotation
    if isinstance(origin, type) and issubclass(origin, kind):
        return True
    return any(_holds(inner, kind) for inner in typing.get_args(annotation)) if _is_union(annotation) else False


def _is_union(annotation: Any) -> bool:
    return type(None) in typing.get_args(annotation)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in typing.get_args(annotation):
        if (found := _model_in(inner)) is not None:
            return found
    return None
