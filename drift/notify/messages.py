"""Find the events of problems that a channel announces, and store a message in table `outbox` for each.

Opened, reopened and resolved carry the details of the event. Updates of an open problem carry its current details. A
message has its event's id, so that it is stored once.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.drift.attributes import read_attributes
from ragtide.drift.notify import outbox
from ragtide.drift.notify.channel import ESCALATED, Change, Channel, message_of
from ragtide.drift.problems import (
    LONGEST_EXPECTED,
    UNRESOLVED,
    EpisodeKey,
    EventRow,
    Problem,
    is_leak,
    load_events,
    load_problems,
    load_recent_problems,
    parents,
    speaks_for,
)
from ragtide.drift.text import timestamp
from ragtide.sinks.clickhouse.database import Database

_DETAIL_FIELDS = ("type", "severity", "code", "standards", "description", "actions", "examples", "rule_id")
MAX_AGE = timedelta(days=7)  # a target that is configured later gets only what still holds, not years of history
_OPENING_EVENTS = ("opened", "reopened")
_REPORTS = sql.texts((*_OPENING_EVENTS, "kind_opened", "updated"))
_ESCALATION_AGE = timedelta(hours=6)  # how long ago a severity may have changed while no notifications ran

# Reports are compared with the one before them; those of open problems come every few minutes.
_ESCALATIONS = f"""(event != '{ESCALATED}' OR (problem_id, event_id) IN (
    SELECT problem_id, event_id FROM (
        SELECT problem_id, event_id, event, severity, recorded_at, lagInFrame(severity, 1, severity) OVER (
            PARTITION BY problem_id, episode, kind ORDER BY at ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS before
        FROM problem_events FINAL
        WHERE event IN {_REPORTS} AND recorded_at >= {{escalation:DateTime64(3, 'UTC')}} - INTERVAL 1 HOUR)
    WHERE event = '{ESCALATED}' AND severity != before AND recorded_at >= {{escalation:DateTime64(3, 'UTC')}}))"""


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


def enqueue(
    database: Database, channel: Channel, epoch: int, now: datetime, group_wait: timedelta = timedelta()
) -> None:
    """Store messages for the oldest `outbox.MOST` events without one that the channel announces.

    Events of muted problems wait until the mute ends. A new problem waits for `group_wait`, because the one that
    explains it may open after it; a leak never waits. Events of a symptom that is no more severe than its parent wait
    until the parent resolves, and then for as long as the symptom is expected (`ragtide.drift.problems.groups`): a
    symptom that ends by then has no message. If the opening was sent, the end is sent too. A channel that takes all
    waits for nothing. Events older than `MAX_AGE` have a message only if they still hold: the problem is open, or its
    opening was sent and it is resolved.
    """
    unsent = _unsent(database, channel, now)
    if not unsent:
        return
    known = load_problems(database, ids={one.problem_id for one in unsent}, every_episode=True)
    episodes = {EpisodeKey.of(one): one for one in known}
    muted = {one.problem_id for one in known if one.is_muted(now)}
    new = {EpisodeKey.of(one) for one in known if _is_new(one, now - group_wait)}
    explained = _explained_episodes(database, known, now)
    silent = {key for key, parent in explained.items() if speaks_for(parent, episodes[key])}
    due = [
        one
        for one in unsent
        if (channel.takes_all or (one.problem_id not in muted and (one.is_known or one.key not in silent | new)))
        and one.key in episodes
        and _is_current(channel, one, episodes[one.key])
    ][: outbox.MOST]
    if not due:
        return
    messages = (message_of(channel, one, now) for one in _changes(database, channel, due, episodes, explained))
    outbox.enqueue_messages(database, [one for one in messages if one is not None], epoch)


def silenced(database: Database, problem: Problem, now: datetime) -> str:
    """Say why a problem is not announced now: it is muted or a symptom; empty if it is announced."""
    if problem.is_muted(now):
        until = "" if problem.muted_until is None else f" until {timestamp(problem.muted_until)}"
        return f"muted by {problem.muted_by}{until}"
    parent = _explained_episodes(database, [problem], now).get(EpisodeKey.of(problem))
    if parent is not None and speaks_for(parent, problem):
        return f"a symptom of problem {parent.problem_id}, which is announced"
    return ""


def load_changes(database: Database, channel: Channel, problem: Problem, now: datetime) -> list[Change]:
    """Load the changes of an episode that the channel announces, in order, each with the problem's current details."""
    parent = _explained_episodes(database, [problem], now).get(EpisodeKey.of(problem))
    events = load_events(database, problem=problem.problem_id)
    found = [one for one in events if one.episode == problem.episode and one.event in channel.actions]
    found = [one for one in found if one.event != ESCALATED]  # most of them change figures only
    return [
        Change(_with_details_of(one, problem, True), problem, "" if parent is None else parent.problem_id, number == 0)
        for number, one in enumerate(sorted(found, key=lambda one: (one.at, one.event_id)))
    ]


def _unsent(database: Database, channel: Channel, now: datetime) -> list[_UnsentEvent]:
    """Load events without a message, the oldest first."""
    condition = channel.condition()
    escalations = _ESCALATIONS if ESCALATED in channel.actions else "true"
    rows = database.rows(
        f"SELECT {', '.join(_UnsentEvent._fields[:-2])}, known.subject != '' AS is_known, "
        "is_known AND at > known.first_at AS is_later, "
        "recorded_at < {since:DateTime64(3, 'UTC')} AS is_old FROM problem_events FINAL "
        "LEFT JOIN (SELECT subject, min(at) AS first_at FROM outbox WHERE target = {target:String} GROUP BY subject) "
        "AS known ON concat(problem_id, ':', toString(episode)) = known.subject "
        "WHERE event IN {events:Array(String)} AND (NOT is_old OR (event = 'resolved' AND is_known) "
        f"OR (event IN {sql.texts(_OPENING_EVENTS)} AND {UNRESOLVED})) "
        "AND concat({target:String}, ':', event_id) NOT IN "
        "(SELECT message_id FROM outbox WHERE target = {target:String}) "
        f"AND ({condition.sql}) AND {escalations} ORDER BY at, event_id",
        {
            "events": list(channel.actions),
            "since": now - MAX_AGE,
            "escalation": now - _ESCALATION_AGE,
            "target": channel.name,
            **condition.bound,
        },
    )
    return [_UnsentEvent(**{name: row[name] for name in _UnsentEvent._fields}) for row in rows]


def _explained_episodes(database: Database, known: Sequence[Problem], now: datetime) -> Mapping[EpisodeKey, Problem]:
    """Return the parent of each symptom among these problems: it is open, or resolved not long ago."""
    since = min(one.first_seen_at for one in known) - LONGEST_EXPECTED if known else now
    by_key = {EpisodeKey.of(one): one for one in (*load_recent_problems(database, since), *known)}
    wanted = {EpisodeKey.of(one) for one in known}
    return {key: parent for key, parent in parents(by_key.values(), now).items() if key in wanted}


def _is_new(problem: Problem, since: datetime) -> bool:
    """Whether the problem opened after `since` and may be announced a little later."""
    return problem.state == "open" and problem.openings_at[-1] > since and not is_leak(problem)


def _is_current(channel: Channel, one: _UnsentEvent, problem: Problem) -> bool:
    """Whether the event still holds for the episode. Openings and ends must hold only if they are old."""
    if not one.is_old and channel.actions[one.event] != "update":
        return True
    if one.event == "resolved":
        return problem.resolved_at == one.at
    if problem.state != "open":
        return False
    if one.event == "explained":
        return read_attributes(one.attributes) == problem.cause
    return one.at >= problem.openings_at[-1]


def _changes(
    database: Database,
    channel: Channel,
    due: Sequence[_UnsentEvent],
    episodes: Mapping[EpisodeKey, Problem],
    explained: Mapping[EpisodeKey, Problem],
) -> Iterator[Change]:
    """Load the events, and add the details that each announces."""
    old = {one.event_id for one in due if one.is_old and one.event in _OPENING_EVENTS}
    announced = {one.key for one in due if one.is_known}
    for event in _load_events(database, due):
        key = EpisodeKey(event.problem_id, event.episode)
        problem, parent = episodes[key], explained.get(key)
        is_current = event.event_id in old or channel.actions[event.event] == "update"
        detailed = _with_details_of(event, problem, is_current)
        yield Change(detailed, problem, "" if parent is None else parent.problem_id, key not in announced)
        announced.add(key)


def _load_events(database: Database, some: Sequence[_UnsentEvent]) -> Iterator[EventRow]:
    rows = database.rows(
        f"SELECT {', '.join(EventRow._fields)} FROM problem_events FINAL "
        "WHERE (problem_id, event_id) IN {events:Array(Tuple(String, String))} ORDER BY at, event_id",
        {"events": [(one.problem_id, one.event_id) for one in some]},
    )
    return (EventRow(**row) for row in rows)


def _with_details_of(event: EventRow, problem: Problem, is_current: bool) -> EventRow:
    """Add the root cause to the event; updates and old events get the problem's current details."""
    if is_current:
        details = {name: getattr(problem, name) for name in _DETAIL_FIELDS}
        event = event._replace(**details, attributes=json.dumps(problem.attributes))
    return event._replace(description=f"{event.description} {problem.explanation}".rstrip())
