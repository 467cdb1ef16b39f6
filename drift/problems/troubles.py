"""The one door through which jobs raise problems: each tells what it sees at a place, by its own kind.

A job brings its own evidence and hysteresis, and tells again what it told before as often as it likes: what is known
already has no event. A place at which several kinds see trouble has one problem, which is over when all of them say so.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from drift.leadership import Term
from drift.problems.events import Account, Place, event_row, last_account, place_of
from drift.problems.folding import fold, load_events, load_problems
from drift.problems.problem import EventRow, Kind, Problem, problem_id
from drift.problems.turns import Turn, begins, ends, tells_more
from drift.settings import RuleSettings
from sinks.clickhouse.database import Database


class Trouble(NamedTuple):
    """A job sees trouble at a place; `account.kind` says how. The evidence is of [since, until) in event time."""

    place: Place
    account: Account
    since: datetime
    until: datetime


class Over(NamedTuple):
    """A kind sees no trouble at a place any more, by evidence up to `until`; where it saw none, nothing follows."""

    place: Place
    kind: Kind
    until: datetime


class Watched(NamedTuple):
    """What a look of a job read, in windows, records or runs, and the events that followed from it."""

    read: int
    events: Sequence[EventRow]


def tell(
    database: Database, told: Sequence[Trouble | Over], settings: RuleSettings, term: Term, now: datetime
) -> list[EventRow]:
    """The events that follow from what is told; stored on return. At most one `Trouble` or `Over` per place and kind.

    Trouble that is no news follows an open problem at most every `update_every_s` a kind, where `until` has moved on.
    `now` is the server's time, as jobs have it.
    """
    if not told:
        return []
    with term.deciding:
        known: dict[str, list[EventRow]] = {}
        for row in load_events(database, ids={problem_id(*one.place) for one in told}):
            known.setdefault(row.problem_id, []).append(row)
        events = follows(told, known, settings, term.epoch, now)
        database.insert("problem_events", events)
    return events


def follows(
    told: Sequence[Trouble | Over],
    known: Mapping[str, Sequence[EventRow]],
    settings: RuleSettings,
    epoch: int,
    now: datetime,
) -> list[EventRow]:
    """The events, where these are known already, by problem. Pure; the jobs and a dry run of rules ask alike."""
    rows = {id_: list(some) for id_, some in known.items()}
    events = []
    # Ends come last: else one kind's would resolve what another has.
    for one in sorted(told, key=lambda one: isinstance(one, Over)):
        own = rows.setdefault(problem_id(*one.place), [])
        if isinstance(one, Over):
            event = _over(one, own, settings.of(one.place.app), epoch, now)
        else:
            event = _seen(one, own, settings.of(one.place.app), epoch, now)
        if event is not None:
            own.append(event)
            events.append(event)
    return events


def standing(database: Database, kind: Kind) -> Mapping[Place, Problem]:
    """The open problems at whose places this kind sees trouble, as it told: what it may have to say is over."""
    return {place_of(one): one for one in load_problems(database, states=("open",)) if kind in one.holding}


def _seen(one: Trouble, rows: Sequence[EventRow], settings: RuleSettings, epoch: int, now: datetime) -> EventRow | None:
    kind = one.account.kind
    before = _last_episode(rows)
    if before is not None and kind in before.holding:
        turn = _more(one, before, settings, now)
    elif _is_accepted(one, rows):
        turn = None
    else:
        turn = begins(problem_id(*one.place), kind, before, settings, now)
    span = {"since": one.since.isoformat(), "until": one.until.isoformat()}
    account = one.account._replace(attributes={**one.account.attributes, **span})
    return None if turn is None else event_row(one.place, turn, account, epoch)


def _more(one: Trouble, before: Problem, settings: RuleSettings, now: datetime) -> Turn | None:
    kind = one.account.kind
    said = before.voices[kind].attributes.get("until", "")
    is_news = one.until.isoformat() > said
    return tells_more(kind, before, settings, now, kind, one.until) if is_news else None


def _over(one: Over, rows: Sequence[EventRow], settings: RuleSettings, epoch: int, now: datetime) -> EventRow | None:
    before = _last_episode(rows)
    turn = None if before is None else ends(one.kind, before, settings, now)
    if before is None or turn is None:
        return None
    return event_row(one.place, turn, last_account(before, one.kind, until=one.until.isoformat()), epoch)


def _last_episode(rows: Sequence[EventRow]) -> Problem | None:
    return max(fold(rows), key=lambda episode: episode.episode, default=None)


def _is_accepted(one: Trouble, rows: Sequence[EventRow]) -> bool:
    """Whether the evidence is from before a person said that this is the new normal."""
    return any(
        row.event == "accepted" and one.account.kind in json.loads(row.attributes)["kinds"] and one.until <= row.at
        for row in rows
    )
