"""Serialize dataclasses of arrays with a row per series; select and join their rows.

The format is NumPy's npz without pickles, deflated, with a name and a version: readers refuse unknown ones.
"""

import io
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, cast

import numpy as np

from ragtide.drift.array_types import Numbers

Rows = TypeVar("Rows")


def to_bytes(rows: object, version: int) -> bytes:
    """Serialize a dataclass whose fields are arrays, numbers, or dataclasses of these."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {"__kind__": np.array(f"{type(rows).__name__}/{version}"), **_flatten(rows)}
    np.savez(buffer, **arrays)
    return zlib.compress(buffer.getvalue(), 1)  # rows of categories are mostly labels that never came


def from_bytes(kind: type[Rows], data: bytes, version: int) -> Rows:
    """Deserialize, bit for bit. Raises `ValueError` for bytes of another kind or version."""
    try:
        plain = zlib.decompress(data)
    except zlib.error as error:
        raise ValueError(f"stored is no deflated {kind.__name__}: {error}") from None
    with np.load(io.BytesIO(plain), allow_pickle=False) as arrays:
        found, wanted = str(arrays["__kind__"]), f"{kind.__name__}/{version}"
        if found != wanted:
            raise ValueError(f"stored is {found}, this release reads {wanted}")
        return cast(Rows, _rebuild(kind, {name: arrays[name] for name in arrays.files}, ""))


def take(rows: Rows, series: Numbers) -> Rows:
    """Copy some series, in this order."""
    taken = {name: array[series] if array.ndim else array for name, array in _flatten(rows).items()}
    return cast(Rows, _rebuild(type(rows), taken, ""))


def join(rows: Sequence[Rows], axis: int = 0) -> Rows:
    """Concatenate series (`axis` 1: channels). Raises `ValueError` if shared numbers differ."""
    parts = [_flatten(one) for one in rows]
    joined = {}
    for name, array in parts[0].items():
        if array.ndim:
            joined[name] = np.concatenate([part[name] for part in parts], axis=axis)
        elif any(part[name] != array for part in parts):
            raise ValueError(f"{type(rows[0]).__name__}s of different {name} do not join")
        else:
            joined[name] = array
    return cast(Rows, _rebuild(type(rows[0]), joined, ""))


def _flatten(rows: Any, prefix: str = "") -> dict[str, Numbers]:
    found: dict[str, Numbers] = {}
    for field in fields(rows):
        value, name = getattr(rows, field.name), prefix + field.name
        found.update(_flatten(value, f"{name}.") if is_dataclass(value) else {name: np.asarray(value)})
    return found


def _rebuild(kind: Any, arrays: Mapping[str, Numbers], prefix: str) -> Any:
    values: dict[str, Any] = {}
    for field in fields(kind):
        name = prefix + field.name
        if is_dataclass(field.type):
            values[field.name] = _rebuild(field.type, arrays, f"{name}.")
        else:
            array = arrays[name]
            values[field.name] = array if array.ndim else array.item()
    return kind(**values)
