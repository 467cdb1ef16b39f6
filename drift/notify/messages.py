"""Turn problem events into messages to Grafana in table `outbox`, one per event.

Opened, reopened and resolved carry the details of the event. Events kind_opened, kind_cleared and explained update the
annotation of an open problem to its current details. A message has its event's id, so that it is stored once.
"""

import hashlib
import html
import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.drift.attributes import evidence_of, read_attributes
from ragtide.drift.notify import outbox
from ragtide.drift.notify.outbox import GRAFANA, Action, Message
from ragtide.drift.problems import (
    LONGEST_EXPECTED,
    UNRESOLVED,
    EpisodeKey,
    EventRow,
    Problem,
    group_key,
    is_leak,
    load_problems,
    load_recent_problems,
    parents,
    speaks_for,
)
from ragtide.sinks.clickhouse.database import Database

_ACTIONS: dict[str, Action] = {
    "opened": "open",
    "reopened": "open",
    "kind_opened": "update",
    "kind_cleared": "update",
    "explained": "update",
    "resolved": "close",
}
_DETAIL_FIELDS = ("type", "severity", "description", "actions", "examples")
MAX_AGE = timedelta(days=7)  # a Grafana that is configured later gets only what still holds, not years of history
_OPENING_EVENTS = ("opened", "reopened")
_LONGEST_TAG = 80  # bytes; Grafana takes 100 a tag, and 500 for all tags of an annotation
_LONGEST_GROUP = _LONGEST_TAG - len("group:")
_DIGEST = 12
_SHORTEST_REGION = timedelta(seconds=1)  # a region without extent is a point, and closing it would show nothing


class _UnsentEvent(NamedTuple):
    """An event without the message that it needs.

    `is_known`: its episode has messages already; `is_old`: it is older than `MAX_AGE`.
    """

    problem_id: str
    episode: int
    event_id: str
    event: str
    at: datetime
    attributes: str
    is_known: bool
    is_old: bool

    @property
    def key(self) -> EpisodeKey:
        """The episode."""
        return EpisodeKey(self.problem_id, self.episode)


def enqueue(database: Database, epoch: int, now: datetime, group_wait: timedelta = timedelta()) -> None:
    """Store messages for the oldest `outbox.MOST` events without one.

    Events of muted problems wait until the mute ends. A new problem waits for `group_wait`, because the one that
    explains it may open after it; a leak never waits. Events of a symptom that is no more severe than its parent wait
    until the parent resolves, and then for as long as the symptom is expected (`ragtide.drift.problems.groups`): a
    symptom that ends by then has no message. If the opening was sent, the end is sent too. Events older than `MAX_AGE`
    have a message only if they still hold: the problem is open, or its opening was sent and it is resolved.
    """
    unsent = _unsent(database, now)
    if not unsent:
        return
    known = load_problems(database, ids={one.problem_id for one in unsent}, every_episode=True)
    episodes = {EpisodeKey.of(one): one for one in known}
    muted = {one.problem_id for one in known if one.is_muted(now)}
    new = {EpisodeKey.of(one) for one in known if _is_new(one, now - group_wait)}
    explained = _explained_episodes(database, known, now)
    due = [
        one
        for one in unsent
        if one.problem_id not in muted
        and (one.is_known or one.key not in explained | new)
        and _is_current(one, episodes.get(one.key))
    ][: outbox.MOST]
    if not due:
        return
    old = {one.event_id for one in due if one.is_old and one.event in _OPENING_EVENTS}
    events = [
        _with_details_of(event, episodes[EpisodeKey(event.problem_id, event.episode)], event.event_id in old)
        for event in _load_events(database, due)
    ]
    outbox.enqueue_messages(database, [message_of(event, now) for event in events], epoch)


