"""Makes the rows of `problem_events`: where the trouble is, what happened to it, and what is said of it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from drift.problems.problem import Aspect, EventRow, Kind, Problem, problem_id
from drift.problems.turns import Turn
from drift.settings import Severity


class Place(NamedTuple):
    """What makes a trouble the same one; in the order of `problem_id`."""

    app: str
    environment: str
    model: str
    aspect: Aspect
    metric: str
    segment: str = ""
    segment_value: str = ""


def place_of_none(aspect: Aspect, segment: str, value: str) -> Place:
    """Of no application: a part of the system itself."""
    return Place(app="", environment="", model="", aspect=aspect, metric="", segment=segment, segment_value=value)


class Account(NamedTuple):
    """What is said of the problem from this event on."""

    kind: Kind
    type: str
    severity: Severity
    code: str
    standards: Sequence[str]
    description: str
    attributes: Mapping[str, Any]
    actions: Sequence[str]
    rule_id: str
    examples: Sequence[str] = ()


def event_row(place: Place, turn: Turn, account: Account, epoch: int, actor: str = "") -> EventRow:
    """The row of an event; the same turn told alike is the same row. Empty `actor`: a job."""
    attributes = json.dumps({**account.attributes, **turn.attributes}, sort_keys=True)
    told = account._asdict() | {"attributes": attributes}
    happened = {name: getattr(turn, name) for name in ("event", "event_id", "episode", "at")}
    return EventRow(problem_id=problem_id(*place), **place._asdict(), **happened, **told, actor=actor, epoch=epoch)


def place_of(problem: Problem) -> Place:
    """Where a known problem is."""
    return Place(**{name: getattr(problem, name) for name in Place._fields})


def last_account(problem: Problem, kind: str, **attributes: object) -> Account:
    """The last words of a kind on a known problem, these attributes added: at its end nothing is found out anew."""
    voice = problem.voices[kind]
    known = {name: getattr(voice, name) for name in Account._fields if name != "attributes"}
    return Account(attributes={**voice.attributes, **attributes}, **known)
