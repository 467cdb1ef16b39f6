"""A disk of ClickHouse that is nearly full, and dead letters that are more than usual, are problems of no application.

Each is looked for by itself: who may not read how full disks are is told of dead letters nevertheless.
Dead letters of an hour are more than usual where they are several times the mean of the hours of the week before; they
are told by topic, with their reasons.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from ragtide.drift.leadership import Term
from ragtide.drift.problems.model import Kind
from ragtide.drift.problems.report import (
    CheckResult,
    Clear,
    Detection,
    ProblemKey,
    build_details,
    key_of_system,
    open_detections,
    report,
)
from ragtide.drift.settings import RuleSettings, Severity
from ragtide.drift.text import number, percent, timestamp
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.disks import Disk, disks

_KIND: Kind = "threshold"
_CLEAR_MARGIN = 0.03  # of the disk: so much less than the limit must be used before it is over
_CRITICAL_SHARE = 0.95  # of the disk used: critical
LOOKBACK = timedelta(hours=1)
BASELINE_LOOKBACK = timedelta(days=7)
_USUAL_FACTOR = 3.0  # the usual number
CLEAR_FRACTION = 0.5
_REASONS = 5


class DeadLetterCount(NamedTuple):
    """Dead letters of a topic: of the last hour, an hour's mean of the week before, the first of the last hour."""

    topic: str
    recent: int
    usual: float
    first: datetime
    reasons: tuple[str, ...]


def check_disks(database: Database, rules: RuleSettings, term: Term, now: datetime) -> CheckResult:
    """What disks say is told when this returns; raises `ConfigError` where the user may not read how full they are.

    `now` is the server's time.
    """
    found = disks(database)
    return _report(database, "disk", len(found), _full_disks(found, rules, now), rules, term, now)


def check_dead_letters(database: Database, rules: RuleSettings, term: Term, now: datetime) -> CheckResult:
    """What dead letters say is told when this returns; `now` is the server's time."""
    found = dead_letter_counts(database, now)
    read = sum(one.recent for one in found)
    return _report(database, "dead_letters", read, _topics_above_usual(found, rules, now), rules, term, now)


def _report(
    database: Database,
    segment: str,
    read: int,
    found: Iterable[tuple[ProblemKey, Detection | None]],
    rules: RuleSettings,
    term: Term,
    now: datetime,
) -> CheckResult:
    told = {
        key: Clear(key, _KIND, now)
        for key in open_detections(database, _KIND)
        if key.aspect == "storage" and key.segment == segment
    }
    detections = []
    for key, detection in found:
        told.pop(key, None)
        if detection is not None:
            detections.append(detection)
    return CheckResult(read, report(database, [*detections, *told.values()], rules, term, now))


def _full_disks(
    found: Iterable[Disk], rules: RuleSettings, now: datetime
) -> Iterator[tuple[ProblemKey, Detection | None]]:
    """Those that are nearly full, or were and have not enough room yet (None)."""
    for disk in found:
        key, used = _key("disk", disk.name), disk.used
        if used > rules.disk_limit:
            left = f"{number(disk.free_bytes / 2**30)} GiB are free"
            message = f"Disk {disk.name} of ClickHouse is {percent(used)} full: {left}."
            told = {"value": used, "limit": rules.disk_limit, "free_bytes": disk.free_bytes}
            severity: Severity = "critical" if used >= _CRITICAL_SHARE else "warning"
            details = build_details(_KIND, key, None, message, told, rules, severity=severity)
            yield key, Detection(key, details, now, now)
        elif used > rules.disk_limit - _CLEAR_MARGIN:
            yield key, None


def _topics_above_usual(
    found: Iterable[DeadLetterCount], rules: RuleSettings, now: datetime
) -> Iterator[tuple[ProblemKey, Detection | None]]:
    """Topics with many, or that had and have not few enough yet (None)."""
    for one in found:
        if above_usual(one.recent, one.usual, rules.dead_letters, 1.0):
            yield key_of_dead_letters(one.topic), detection_of(one, rules, now)
        elif above_usual(one.recent, one.usual, rules.dead_letters, CLEAR_FRACTION):
            yield key_of_dead_letters(one.topic), None


def above_usual(recent: int, usual: float, min_count: int, fraction: float) -> bool:
    """Whether an hour's dead letters have this part of what is too many."""
    return recent >= fraction * max(min_count, _USUAL_FACTOR * usual)


def key_of_dead_letters(topic: str) -> ProblemKey:
    """Where too many dead letters of a topic are told."""
    return _key("dead_letters", topic)


def detection_of(one: DeadLetterCount, rules: RuleSettings, now: datetime) -> Detection:
    """What is said of too many dead letters."""
    key = key_of_dead_letters(one.topic)
    usual = f"{number(one.usual)} are usual" if one.usual >= 1 else "hardly any are usual"
    message = (
        f"{one.recent} records of topic {one.topic} became dead letters within an hour, {usual}: "
        f"{', '.join(one.reasons)}; since {timestamp(one.first)}."
    )
    told = {"value": one.recent, "baseline": one.usual, "wrong": one.recent, "reasons": list(one.reasons)}
    details = build_details(_KIND, key, None, message, told, rules, severity="warning")
    return Detection(key, details, one.first, now)


def dead_letter_counts(database: Database, now: datetime) -> list[DeadLetterCount]:
    """Of each topic that had any in the hour before."""
    rows = database.rows(
        f"""
        SELECT topic, sum(recent) AS count, sum(older) / {BASELINE_LOOKBACK / LOOKBACK} AS usual, minIf(first,
        recent > 0) AS first,
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
        {"hour": now - LOOKBACK, "week": now - LOOKBACK - BASELINE_LOOKBACK, "now": now},
    )
    return [
        DeadLetterCount(row["topic"], row["count"], row["usual"], row["first"], tuple(row["reasons"])) for row in rows
    ]


def _key(what: str, name: str) -> ProblemKey:
    return key_of_system("storage", what, name)
