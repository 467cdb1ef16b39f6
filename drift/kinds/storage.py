"""A disk of ClickHouse that is nearly full, and dead letters that are more than usual, are problems of no application.

Each is looked for by itself: who may not read how full disks are is told of dead letters nevertheless.
Dead letters of an hour are more than usual where they are several times the mean of the hours of the week before; they
are told by topic, with their reasons.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from drift.leadership import Term
from drift.phrases import moment, number, percent
from drift.problems.accounts import account_of
from drift.problems.events import Place, place_of_none
from drift.problems.problem import Kind
from drift.problems.troubles import Over, Trouble, Watched, standing, tell
from drift.settings import RuleSettings, Severity
from sinks.clickhouse.database import Database
from sinks.clickhouse.disks import Disk, disks

_KIND: Kind = "threshold"
_ROOM = 0.03  # of the disk: so much less than the limit must be used before it is over
_NEARLY_ALL = 0.95  # used: high
JUDGED = timedelta(hours=1)
USUAL = timedelta(days=7)
_TIMES = 3.0  # the usual number
RELIEF = 0.5
_REASONS = 5


class Letters(NamedTuple):
    """Dead letters of a topic: of the last hour, an hour's mean of the week before, the first of the last hour."""

    topic: str
    recent: int
    usual: float
    first: datetime
    reasons: tuple[str, ...]


def watch_disks(database: Database, rules: RuleSettings, term: Term, now: datetime) -> Watched:
    """What disks say is told when this returns; raises `ConfigError` where the user may not read how full they are.

    `now` is the server's time.
    """
    found = disks(database)
    return _told(database, "disk", len(found), _full(found, rules, now), rules, term, now)


def watch_dead_letters(database: Database, rules: RuleSettings, term: Term, now: datetime) -> Watched:
    """What dead letters say is told when this returns; `now` is the server's time."""
    found = letters_of(database, now)
    read = sum(one.recent for one in found)
    return _told(database, "dead_letters", read, _many(found, rules, now), rules, term, now)


def _told(
    database: Database,
    segment: str,
    read: int,
    found: Iterable[tuple[Place, Trouble | None]],
    rules: RuleSettings,
    term: Term,
    now: datetime,
) -> Watched:
    told = {
        place: Over(place, _KIND, now)
        for place in standing(database, _KIND)
        if place.aspect == "storage" and place.segment == segment
    }
    troubles = []
    for place, trouble in found:
        told.pop(place, None)
        if trouble is not None:
            troubles.append(trouble)
    return Watched(read, tell(database, [*troubles, *told.values()], rules, term, now))


def _full(found: Iterable[Disk], rules: RuleSettings, now: datetime) -> Iterator[tuple[Place, Trouble | None]]:
    """Those that are nearly full, or were and have not enough room yet (None)."""
    for disk in found:
        place, used = _place("disk", disk.name), disk.used
        if used > rules.disk_limit:
            left = f"{number(disk.free_bytes / 2**30)} GiB are free"
            said = f"Disk {disk.name} of ClickHouse is {percent(used)} full: {left}."
            told = {"value": used, "limit": rules.disk_limit, "free_bytes": disk.free_bytes}
            severity: Severity = "high" if used >= _NEARLY_ALL else "medium"
            account = account_of(_KIND, place, None, said, told, rules, severity=severity)
            yield place, Trouble(place, account, now, now)
        elif used > rules.disk_limit - _ROOM:
            yield place, None


def _many(found: Iterable[Letters], rules: RuleSettings, now: datetime) -> Iterator[tuple[Place, Trouble | None]]:
    """Topics with many, or that had and have not few enough yet (None)."""
    for one in found:
        if are_many(one.recent, one.usual, rules.dead_letters, 1.0):
            yield place_of_letters(one.topic), trouble_of(one, rules, now)
        elif are_many(one.recent, one.usual, rules.dead_letters, RELIEF):
            yield place_of_letters(one.topic), None


def are_many(recent: int, usual: float, least: int, part: float) -> bool:
    """Whether an hour's dead letters have this part of what is too many."""
    return recent >= part * max(least, _TIMES * usual)


def place_of_letters(topic: str) -> Place:
    """Where too many dead letters of a topic are told."""
    return _place("dead_letters", topic)


def trouble_of(one: Letters, rules: RuleSettings, now: datetime) -> Trouble:
    """What is said of too many dead letters."""
    place = place_of_letters(one.topic)
    usual = f"{number(one.usual)} are usual" if one.usual >= 1 else "hardly any are usual"
    said = (
        f"{one.recent} records of topic {one.topic} became dead letters within an hour, {usual}: "
        f"{', '.join(one.reasons)}; since {moment(one.first)}."
    )
    told = {"value": one.recent, "baseline": one.usual, "wrong": one.recent, "reasons": list(one.reasons)}
    account = account_of(_KIND, place, None, said, told, rules, severity="medium")
    return Trouble(place, account, one.first, now)


def letters_of(database: Database, now: datetime) -> list[Letters]:
    """Of each topic that had any in the hour before."""
    rows = database.rows(
        f"""
        SELECT topic, sum(recent) AS count, sum(older) / {USUAL / JUDGED} AS usual, minIf(first, recent > 0) AS first,
            arrayMap(one -> concat(one.2, ' ', toString(-one.1)), arraySlice(
                arraySort(groupArrayIf((-toInt64(recent), reason), recent > 0)), 1, {_REASONS})) AS reasons
        FROM (
            SELECT topic, toString(reason) AS reason, countIf(ingested_at > {{hour:DateTime64(3, 'UTC')}}) AS recent,
                countIf(ingested_at <= {{hour:DateTime64(3, 'UTC')}}) AS older,
                minIf(ingested_at, ingested_at > {{hour:DateTime64(3, 'UTC')}}) AS first
            FROM dead_letters FINAL
            WHERE run_id = 'live' AND ingested_at > {{week:DateTime64(3, 'UTC')}}
                AND ingested_at <= {{now:DateTime64(3, 'UTC')}}
            GROUP BY topic, reason
        )
        GROUP BY topic HAVING count > 0 ORDER BY topic""",
        {"hour": now - JUDGED, "week": now - JUDGED - USUAL, "now": now},
    )
    return [Letters(row["topic"], row["count"], row["usual"], row["first"], tuple(row["reasons"])) for row in rows]


def _place(what: str, name: str) -> Place:
    return place_of_none("storage", what, name)
