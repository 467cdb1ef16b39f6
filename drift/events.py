"""Makes the rows of `problem_events`: where the trouble is, what happened to it, and what is said of it."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from drift.problems import Aspect, EventRow, Problem, problem_id
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


class Happening(NamedTuple):
    """One event in the life of an episode. `event_id` follows from what happened (`drift.problems.event_id`)."""

    event: str
    event_id: str
    episode: int
    at: datetime
    epoch: int


class Account(NamedTuple):
    """What is said of the problem from this event on."""

    kind: str
    type: str
    severity: Severity
    code: str
    standards: Sequence[str]
    description: str
    attributes: Mapping[str, Any]
    actions: Sequence[str]
    rule_id: str
    examples: Sequence[str] = ()


def event_row(place: Place, happening: Happening, account: Account) -> EventRow:
    """The row of a job's event; the same happening told alike is the same row."""
    told = account._asdict() | {"attributes": json.dumps(account.attributes, sort_keys=True)}
    return EventRow(problem_id=problem_id(*place), **place._asdict(), **happening._asdict(), **told, actor="")


def place_of(problem: Problem) -> Place:
    """Where a known problem is."""
    return Place(**{name: getattr(problem, name) for name in Place._fields})


def last_account(problem: Problem, **attributes: object) -> Account:
    """The last words on a known problem, these attributes added: at its end nothing is found out anew."""
    known = {name: getattr(problem, name) for name in Account._fields if name not in ("kind", "attributes")}
    return Account(kind=problem.kinds[-1], attributes={**problem.attributes, **attributes}, **known)
