"""Check dead letters: a problem opens if a topic has many in an hour, and several times the usual number.

The usual number is the hourly mean of the week before. The problem belongs to no application.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

import numpy as np

from ragtide.drift.checks.engine import Check, CheckContext, CumulativeCounts, Observation
from ragtide.drift.problems import Detection, ProblemKey, build_details
from ragtide.drift.settings import RuleSettings
from ragtide.drift.stats import calendar
from ragtide.drift.text import number, timestamp
from ragtide.sinks.clickhouse.database import Database

_LOOKBACK = timedelta(hours=1)
_BASELINE_LOOKBACK = timedelta(days=7)
_RECENT_MS, _BASELINE_MS = (int(interval.total_seconds()) * 1000 for interval in (_LOOKBACK, _BASELINE_LOOKBACK))
_USUAL_FACTOR = 3.0  # times the usual number
_CLEAR_FRACTION = 0.5
_REASONS = 5


class _DeadLetterCount(NamedTuple):
    """Dead letters of a topic: in the last hour, usually in an hour, the first of the last hour, and their reasons."""

    topic: str
    recent: int
    usual: float
    first: datetime
    reasons: tuple[str, ...]


class DeadLetters(Check):
    """A topic has `rules.dead_letters` in an hour, and three times the usual number."""

    kind = "threshold"
    job = "dead_letters"
    rule = "dead_letters"

    @classmethod
    def owns(cls, key: ProblemKey) -> bool:
        """Exclude rules, which have the same kind."""
        return key.is_of_system("storage", "dead_letters")

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Observe every topic that had dead letters in the last hour."""
        for one in _load_counts(ctx.database, now):
            yield _observation(ctx, one.topic, one.recent, one.usual, partial(_detection, one, ctx.rules, now))

    def history(self, ctx: CheckContext, first: int, until: int) -> Iterator[tuple[int, Observation]]:
        """Observe at each end of a base window; dead letters of the week before `first` count."""
        instants = np.arange(first + ctx.windows.base_s, until + 1, ctx.windows.base_s)
        end = instants * 1000 + 1  # one of that very instant counts
        start, baseline_start = end - _RECENT_MS, end - _RECENT_MS - _BASELINE_MS
        for topic, letters in _letters(ctx.database, first * 1000 - _RECENT_MS - _BASELINE_MS, until * 1000).items():
            recent = letters.within(start, end)
            usual = letters.within(baseline_start, start) / (_BASELINE_MS / _RECENT_MS)
            for at, n, mean in zip(instants.tolist(), recent.tolist(), usual.tolist(), strict=True):
                yield at, _observation(ctx, topic, n, mean, partial(_past_detection, ctx, topic, at))


def _observation(
    ctx: CheckContext, topic: str, recent: int, usual: float, detection: Callable[[], Detection]
) -> Observation:
    limit = max(ctx.rules.dead_letters, _USUAL_FACTOR * usual)
    return Observation.of(
        ProblemKey.of_system("storage", "dead_letters", topic),
        bad=recent > 0 and recent >= limit,
        cleared=recent == 0 or recent < _CLEAR_FRACTION * limit,
        detection=detection,
        read=recent,
    )


def _past_detection(ctx: CheckContext, topic: str, at: int) -> Detection:
    """Read that hour again, as its run did."""
    now = calendar.utc(at)
    return _detection(next(one for one in _load_counts(ctx.database, now) if one.topic == topic), ctx.rules, now)


def _detection(one: _DeadLetterCount, rules: RuleSettings, now: datetime) -> Detection:
    key = ProblemKey.of_system("storage", "dead_letters", one.topic)
    usual = number(one.usual) if one.usual >= 1 else "fewer than 1"
    message = (
        f"{one.recent} records of topic {one.topic} became dead letters in the last hour (usually {usual}), "
        f"since {timestamp(one.first)}. Reasons: {', '.join(one.reasons)}."
    )
    attributes = {"value": one.recent, "baseline": one.usual, "wrong": one.recent, "reasons": list(one.reasons)}
    details = build_details(DeadLetters.kind, key, None, message, attributes, rules, severity="warning")
    return Detection(key, details, one.first, now)


def _letters(database: Database, first_ms: int, until_ms: int) -> dict[str, CumulativeCounts]:
    """Load counts by topic in [first, until], milliseconds since 1970."""
    rows = database.rows(
        "SELECT topic, arraySort(groupArray((at, n))) AS letters FROM ("
        "SELECT topic, toUnixTimestamp64Milli(ingested_at) AS at, count() AS n FROM dead_letters FINAL "
        f"WHERE run_id = 'live' AND at >= {first_ms} AND at <= {until_ms} GROUP BY topic, at"
        ") GROUP BY topic ORDER BY topic"
    )
    return {row["topic"]: CumulativeCounts.of(row["letters"]) for row in rows}


def _load_counts(database: Database, now: datetime) -> list[_DeadLetterCount]:
    """Count the dead letters of each topic that had any in the last hour."""
    rows = database.rows(
        f"""
        SELECT topic, sum(recent) AS count, sum(older) / {_BASELINE_LOOKBACK / _LOOKBACK} AS usual, minIf(first,
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
        {"hour": now - _LOOKBACK, "week": now - _LOOKBACK - _BASELINE_LOOKBACK, "now": now},
    )
    return [
        _DeadLetterCount(row["topic"], row["count"], row["usual"], row["first"], tuple(row["reasons"])) for row in rows
    ]
