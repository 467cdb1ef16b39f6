"""A problem is a fold over its events, so that a job and a person cannot overwrite each other."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple, cast

from drift.settings import Severity
from sinks.clickhouse.database import Database

State = Literal["pending", "open", "resolved"]
Aspect = Literal["level", "coverage", "missing"]
EVENTS = (
    "pending",  # a window is bad, not yet enough of them
    "withdrawn",  # it never opened
    "opened",
    "reopened",  # back within the flap interval: same episode
    "updated",
    "resolved",
    "acked",
    "unacked",
    "muted",
    "unmuted",
)
_RANK = {event: rank for rank, event in enumerate(EVENTS)}
_WIDTH = 16


class EventRow(NamedTuple):
    """Table `problem_events`. `event_id` follows from what happened, so that a second run writes the same row."""

    problem_id: str
    event_id: str
    event: str
    episode: int
    at: datetime
    app: str
    environment: str
    model: str
    aspect: str
    metric: str
    segment: str
    segment_value: str
    kind: str
    type: str
    severity: str
    code: str
    standards: Sequence[str]
    description: str
    attributes: str
    examples: Sequence[str]
    actions: Sequence[str]
    rule_id: str
    actor: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One episode of a trouble, as its events tell it.

    `attributes` are numbers and texts that say how it was found: value, baseline, threshold, limit, sample_size, wrong,
    since, until and the like.
    """

    problem_id: str
    episode: int
    state: State
    app: str
    environment: str
    model: str
    aspect: str
    metric: str
    segment: str
    segment_value: str
    kinds: tuple[str, ...]
    type: str
    severity: Severity
    code: str
    standards: tuple[str, ...]
    description: str
    attributes: Mapping[str, Any]
    examples: tuple[str, ...]
    actions: tuple[str, ...]
    rule_id: str
    first_seen_at: datetime
    last_seen_at: datetime
    opened_at: datetime | None = None
    resolved_at: datetime | None = None
    openings: int = 0
    acked_by: str = ""
    muted_by: str = ""


def problem_id(
    app: str, environment: str, model: str, aspect: Aspect, metric: str, segment: str = "", segment_value: str = ""
) -> str:
    """The same trouble has the same id, however often and by however many rules it is seen."""
    return _digest([app, environment, model, aspect, metric, segment, segment_value])


def event_id(problem: str, episode: int, event: str, *what: object) -> str:
    """The same happening has the same id, whoever writes it and however often."""
    return _digest([problem, episode, event, *(str(part) for part in what)])


def fold(events: Iterable[EventRow]) -> list[Problem]:
    """Every episode of every problem, in the order of their first event; one withdrawn unopened is left out."""
    folded: dict[tuple[str, int], Problem] = {}
    for event in sorted(events, key=lambda e: (e.at, _RANK.get(e.event, len(_RANK)), e.event_id)):
        key = (event.problem_id, event.episode)
        problem = folded.get(key)
        if event.event == "withdrawn":
            if problem is not None and problem.opened_at is None:
                del folded[key]
        elif event.event in _PERSONS:
            if problem is not None:
                folded[key] = _PERSONS[event.event](problem, event)
        elif event.event in _STATES:
            folded[key] = _seen(problem, event)
    return list(folded.values())


def latest(problems: Iterable[Problem]) -> dict[str, Problem]:
    """The last episode of each problem, by problem id."""
    found: dict[str, Problem] = {}
    for problem in problems:
        if problem.problem_id not in found or problem.episode > found[problem.problem_id].episode:
            found[problem.problem_id] = problem
    return found


def load_problems(
    database: Database,
    *,
    states: Sequence[State] = ("open", "resolved"),
    app: str | None = None,
    problem: str | None = None,
    every_episode: bool = False,
) -> list[Problem]:
    """Problems in these states, the newest first; the last episode of each unless every one is asked for."""
    conditions = [
        *(["app = {app:String}"] if app is not None else []),
        *(["startsWith(problem_id, {problem:String})"] if problem is not None else []),
    ]
    rows = database.rows(
        f"SELECT {', '.join(EventRow._fields)} FROM problem_events FINAL"
        + (f" WHERE {' AND '.join(conditions)}" if conditions else ""),
        {name: value for name, value in (("app", app), ("problem", problem)) if value is not None},
    )
    problems = fold(EventRow(**row) for row in rows)
    chosen = problems if every_episode else list(latest(problems).values())
    return sorted(
        (one for one in chosen if one.state in states),
        key=lambda one: (one.opened_at or one.first_seen_at, one.problem_id),
        reverse=True,
    )


def _seen(problem: Problem | None, event: EventRow) -> Problem:
    """The problem as a rule's event leaves it."""
    state = _STATES[event.event] or (problem.state if problem else "pending")
    opening = event.event in ("opened", "reopened")
    known = problem or _first(event)
    return replace(
        known,
        state=state,
        kinds=tuple(dict.fromkeys((*known.kinds, event.kind))),
        type=event.type,
        severity=cast(Severity, event.severity),
        code=event.code,
        standards=tuple(event.standards),
        description=event.description,
        attributes=json.loads(event.attributes or "{}"),
        examples=tuple(event.examples) or known.examples,
        actions=tuple(event.actions),
        rule_id=event.rule_id,
        last_seen_at=known.last_seen_at if event.event == "resolved" else event.at,
        opened_at=(known.opened_at or event.at) if opening else known.opened_at,
        resolved_at=event.at if event.event == "resolved" else (None if opening else known.resolved_at),
        openings=known.openings + opening,
    )


def _first(event: EventRow) -> Problem:
    return Problem(
        problem_id=event.problem_id,
        episode=event.episode,
        state="pending",
        app=event.app,
        environment=event.environment,
        model=event.model,
        aspect=event.aspect,
        metric=event.metric,
        segment=event.segment,
        segment_value=event.segment_value,
        kinds=(),
        type=event.type,
        severity=cast(Severity, event.severity),
        code=event.code,
        standards=(),
        description="",
        attributes={},
        examples=(),
        actions=(),
        rule_id=event.rule_id,
        first_seen_at=event.at,
        last_seen_at=event.at,
    )


def _digest(parts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_WIDTH]


_STATES: Mapping[str, State | None] = {  # None: as before
    "pending": "pending",
    "opened": "open",
    "reopened": "open",
    "updated": None,
    "resolved": "resolved",
}
_PERSONS = {
    "acked": lambda problem, event: replace(problem, acked_by=event.actor or "unknown"),
    "unacked": lambda problem, event: replace(problem, acked_by=""),
    "muted": lambda problem, event: replace(problem, muted_by=event.actor or "unknown"),
    "unmuted": lambda problem, event: replace(problem, muted_by=""),
}
