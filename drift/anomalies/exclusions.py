"""Alarms that come at the same time of day again and again: how a series is, which its baseline has to learn."""

from collections.abc import Sequence

from ragtide.drift.anomalies.batch import AlarmInterval
from ragtide.drift.stats import calendar

_MAX_LENGTH_S = 6 * calendar.HOUR_S
_MIN_DAYS = 4


def without_recurring(episodes: Sequence[AlarmInterval]) -> list[AlarmInterval]:
    """Without those of a habit: short ones of a series that overlap in time of day, on four days. What is left out of
    each history anew, such as a new job of every night, would alarm for ever.
    """
    return [one for one in episodes if not (_is_short(one) and _recurring_days(one, episodes) >= _MIN_DAYS)]


def _is_short(one: AlarmInterval) -> bool:
    return 0 < one.until <= one.since + _MAX_LENGTH_S


def _recurring_days(one: AlarmInterval, episodes: Sequence[AlarmInterval]) -> int:
    """On how many days, counted around it, the series has a short one that overlaps in time of day."""
    alike = (other for other in episodes if other.series == one.series and _is_short(other) and _overlaps(one, other))
    return len({(other.since - one.since + calendar.DAY_S // 2) // calendar.DAY_S for other in alike})


def _overlaps(one: AlarmInterval, other: AlarmInterval) -> bool:
    """Whether the times of day of two episodes overlap."""
    later = (other.since - one.since) % calendar.DAY_S
    return later < one.until - one.since or calendar.DAY_S - later < other.until - other.since
