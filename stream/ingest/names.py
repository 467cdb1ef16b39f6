"""Limit the names of a trace: cut long ones with a hash at the end, or refuse the record."""

import re
from collections import Counter
from hashlib import sha256
from typing import Any

from ragtide.evaluators.errors import BadRecord
from ragtide.evaluators.trace import LONGEST_NAME

_DIGITS = 16
_PREFIX_CHARACTERS = LONGEST_NAME - _DIGITS - 1
# C0, C1 and DEL; marks, embeddings, overrides and isolates of the text's direction; separators of lines and paragraphs.
_CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def cut_name(name: str) -> str:
    """Return the name; if it is too long, its start, `~` and 16 hex digits of the SHA-256 of the whole.

    So equal names stay equal and different ones stay different. A cut name is not cut again.
    """
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:_PREFIX_CHARACTERS]}~{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"


def cut_names(value: Any, field: str, cut: Counter[str]) -> Any:
    """Return a decoded JSON value with every name in it cut: a text, a list's items, an object's keys and values.

    Counts in `cut`, under `field`, how many were too long.
    """
    if isinstance(value, str):
        if len(value) > LONGEST_NAME:
            cut[field] += 1
            return cut_name(value)
    elif isinstance(value, dict):
        return {cut_names(key, field, cut): cut_names(item, field, cut) for key, item in value.items()}
    elif isinstance(value, list):
        return [cut_names(item, field, cut) for item in value]
    return value


def has_control_characters(name: str) -> bool:
    """Whether the text has a character that breaks or controls a line of a terminal or dashboard."""
    return not name.isprintable() and _CONTROL_CHARACTERS.search(name) is not None


def refuse_identity(field: str, name: str, max_characters: int) -> None:
    """Raise `BadRecord` if a name that identifies the trace's owner is too long or has control characters."""
    if len(name) > max_characters:
        detail = f"{field}: {len(name):,} characters; ingest.max_name_characters is {max_characters}"
        raise BadRecord("name_too_long", detail, field)
    if has_control_characters(name):
        detail = f"{field}: it holds control characters or marks of text direction"
        raise BadRecord("control_characters", detail, field)
