"""One episode of a problem, event by event, and what each kind says of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from drift.problems.problem import EventRow, Problem, State, Voice

_SEVERITIES = ("low", "medium", "high")
_TURNS: dict[str, State] = {"pending": "pending", "opened": "open", "reopened": "open", "resolved": "resolved"}
_OPENS = ("opened", "reopened")
_BEGINS = (*_OPENS, "joined")
_ENDS = ("eased", "resolved")
OF_JOBS = (*_TURNS, "joined", "updated", "eased")  # events that an episode hears
_OPENING = "opening"  # attribute of what explains: which one of the episode
_PLACE = ("problem_id", "episode", "app", "environment", "model", "aspect", "metric", "segment", "segment_value")
_SAID = ("type", "severity", "code", "standards", "description", "attributes", "actions", "rule_id")
_OWN = (
    *("state", "openings", "openings_at", "opened_at", "resolved_at", "quiet_since"),
    *("last_seen_at", "last_event_at", "acked_by", "accepted_by"),
)


class Mute(NamedTuple):
    """A person's word on a problem, whichever its episode."""

    by: str = ""
    until: datetime | None = None


@dataclass(slots=True)
class _Kind:
    """What is known of one kind in an episode; its `last` words are read only at the end."""

    last: EventRow
    place: int = 0  # of its last words among the episode's
    holds: bool = False
    begun: int = 0
    examples: Sequence[str] = ()

    def hear(self, event: EventRow, place: int) -> None:
        """Its next word."""
        self.last, self.place = event, place
        self.examples = event.examples or self.examples
        if event.event in _BEGINS:
            self.holds = True
            self.begun += 1
        elif event.event in _ENDS:
            self.holds = False

    @property
    def weight(self) -> tuple[bool, int, int]:
        """Of those that hold the highest severity, then the one that spoke last."""
        known = self.holds and self.last.severity in _SEVERITIES
        return self.holds, _SEVERITIES.index(self.last.severity) + 1 if known else 0, self.place

    def voice(self) -> Voice:
        """The whole."""
        said = {name: getattr(self.last, name) for name in _SAID}
        said |= {"attributes": json.loads(self.last.attributes or "{}"), "standards": tuple(self.last.standards)}
        said |= {"actions": tuple(self.last.actions), "examples": tuple(self.examples)}
        return Voice(kind=self.last.kind, at=self.last.at, holds=self.holds, begun=self.begun, **said)


@dataclass(slots=True)
class Episode:
    """What is known of one after some of its events."""

    first: EventRow
    openings_before: list[datetime]  # of the problem, all its episodes in turn
    state: State = "pending"
    words: int = 0
    kinds: dict[str, _Kind] = field(default_factory=dict)
    openings: int = 0
    openings_at: tuple[datetime, ...] = ()
    opened_at: datetime | None = None
    resolved_at: datetime | None = None
    quiet_since: datetime | None = None
    last_seen_at: datetime = field(init=False)
    last_event_at: datetime = field(init=False)
    acked_by: str = ""
    accepted_by: str = ""
    explained: dict[int, EventRow] = field(default_factory=dict)  # by the opening that it is about

    def __post_init__(self) -> None:
        self.last_seen_at = self.last_event_at = self.first.at
        self.openings_at = tuple(self.openings_before)

    def hear(self, event: EventRow) -> None:
        """A job's word, or what follows from an acceptance."""
        self.state = _TURNS.get(event.event, self.state)
        self.last_event_at = event.at
        self.words += 1
        if event.kind not in self.kinds:
            self.kinds[event.kind] = _Kind(event)
        self.kinds[event.kind].hear(event, self.words)
        if event.event not in _ENDS:
            self.last_seen_at = event.at
        if event.event == "resolved":
            self.resolved_at = event.at
            for kind in self.kinds.values():
                kind.holds = False
        if event.event in _OPENS:
            self.opened_at, self.resolved_at = self.opened_at or event.at, None
            self.openings += 1
            self.openings_before.append(event.at)
            self.openings_at = tuple(self.openings_before)
        if event.event == "eased" and not any(kind.holds for kind in self.kinds.values()):
            self.quiet_since = event.at
        elif event.event in (*_BEGINS, *_ENDS):
            self.quiet_since = None

    def mark(self, event: EventRow) -> None:
        """A person's word on this episode, or why the metric moved."""
        who = event.actor or "unknown"
        match event.event:
            case "acked":
                self.acked_by = who
            case "unacked":
                self.acked_by = ""
            case "accepted":
                self.accepted_by, self.last_event_at = who, event.at
            case "explained":
                self.explained[json.loads(event.attributes).get(_OPENING, 0)] = event

    def problem(self, mute: Mute) -> Problem:
        """The whole."""
        voices = {name: kind.voice() for name, kind in self.kinds.items()}
        ranked = [voices[one.last.kind] for one in sorted(self.kinds.values(), key=_by_weight, reverse=True)]
        own = {name: getattr(self, name) for name in _OWN}
        where = {name: getattr(self.first, name) for name in _PLACE}
        said = {name: getattr(ranked[0], name) for name in _SAID}
        why = self.explained.get(self.openings)
        return Problem(
            **own,
            **where,
            **said,
            voices=voices,
            kinds=tuple(voices),
            holding=tuple(kind for kind, voice in voices.items() if voice.holds),
            examples=next((voice.examples for voice in ranked if voice.examples), ()),
            first_seen_at=self.first.at,
            muted_by=mute.by,
            muted_until=mute.until,
            explanation="" if why is None else why.description,
            cause={} if why is None else json.loads(why.attributes),
        )


def _by_weight(kind: _Kind) -> tuple[bool, int, int]:
    return kind.weight
