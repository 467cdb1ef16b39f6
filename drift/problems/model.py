"""What a problem is: its events, what each kind says of it, and the whole as `fold.fold` puts it together."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

from ragtide.drift.attributes import Evidence
from ragtide.drift.problems.kinds import Aspect
from ragtide.drift.settings import Severity

State = Literal["pending", "open", "resolved"]
EVENTS = (
    "pending",  # a window is bad, not yet enough of them
    "withdrawn",  # it never opened
    "opened",
    "reopened",  # back within the flap interval: same episode
    "joined",  # a kind sees it too, or again, while it is open
    "updated",
    "accepted",  # a person says: this is the new normal
    "eased",  # a kind sees it no more, and it stays open: others do, or it flaps
    "resolved",  # no kind sees it any more
    "explained",  # why the metric moved, of one opening; no kind's word
    "acked",
    "unacked",
    "muted",
    "unmuted",
)
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
    kind: str = ""
    type: str = ""
    severity: str = ""
    code: str = ""
    standards: Sequence[str] = ()
    description: str = ""
    attributes: str = "{}"
    examples: Sequence[str] = ()
    actions: Sequence[str] = ()
    rule_id: str = ""
    actor: str = ""
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class KindState:
    """What one kind said last of an episode, at `at`, whether it is active, and how often it opened.

    `attributes` are for people: numbers and texts that say how it was found. `evidence` is what code reads of them.
    """

    kind: str
    active: bool
    openings: int
    at: datetime
    type: str
    severity: Severity
    code: str
    standards: tuple[str, ...]
    description: str
    attributes: Mapping[str, Any]
    evidence: Evidence
    examples: tuple[str, ...]
    actions: tuple[str, ...]
    rule_id: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One episode of a trouble, as its events tell it.

    Of the `kinds` that ever saw it those of `active_kinds` still do. Type, severity, code, standards, description,
    attributes, examples, actions and rule are those of the kind that holds with the highest severity, of several the
    one that spoke last; where none holds, of the one that spoke last.
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
    active_kinds: tuple[str, ...]
    type: str
    severity: Severity
    code: str
    standards: tuple[str, ...]
    description: str
    attributes: Mapping[str, Any]
    evidence: Evidence
    examples: tuple[str, ...]
    actions: tuple[str, ...]
    rule_id: str
    first_seen_at: datetime
    last_seen_at: datetime
    last_event_at: datetime  # of a job, or of an acceptance
    by_kind: Mapping[str, KindState]  # by kind
    opened_at: datetime | None = None
    resolved_at: datetime | None = None
    all_clear_since: datetime | None = None  # of an open one that no kind sees: it flaps
    openings: int = 0
    openings_at: tuple[datetime, ...] = ()  # of this episode and those before
    acked_by: str = ""
    accepted_by: str = ""
    muted_by: str = ""
    muted_until: datetime | None = None
    explanation: str = ""  # why the metric moved before the last opening, in one sentence
    cause: Mapping[str, Any] = field(default_factory=dict)  # the same in figures, see `ragtide.drift.rootcause.explain`

    def is_muted(self, now: datetime) -> bool:
        """Whether a person said that nothing is to be announced now."""
        return bool(self.muted_by) and (self.muted_until is None or now < self.muted_until)


def problem_id(
    app: str, environment: str, model: str, aspect: Aspect, metric: str, segment: str = "", segment_value: str = ""
) -> str:
    """The same trouble has the same id, however often and by however many rules it is seen."""
    return _digest([app, environment, model, aspect, metric, segment, segment_value])


def event_id(problem: str, episode: int, event: str, *what: object) -> str:
    """The same happening has the same id, whoever writes it and however often."""
    return _digest([problem, episode, event, *(str(part) for part in what)])


def _digest(parts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_WIDTH]