def _unsent(database: Database, now: datetime) -> list[_UnsentEvent]:
    """Load events without a message, the oldest first."""
    rows = database.rows(
        f"SELECT {', '.join(_UnsentEvent._fields[:-2])}, "
        "concat(problem_id, ':', toString(episode)) IN (SELECT subject FROM outbox) AS is_known, "
        "recorded_at < {since:DateTime64(3, 'UTC')} AS is_old FROM problem_events FINAL "
        "WHERE event IN {events:Array(String)} AND (NOT is_old OR (event = 'resolved' AND is_known) "
        f"OR (event IN {sql.texts(_OPENING_EVENTS)} AND {UNRESOLVED})) "
        "AND concat({target:String}, ':', event_id) NOT IN (SELECT message_id FROM outbox) ORDER BY at, event_id",
        {"events": list(_ACTIONS), "since": now - MAX_AGE, "target": GRAFANA},
    )
    return [_UnsentEvent(**row) for row in rows]


def _explained_episodes(database: Database, known: Sequence[Problem], now: datetime) -> set[EpisodeKey]:
    """Return episodes of symptoms whose parent says enough: it is as severe, and open or resolved not long ago."""
    since = min(one.first_seen_at for one in known) - LONGEST_EXPECTED
    by_key = {EpisodeKey.of(one): one for one in (*known, *load_recent_problems(database, since))}
    return {key for key, parent in parents(by_key.values(), now).items() if speaks_for(parent, by_key[key])}


def _is_new(problem: Problem, since: datetime) -> bool:
    """Whether the problem opened after `since` and may be announced a little later."""
    return problem.state == "open" and problem.openings_at[-1] > since and not is_leak(problem)


def _is_current(one: _UnsentEvent, problem: Problem | None) -> bool:
    """Whether the event still holds for the episode. Openings and ends must hold only if they are old."""
    if not one.is_old and _ACTIONS[one.event] != "update":
        return True
    if problem is None:
        return False
    if one.event == "resolved":
        return problem.resolved_at == one.at
    if problem.state != "open":
        return False
    if one.event == "explained":
        return read_attributes(one.attributes) == problem.cause
    return one.at >= problem.openings_at[-1]


def _load_events(database: Database, some: Sequence[_UnsentEvent]) -> Iterator[EventRow]:
    rows = database.rows(
        f"SELECT {', '.join(EventRow._fields)} FROM problem_events FINAL "
        "WHERE (problem_id, event_id) IN {events:Array(Tuple(String, String))} ORDER BY at, event_id",
        {"events": [(one.problem_id, one.event_id) for one in some]},
    )
    return (EventRow(**row) for row in rows)


def _with_details_of(event: EventRow, problem: Problem, is_old: bool) -> EventRow:
    """Add the root cause to the event; updates and old events get the problem's current details."""
    if is_old or _ACTIONS[event.event] == "update":
        details = {name: getattr(problem, name) for name in _DETAIL_FIELDS}
        event = event._replace(**details, attributes=json.dumps(problem.attributes))
    return event._replace(description=f"{event.description} {problem.explanation}".rstrip())


def message_of(event: EventRow, now: datetime) -> Message:
    """Make the message of an event; the same event always has the same message but for `written_at`."""
    action = _ACTIONS[event.event]
    start = min(evidence_of(event.attributes).since or event.at, event.at)
    subject = f"{event.problem_id}:{event.episode}"
    named = {"app": event.app, "environment": event.environment, "metric": event.metric}
    named |= {
        "type": event.type,
        "severity": event.severity,
        "group": _shorten(group_key(event)),
        "id": subject,
    }
    tags = ["ragtide", "problem", *(_tag(name, value) for name, value in named.items() if value)]
    return Message(
        message_id=f"{GRAFANA}:{event.event_id}",
        action=action,
        thread=subject,
        at=event.at,
        start=start,
        end=max(event.at, start + _SHORTEST_REGION),
        text=_text(event),
        tags=(*tags, *(["resolved"] if action == "close" else [])),
        written_at=now,
    )


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
