"""Typed attributes of events. Code reads only these; the others are for people."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, get_type_hints

import msgspec


class EvidenceWindow(msgspec.Struct, frozen=True, kw_only=True):
    """The newest interval that was judged: a window, or several pooled ones."""

    start: datetime
    end: datetime


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What life cycle, chart, inhibition, baseline and root cause follow from; None or empty: not known.

    [since, until) is the interval in event time, `revision` that of the newest verdict. `channel`, `detector`, `rule`,
    `objective`, `level`, `min`, `max`, `threshold` and `limit` name the figure and its limit. Operator actions have
    `kinds` and `why`; an explanation has the number of its `opening`, its `attempt`, and when to retry.
    """

    since: datetime | None = None
    until: datetime | None = None
    revision: int = 0
    window: EvidenceWindow | None = None
    value: float | None = None
    baseline: float | None = None
    channel: str = ""
    detector: str = ""
    rule: str = ""
    objective: str = ""
    level: float | None = None
    min: float | None = None
    max: float | None = None
    threshold: float | None = None
    limit: float | None = None
    sample_size: int | None = None
    model_before: str = ""
    kinds: tuple[str, ...] = ()
    why: str = ""
    opening: int = 0
    attempt: int = 0
    again_at: datetime | None = None


_TYPES = get_type_hints(Evidence)


def read_attributes(text: str) -> Mapping[str, Any]:
    """Decode the attributes column of an event."""
    read: Mapping[str, Any] = json.loads(text or "{}")
    return read


def evidence_of(attributes: Mapping[str, Any] | str) -> Evidence:
    """Read the evidence from attributes or from the column; values of another type are left out."""
    known = read_attributes(attributes) if isinstance(attributes, str) else attributes
    try:
        return msgspec.convert({name: known[name] for name in _TYPES if known.get(name) is not None}, Evidence)
    except msgspec.ValidationError:
        return Evidence(**{name: value for name in _TYPES if (value := _value(known, name)) is not None})


def _value(known: Mapping[str, Any], name: str) -> Any:
    try:
        return msgspec.convert(known.get(name), _TYPES[name])
    except msgspec.ValidationError:
        return None
