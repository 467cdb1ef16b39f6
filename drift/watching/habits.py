"""Alarms that come at the same time of day again and again: how a series is, which its baseline has to learn."""

from collections.abc import Sequence

from drift.watching import grid
from drift.watching.batch import Episode

_SHORT_S = 6 * grid.HOUR_S
_DAYS = 4


def passing(episodes: Sequence[Episode]) -> list[Episode]:
    """Without those of a habit: short ones of a series that overlap in time of day, on four days. What is left out of
    each history anew, such as a new job of every night, would alarm for ever.
    """
    return [one for one in episodes if not (_short(one) and _days(one, episodes) >= _DAYS)]


def _short(one: Episode) -> bool:
    return 0 < one.until <= one.since + _SHORT_S


def _days(one: Episode, episodes: Sequence[Episode]) -> int:
    """On how many days, counted around it, the series has a short one that overlaps in time of day."""
    alike = (other for other in episodes if other.series == one.series and _short(other) and _overlap(one, other))
    return len({(other.since - one.since + grid.DAY_S // 2) // grid.DAY_S for other in alike})


def _overlap(one: Episode, other: Episode) -> bool:
    """Whether the times of day of two episodes overlap."""
    later = (other.since - one.since) % grid.DAY_S
    return later < one.until - one.since or grid.DAY_S - later < other.until - other.since
