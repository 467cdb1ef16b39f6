"""Problems: their events, the state of each kind, and the problem that `store.fold_events` makes of them."""

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
    "pending",  # windows are bad, but not enough of them yet
    "withdrawn",  # windows became good before it opened
    "opened",
    "reopened",  # back within the flap interval: same episode
    "kind_opened",  # another kind sees it while it is open, or one that had cleared sees it again
    "updated",
    "accepted",  # an operator accepts the new level
    "kind_cleared",  # a kind cleared; it stays open because others see it, or because it flaps
    "resolved",  # the last kind cleared
    "explained",  # the root cause of one opening is known
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
    title: str = ""


@dataclass(frozen=True, slots=True)
class KindState:
    """The last report of one kind in an episode, at `at`; whether the kind is active, and how often it opened.

    `attributes` are for people: numbers and texts of the report. `evidence` is the part that code reads.
    """

    kind: str
    active: bool
    openings: int
    at: datetime
    type: str
    severity: Severity
    code: str
    standards: tuple[str, ...]
    title: str
    description: str
    attributes: Mapping[str, Any]
    evidence: Evidence
    examples: tuple[str, ...]
    actions: tuple[str, ...]
    rule_id: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One episode of a problem.

    `kinds` have seen it, `active_kinds` still do. Type, severity, code, standards, title, description, attributes,
    examples, actions and rule are those of the active kind with the highest severity; among equals, and if none is
    active, of the one that reported last.
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
    title: str
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
    opened_by: str = ""  # kind
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

    @property
    def onset(self) -> datetime:
        """When it began, in event time if that is known."""
        return self.evidence.since or self.opened_at or self.first_seen_at

    def is_muted(self, now: datetime) -> bool:
        """Whether an operator muted it now."""
        return bool(self.muted_by) and (self.muted_until is None or now < self.muted_until)


def problem_id(
    app: str, environment: str, model: str, aspect: Aspect, metric: str, segment: str = "", segment_value: str = ""
) -> str:
    """Return the id of a problem: the same for the same key, whichever rules and checks report it."""
    return _digest([app, environment, model, aspect, metric, segment, segment_value])


def event_id(problem: str, episode: int, event: str, *what: object) -> str:
    """Return the id of an event: the same for the same transition, whichever process writes it."""
    return _digest([problem, episode, event, *(str(part) for part in what)])


def _digest(parts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_WIDTH]
