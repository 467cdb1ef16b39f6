"""Table `outbox`: a message is stored under its own id before it is sent, and marked once it is sent or refused.

An unmarked message may have arrived: the sender looks for it at its target first.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, NamedTuple

from ragtide.drift.leadership import min_version
from ragtide.sinks.clickhouse.database import Database

Action = Literal["open", "update", "close"]
State = Literal["pending", "sent", "refused"]

GRAFANA = "grafana"
MOST = 1000  # messages of one run: the backlog of a long outage is sent in bounded steps
_LONGEST_WHY = 500  # characters


class OutboxRow(NamedTuple):
    """Table `outbox`."""

    message_id: str
    target: str
    action: Action
    subject: str
    payload: str
    state: State
    why: str
    external_id: str
    attempts: int
    version: int
    written_at: datetime


@dataclass(frozen=True, slots=True)
class Message:
    """A change of an episode's annotation, as one event asks for it; text and tags are those of afterwards."""

    message_id: str
    action: Action
    thread: str
    at: datetime
    start: datetime
    end: datetime
    text: str
    tags: tuple[str, ...]
    written_at: datetime
    attempts: int = 0

    @property
    def identity(self) -> str:
        """The tag by which the episode's annotation is found."""
        return f"id:{self.thread}"


@dataclass(frozen=True, slots=True)
class Backlog:
    """The number of pending messages, of those that failed before, the age of the oldest, and of refused ones."""

    waiting: int
    failing: int
    oldest_s: float
    refused: int


def enqueue_messages(database: Database, messages: Iterable[Message], epoch: int) -> None:
    """Store messages as pending. A later state of the same message wins."""
    database.insert("outbox", [_row(message, epoch, "pending") for message in messages])


def pending(database: Database) -> Sequence[Message]:
    """Load the oldest `MOST` pending messages in order; at the same time, openings come first."""
    rows = database.rows(
        "SELECT message_id, action, subject, payload, attempts, written_at FROM outbox FINAL "
        "WHERE target = {target:String} AND state = 'pending' "
        "ORDER BY parseDateTime64BestEffort(JSONExtractString(payload, 'at'), 6), action != 'open', message_id "
        "LIMIT {most:UInt32}",
        {"target": GRAFANA, "most": MOST},
    )
    return [_message(**row) for row in rows]


def mark(
    database: Database, message: Message, epoch: int, state: State, *, external_id: str = "", why: str = ""
) -> None:
    """Store the result of one more attempt. A newer leader's result wins."""
    attempted = replace(message, attempts=message.attempts + 1)
    database.insert("outbox", [_row(attempted, epoch, state, external_id, why[:_LONGEST_WHY])])


def backlog(database: Database, now: datetime) -> Backlog:
    """Measure the backlog at `now`, the server's time."""
    [found] = database.rows(
        "SELECT countIf(state = 'pending') AS waiting, countIf(state = 'pending' AND attempts > 0) AS failing, "
        "minIf(written_at, state = 'pending') AS oldest, "
        "countIf(state = 'refused') AS refused FROM outbox FINAL WHERE target = {target:String}",
        {"target": GRAFANA},
    )
    oldest_s = max((now - found["oldest"]).total_seconds(), 0.0) if found["waiting"] else 0.0
    return Backlog(found["waiting"], found["failing"], oldest_s, found["refused"])


def _row(message: Message, epoch: int, state: State, external_id: str = "", why: str = "") -> OutboxRow:
    payload = {
        "at": message.at.isoformat(),
        "start": message.start.isoformat(),
        "end": message.end.isoformat(),
        "text": message.text,
        "tags": message.tags,
    }
    return OutboxRow(
        message_id=message.message_id,
        target=GRAFANA,
        action=message.action,
        subject=message.thread,
        payload=json.dumps(payload),
        state=state,
        why=why,
        external_id=external_id,
        attempts=message.attempts,
        # Within an epoch a later attempt wins, and a final state over "pending"; a newer leader wins over all.
        version=min_version(epoch) | message.attempts << 1 | (state != "pending"),
        written_at=message.written_at,
    )


def _message(
    message_id: str, action: Action, subject: str, payload: str, attempts: int, written_at: datetime
) -> Message:
    content = json.loads(payload)
    at, start, end = (datetime.fromisoformat(content[name]) for name in ("at", "start", "end"))
    return Message(
        message_id, action, subject, at, start, end, content["text"], tuple(content["tags"]), written_at, attempts
    )
