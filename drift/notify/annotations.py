"""Grafana's annotations: one for each episode of a problem, from its onset to its end, exactly once in effect.

The sender of a message first looks in Grafana for the episode's tag, so that a crash or a second leader adds nothing
twice.
"""

import hashlib
import html
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from ragtide.drift.attributes import evidence_of
from ragtide.drift.notify.channel import ANNOUNCED, Change, Condition, Draft
from ragtide.drift.notify.outbox import GRAFANA, Action, Message
from ragtide.drift.problems import EventRow, group_key
from ragtide.evaluators.errors import Transient
from ragtide.sinks.grafana import GrafanaGateway

_LONGEST_TAG = 80  # bytes; Grafana takes 100 a tag, and 500 for all tags of an annotation
_LONGEST_GROUP = _LONGEST_TAG - len("group:")
_DIGEST = 12
_SHORTEST_REGION = timedelta(seconds=1)  # a region without extent is a point, and closing it would show nothing


@dataclass(frozen=True, slots=True)
class _Region:
    """Time, text and tags of an episode's annotation."""

    start: datetime
    end: datetime
    text: str
    tags: tuple[str, ...]

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        """Read a message's content."""
        start, end = (datetime.fromisoformat(content[name]) for name in ("start", "end"))
        return cls(start, end, content["text"], tuple(content["tags"]))


@dataclass(frozen=True, slots=True)
class AnnotationChannel:
    """Every problem, as Grafana shows it."""

    name: str = GRAFANA
    takes_all: bool = False

    @property
    def actions(self) -> Mapping[str, Action]:
        """By event."""
        return ANNOUNCED

    def condition(self) -> Condition:
        """All events."""
        return Condition()

    def rejects(self, change: Change) -> str:
        """Nothing is left out."""
        return ""

    def draft(self, change: Change) -> Draft:
        """Write the annotation as it is after the event."""
        event = change.event
        action = ANNOUNCED[event.event]
        start = min(evidence_of(event.attributes).since or event.at, event.at)
        named = {"app": event.app, "environment": event.environment, "metric": event.metric}
        named |= {
            "type": event.type,
            "severity": event.severity,
            "group": _shorten(group_key(event)),
            "id": f"{event.problem_id}:{event.episode}",
        }
        tags = ["ragtide", "problem", *(_tag(name, value) for name, value in named.items() if value)]
        content = {
            "start": start.isoformat(),
            "end": max(event.at, start + _SHORTEST_REGION).isoformat(),
            "text": _text(event),
            "tags": [*tags, *(["resolved"] if action == "close" else [])],
        }
        return Draft(action, content)


class AnnotationSender:
    """Creates and updates annotations. A message is tried as long as the outbox keeps it."""

    retry_for: timedelta | None = None

    def __init__(self, grafana: GrafanaGateway) -> None:
        self._grafana = grafana

    def connected(self) -> AbstractContextManager[object]:
        """Each call connects by itself."""
        return nullcontext()

    def send(self, message: Message) -> str:
        """Create or update the episode's one annotation; return its id, empty if a person deleted it."""
        region, identity = _Region.of(message.content), f"id:{message.thread}"
        found = [each.id for each in self._grafana.find_annotations(identity)]
        if found and self._grafana.patch_annotation(found[0], text=region.text, tags=region.tags, end=region.end):
            self._delete(found[1:])
            return str(found[0])
        if message.action != "open":
            return ""
        created = self._grafana.annotate(text=region.text, tags=region.tags, start=region.start, end=region.end)
        # An old leader that does not know yet that it was replaced may have done the same between our two calls.
        first, *duplicates = sorted({created, *(each.id for each in self._grafana.find_annotations(identity))})
        self._delete(duplicates)
        return str(first)

    def answers(self) -> bool:
        """Whether Grafana is up, so that the message is at fault."""
        try:
            self._grafana.check()
        except Transient:
            return False
        return True

    def retract(self, message: Message, external_id: str) -> None:
        """Delete the annotation."""
        if external_id:
            self._delete([int(external_id)])

    def _delete(self, annotations: Iterable[int]) -> None:
        for annotation in annotations:
            self._grafana.delete_annotation(annotation)


def _text(event: EventRow) -> str:
    """Make the annotation's text. Grafana renders HTML, so names that applications chose are escaped."""
    lines = [f"{event.severity} {event.type}: {event.description}".strip(), *event.actions]
    lines += [f"Examples: {', '.join(event.examples)}"] if event.examples else []
    return "\n".join(html.escape(line, quote=False) for line in lines)


def _shorten(group: str) -> str:
    """Shorten the group with a digest that keeps it unique: routing compares the whole tag."""
    if len(group.encode()) <= _LONGEST_GROUP:
        return group
    digest = hashlib.sha256(group.encode()).hexdigest()[:_DIGEST]
    return f"{group.encode()[: _LONGEST_GROUP - _DIGEST - 1].decode(errors='ignore')}~{digest}"


def _tag(name: str, value: str) -> str:
    return f"{name}:{value}".encode()[:_LONGEST_TAG].decode(errors="ignore")
