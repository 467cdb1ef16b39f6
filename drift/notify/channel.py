"""A channel decides which changes of problems and insights it gets, and writes the message; a sender delivers it."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

from ragtide.drift.insights import InsightRow
from ragtide.drift.notify.outbox import Action, Message
from ragtide.drift.problems import EventRow, Problem

ANNOUNCED: Mapping[str, Action] = {
    "opened": "open",
    "reopened": "open",
    "kind_opened": "update",
    "kind_cleared": "update",
    "explained": "update",
    "resolved": "close",
}
ESCALATED = "updated"  # announced only if the severity changed, to channels that name it


@dataclass(frozen=True, slots=True)
class Condition:
    """SQL over columns of a table, and its parameters.

    Over `problem_events` it may use `is_known`: the target has a message about this episode. `is_later`: it has one
    about an earlier event of it.
    """

    sql: str = "true"
    bound: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Change:
    """An event of a problem with the details to announce, and the problem as it is now.

    `parent` is the id of the problem that explains it, empty if none does. `is_first`: the target has no message about
    the episode yet.
    """

    event: EventRow
    problem: Problem
    parent: str
    is_first: bool


class Draft(NamedTuple):
    """Action and content of a message."""

    action: Action
    content: Mapping[str, Any]


class Channel(Protocol):
    """Selects and writes the messages of one target. Pure.

    `actions` are the events that it gets, with what they do. `takes_all`: also muted problems and symptoms.
    """

    @property
    def name(self) -> str:
        """The target's name in the outbox."""
        ...

    @property
    def actions(self) -> Mapping[str, Action]:
        """By event."""
        ...

    @property
    def takes_all(self) -> bool:
        """Whether muted problems and symptoms are announced too."""
        ...

    def condition(self) -> Condition:
        """Return which events of table `problem_events` are announced."""
        ...

    def rejects(self, change: Change) -> str:
        """Say why the target is not told of a problem whatever happens to it; empty if it is."""
        ...

    def draft(self, change: Change) -> Draft | None:
        """Write the message about a change, always the same; None: the target wants none."""
        ...


class InsightChannel(Protocol):
    """Selects and writes messages about insights. Pure."""

    @property
    def name(self) -> str:
        """The target's name in the outbox."""
        ...

    @property
    def repeats(self) -> bool:
        """Whether each stored version of an insight is a message, or only its appearance and its withdrawal."""
        ...

    def insight_condition(self) -> Condition | None:
        """Return which rows of table `insights` are announced; None: none."""
        ...

    def draft_insight(self, insight: InsightRow, message_id: str, at: datetime) -> Draft:
        """Write the message about an insight that was stored at `at`."""
        ...


class Sender(Protocol):
    """Delivers messages to one target. `retry_for`: how long a failing one is tried; None: as long as it is kept."""

    @property
    def retry_for(self) -> timedelta | None:
        """From when it was written."""
        ...

    def connected(self) -> AbstractContextManager[object]:
        """Hold a connection for the messages of one run."""
        ...

    def send(self, message: Message) -> str:
        """Send the message; return its identifier at the receiver, empty if it has none.

        Raises `Refused` if the receiver will never accept it, `Transient` or `ConfigError` if it may later.
        """
        ...

    def answers(self) -> bool:
        """Tell whether the receiver works apart from the message that just failed."""
        ...

    def retract(self, message: Message, external_id: str) -> None:
        """Take back a message that was a test, where the receiver can forget it. Raises as `send` does."""
        ...


def message_of(channel: Channel, change: Change, now: datetime) -> Message | None:
    """Make the message of a change, always the same but for `written_at`; None: the channel wants none."""
    draft = channel.draft(change)
    if draft is None:
        return None
    event = change.event
    return Message(
        message_id=f"{channel.name}:{event.event_id}",
        target=channel.name,
        action=draft.action,
        thread=f"{event.problem_id}:{event.episode}",
        at=event.at,
        content=draft.content,
        written_at=now,
    )
