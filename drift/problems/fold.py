"""Fold one episode event by event, and the state of each kind in it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from ragtide.drift.attributes import evidence_of, read_attributes
from ragtide.drift.problems.model import EventRow, KindState, Problem, State
from ragtide.drift.settings import SEVERITIES

_STATE_AFTER: dict[str, State] = {"pending": "pending", "opened": "open", "reopened": "open", "resolved": "resolved"}
_OPENING_EVENTS = ("opened", "reopened")
_START_EVENTS = (*_OPENING_EVENTS, "kind_opened")
_END_EVENTS = ("kind_cleared", "resolved")
JOB_EVENTS = (*_STATE_AFTER, "kind_opened", "updated", "kind_cleared")  # events that change an episode
_KEY_FIELDS = ("problem_id", "episode", "app", "environment", "model", "aspect", "metric", "segment", "segment_value")
_DETAIL_FIELDS = (
    "type",
    "severity",
    "code",
    "standards",
    "title",
    "description",
    "attributes",
    "evidence",
    "actions",
    "rule_id",
)
_STATE_FIELDS = (
    *("state", "openings", "openings_at", "opened_by", "opened_at", "resolved_at", "all_clear_since"),
    *("last_seen_at", "last_event_at", "acked_by", "accepted_by"),
)


class Mute(NamedTuple):
    """An operator's mute of a problem, for all its episodes."""

    by: str = ""
    until: datetime | None = None


@dataclass(slots=True)
class _KindEvents:
    """Events of one kind in an episode; `last` is decoded only at the end."""

    last: EventRow
    order: int = 0  # of its last event among the episode's
    active: bool = False
    openings: int = 0
    examples: Sequence[str] = ()

    def apply(self, event: EventRow, order: int) -> None:
        """Apply its next event."""
        self.last, self.order = event, order
        self.examples = event.examples or self.examples
        if event.event in _START_EVENTS:
            self.active = True
            self.openings += 1
        elif event.event in _END_EVENTS:
            self.active = False

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Rank: active kinds by severity, then the one that reported last."""
        known = self.active and self.last.severity in SEVERITIES
        return self.active, SEVERITIES.index(self.last.severity) + 1 if known else 0, self.order

    def state(self) -> KindState:
        """Return its state."""
        details = {name: getattr(self.last, name) for name in _DETAIL_FIELDS if name != "evidence"}
        attributes = read_attributes(self.last.attributes)
        details |= {"attributes": attributes, "evidence": evidence_of(attributes)}
        details |= {"standards": tuple(self.last.standards)}
        details |= {"actions": tuple(self.last.actions), "examples": tuple(self.examples)}
        return KindState(kind=self.last.kind, at=self.last.at, active=self.active, openings=self.openings, **details)


@dataclass(slots=True)
class Episode:
    """State of one episode after some of its events."""

    first: EventRow
    openings_before: list[datetime]  # of the problem, all its episodes in turn
    state: State = "pending"
    event_count: int = 0
    kinds: dict[str, _KindEvents] = field(default_factory=dict)
    openings: int = 0
    openings_at: tuple[datetime, ...] = ()
    opened_by: str = ""
    opened_at: datetime | None = None
    resolved_at: datetime | None = None
    all_clear_since: datetime | None = None
    last_seen_at: datetime = field(init=False)
    last_event_at: datetime = field(init=False)
    acked_by: str = ""
    accepted_by: str = ""
    explanations: dict[int, EventRow] = field(default_factory=dict)  # by the opening that it is about

    def __post_init__(self) -> None:
        self.last_seen_at = self.last_event_at = self.first.at
        self.openings_at = tuple(self.openings_before)

    def apply(self, event: EventRow) -> None:
        """Apply an event of a job, or one that follows from an acceptance."""
        self.state = _STATE_AFTER.get(event.event, self.state)
        self.last_event_at = event.at
        self.event_count += 1
        if event.kind not in self.kinds:
            self.kinds[event.kind] = _KindEvents(event)
        self.kinds[event.kind].apply(event, self.event_count)
        if event.event not in _END_EVENTS:
            self.last_seen_at = event.at
        if event.event == "resolved":
            self.resolved_at = event.at
            for kind in self.kinds.values():
                kind.active = False
        if event.event in _OPENING_EVENTS:
            self.opened_at, self.resolved_at = self.opened_at or event.at, None
            self.opened_by = self.opened_by or event.kind
            self.openings += 1
            self.openings_before.append(event.at)
            self.openings_at = tuple(self.openings_before)
        if event.event == "kind_cleared" and not any(kind.active for kind in self.kinds.values()):
            self.all_clear_since = event.at
        elif event.event in (*_START_EVENTS, *_END_EVENTS):
            self.all_clear_since = None

    def apply_operator(self, event: EventRow) -> None:
        """Apply an operator action on this episode, or its explanation."""
        who = event.actor or "unknown"
        match event.event:
            case "acked":
                self.acked_by = who
            case "unacked":
                self.acked_by = ""
            case "accepted":
                self.accepted_by, self.last_event_at = who, event.at
            case "explained":
                self.explanations[evidence_of(event.attributes).opening] = event

    def problem(self, mute: Mute) -> Problem:
        """Return the problem."""
        states = {name: kind.state() for name, kind in self.kinds.items()}
        ranked = [states[one.last.kind] for one in sorted(self.kinds.values(), key=_rank, reverse=True)]
        own = {name: getattr(self, name) for name in _STATE_FIELDS}
        where = {name: getattr(self.first, name) for name in _KEY_FIELDS}
        details = {name: getattr(ranked[0], name) for name in _DETAIL_FIELDS}
        why = self.explanations.get(self.openings)
        return Problem(
            **own,
            **where,
            **details,
            by_kind=states,
            kinds=tuple(states),
            active_kinds=tuple(kind for kind, kind_state in states.items() if kind_state.active),
            examples=next((kind_state.examples for kind_state in ranked if kind_state.examples), ()),
            first_seen_at=self.first.at,
            muted_by=mute.by,
            muted_until=mute.until,
            explanation="" if why is None else why.description,
            cause={} if why is None else read_attributes(why.attributes),
        )


def _rank(kind: _KindEvents) -> tuple[bool, int, int]:
    return kind.rank
