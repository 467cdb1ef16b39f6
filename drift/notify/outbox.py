"""Table `outbox`: a message is stored under its own id before it is sent, and marked once it is sent or refused.

An unmarked message may have arrived. Messages about one problem or insight are sent in order.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple

from ragtide.drift.leadership import min_version
from ragtide.sinks.clickhouse.database import Database

Action = Literal["open", "update", "close"]
State = Literal["pending", "sent", "refused", "gave_up"]

GRAFANA = "grafana"
MOST = 1000  # messages of one run: the backlog of a long outage is sent in bounded steps
_LONGEST_WHY = 500  # characters


class OutboxRow(NamedTuple):
    """Table `outbox`."""

    message_id: str
    target: str
    action: Action
    subject: str
    at: datetime
    payload: str
    state: State
    why: str
    external_id: str
    attempts: int
    version: int
    written_at: datetime


@dataclass(frozen=True, slots=True)
class Message:
    """A message to one target. `thread` is the problem's episode, or the insight, and `at` when it changed.

    `content` is JSON that the target's sender reads.
    """

    message_id: str
    target: str
    action: Action
    thread: str
    at: datetime
    content: Mapping[str, Any]
    written_at: datetime
    attempts: int = 0

    @property
    def subject(self) -> str:
        """The problem or insight. Its messages are sent in order, over all episodes."""
        return self.thread.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Backlog:
    """The number of pending messages, of those that failed before, the age of the oldest, and of refused ones.

    Refused are also those that were given up.
    """

    waiting: int
    failing: int
    oldest_s: float
    refused: int


class Unsent(NamedTuple):
    """A message that was not sent: it waits, was refused or was given up."""

    message_id: str
    target: str
    state: State
    action: Action
    subject: str
    attempts: int
    written_at: datetime
    updated_at: datetime
    why: str


def enqueue_messages(database: Database, messages: Iterable[Message], epoch: int) -> None:
    """Store messages as pending. A later state of the same message wins."""
    database.insert("outbox", [_row(message, epoch, "pending") for message in messages])


def pending(database: Database, target: str) -> Sequence[Message]:
    """Load the oldest `MOST` pending messages of a target in order; at the same time, openings come first."""
    rows = database.rows(
        "SELECT message_id, target, action, subject, at, payload, attempts, written_at FROM outbox FINAL "
        "WHERE target = {target:String} AND state = 'pending' "
        "ORDER BY at, action != 'open', message_id LIMIT {most:UInt32}",
        {"target": target, "most": MOST},
    )
    return [_message(**row) for row in rows]


def mark(
    database: Database, message: Message, epoch: int, state: State, *, external_id: str = "", why: str = ""
) -> None:
    """Store the result of one more attempt. A newer leader's result wins."""
    attempted = replace(message, attempts=message.attempts + 1)
    database.insert("outbox", [_row(attempted, epoch, state, external_id, why[:_LONGEST_WHY])])


def give_up(database: Database, messages: Sequence[Message], epoch: int, why: str) -> None:
    """Mark messages that will not be tried again."""
    rows = [_row(message, epoch, "gave_up", why=why[:_LONGEST_WHY]) for message in messages]
    database.insert("outbox", rows)


def backlog(database: Database, target: str, now: datetime) -> Backlog:
    """Measure the backlog of a target at `now`, the server's time."""
    [found] = database.rows(
        "SELECT countIf(state = 'pending') AS waiting, countIf(state = 'pending' AND attempts > 0) AS failing, "
        "minIf(written_at, state = 'pending') AS oldest, "
        "countIf(state IN ('refused', 'gave_up')) AS refused FROM outbox FINAL WHERE target = {target:String}",
        {"target": target},
    )
    oldest_s = max((now - found["oldest"]).total_seconds(), 0.0) if found["waiting"] else 0.0
    return Backlog(found["waiting"], found["failing"], oldest_s, found["refused"])


def load_unsent(database: Database, target: str | None = None) -> list[Unsent]:
    """Load the messages of a target, or of all, that were not sent: by target, the oldest first."""
    rows = database.rows(
        f"SELECT {', '.join(Unsent._fields)} FROM outbox FINAL WHERE state != 'sent' "
        f"{'' if target is None else 'AND target = {target:String} '}ORDER BY target, written_at, message_id",
        None if target is None else {"target": target},
    )
    return [Unsent(**row) for row in rows]


def known_targets(database: Database) -> list[str]:
    """Names of all targets that messages were ever written to, within the retention."""
    return [row["target"] for row in database.rows("SELECT DISTINCT target FROM outbox ORDER BY target")]


def _row(message: Message, epoch: int, state: State, external_id: str = "", why: str = "") -> OutboxRow:
    return OutboxRow(
        message_id=message.message_id,
        target=message.target,
        action=message.action,
        subject=message.thread,
        at=message.at,
        payload=json.dumps(message.content),
        state=state,
        why=why,
        external_id=external_id,
        attempts=message.attempts,
        # Within an epoch a later attempt wins, and a final state over "pending"; a newer leader wins over all.
        version=min_version(epoch) | message.attempts << 1 | (state != "pending"),
        written_at=message.written_at,
    )


def _message(
    message_id: str,
    target: str,
    action: Action,
    subject: str,
    at: datetime,
    payload: str,
    attempts: int,
    written_at: datetime,
) -> Message:
    return Message(message_id, target, action, subject, at, json.loads(payload), written_at, attempts)
