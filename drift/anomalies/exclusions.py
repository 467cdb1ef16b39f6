"""Exclude history that is no example of a series' normal level: what an operator replaced, and past anomalies."""

from collections.abc import Iterable, Sequence

import numpy as np

from ragtide.drift.anomalies.batch import AlarmInterval
from ragtide.drift.anomalies.queries import TickRange
from ragtide.drift.array_types import Flags, Integers
from ragtide.drift.detectors import MAX_OUTLIERS
from ragtide.drift.stats import calendar

MAX_EXCLUDED = 1 - MAX_OUTLIERS  # of a history: then the anomaly is how the series is
_MAX_LENGTH_S = 6 * calendar.HOUR_S
_MIN_DAYS = 4


def before_accepted(basis: Integers, ticks: TickRange) -> Flags:
    """Flag the ticks [S, T] before a change that was accepted at `basis`, if that is a time."""
    start = np.where(basis > 0, -(-basis // ticks.tick_s) * ticks.tick_s, ticks.first)
    flags: Flags = ticks.ticks < start[:, None]
    return flags


def excluded_ticks(
    anomalies: Iterable[tuple[int, int, int]], basis: Integers, ticks: TickRange, before: Flags, present: Flags
) -> Flags:
    """Flag the ticks [S, T] in anomalies (series, since, until), of history with records at `present`.

    An anomaly that was accepted counts as normal. So do anomalies in nearly all records since then: the series would
    never be monitored otherwise.
    """
    excluded = np.zeros(present.shape, bool)
    for place, since, until in anomalies:
        if not since <= basis[place] < until:
            first, last = ((at - ticks.first) // ticks.tick_s for at in (since, until + ticks.tick_s - 1))
            excluded[place, max(first, 0) : max(last, 0)] = True
    since_then = present & ~before
    normal = (excluded & since_then).sum(axis=1) > MAX_EXCLUDED * since_then.sum(axis=1)
    found: Flags = excluded & (before | ~normal[:, None])
    return found


def without_recurring(intervals: Sequence[AlarmInterval]) -> list[AlarmInterval]:
    """Leave out short alarms of a series that overlap in time of day on four days.

    Otherwise a new job of every night would be excluded from each history and alarm for ever.
    """
    return [one for one in intervals if not (_is_short(one) and _recurring_days(one, intervals) >= _MIN_DAYS)]


def _is_short(one: AlarmInterval) -> bool:
    return 0 < one.until <= one.since + _MAX_LENGTH_S


def _recurring_days(one: AlarmInterval, intervals: Sequence[AlarmInterval]) -> int:
    """Count the days, centred on it, on which the series has a short alarm that overlaps in time of day."""
    alike = (other for other in intervals if other.series == one.series and _is_short(other) and _overlaps(one, other))
    return len({(other.since - one.since + calendar.DAY_S // 2) // calendar.DAY_S for other in alike})


def _overlaps(one: AlarmInterval, other: AlarmInterval) -> bool:
    """Whether the times of day of two alarms overlap."""
    later = (other.since - one.since) % calendar.DAY_S
    return later < one.until - one.since or calendar.DAY_S - later < other.until - other.since
