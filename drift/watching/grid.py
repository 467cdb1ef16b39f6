"""Ticks: windows pooled to five minutes, on a grid that whole hours lie on. Times in seconds since 1970."""

from datetime import UTC, datetime

HOUR_S = 3600
DAY_S = 86_400
_TICK_S = 300
_HOURS = 24


def tick_s(base_s: int) -> int:
    """The longest multiple of the base windows, of five minutes at most, that divides an hour; else the base itself."""
    sizes = range(_TICK_S // base_s * base_s, 0, -base_s)
    return next((size for size in sizes if HOUR_S % size == 0), base_s)


def floor(at: float, size_s: int) -> int:
    """The start of the stretch of that size that `at` lies in."""
    return int(at) // size_s * size_s


def ceiling(at: float, size_s: int) -> int:
    """The least whole multiple that is not before `at`."""
    return -floor(-at, size_s)


def span_s(lateness_s: float) -> int:
    """How far back a state is kept, where closed windows change for so long: whole hours, at least one."""
    return ceiling(max(lateness_s, HOUR_S), HOUR_S)


def learning_s(number: int, tick_s: int) -> int:
    """When the batch of that number learns its baselines, after midnight in UTC: at an hour of its own, on a tick."""
    return ceiling(number % _HOURS * HOUR_S, tick_s) % DAY_S


def time(at: int) -> datetime:
    """As an aware time."""
    return datetime.fromtimestamp(at, UTC)
