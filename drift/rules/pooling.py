"""Pool windows until they have the minimum sample, and pick the intervals that are due. Pure.

Windows are pooled forward, without overlap; each (interval, revision) is evaluated once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple, TypeVar

from ragtide.drift.rules.model import Window
from ragtide.drift.stats import Number

Key = TypeVar("Key")


def pool_forward(windows: Iterable[Window], min_sample: int, samples: Callable[[Window], int]) -> Iterator[Window]:
    """Pool windows in order of time until each pool has the minimum sample. A last pool below it is left out."""
    pooled: Window | None = None
    for window in sorted(windows, key=lambda w: w.start):
        pooled = window if pooled is None else merge(pooled, window)
        if samples(pooled) >= min_sample:
            yield pooled
            pooled = None


def merge(one: Window, other: Window) -> Window:
    """Add two windows."""
    return replace(
        one,
        start=min(one.start, other.start),
        end=max(one.end, other.end),
        seen=one.seen + other.seen,
        applicable=one.applicable + other.applicable,
        scored=one.scored + other.scored,
        failed=one.failed + other.failed,
        sum=one.sum + other.sum,
        bins=_sums(one.bins, other.bins),
        parts=_sums(one.parts, other.parts),
        revision=one.revision + other.revision,
        frozen=one.frozen and other.frozen,
        changed=one.changed or other.changed,
        incomplete=one.incomplete or other.incomplete,
    )


def _sums(one: Mapping[Key, Number], other: Mapping[Key, Number]) -> dict[Key, Number]:
    added = dict(one)
    for key, number in other.items():
        added[key] = added[key] + number if key in added else number
    return added


class JudgedInterval(NamedTuple):
    """An interval [start, end) that has a verdict, and the revision that was evaluated."""

    start: int
    end: int
    revision: int


def due(
    windows: Iterable[Window],
    verdict_intervals: Sequence[JudgedInterval],
    min_sample: int,
    samples: Callable[[Window], int],
) -> Iterator[Window]:
    """Pool the windows that are due for evaluation, each (interval, revision) once.

    An interval with a verdict keeps its bounds, even if it has too few records left. Other windows are pooled forward,
    never across an interval with a verdict.
    """
    intervals: dict[JudgedInterval, list[Window]] = {interval: [] for interval in sorted(verdict_intervals)}
    waiting: list[Window] = []
    for window in sorted(windows, key=lambda w: w.start):
        interval = next((s for s in intervals if s.start <= window.start < s.end), None)
        if interval is not None:
            if waiting:
                yield from pool_forward(waiting, min_sample, samples)
                waiting = []
            intervals[interval].append(window)
        elif not window.frozen:
            waiting.append(window)
    yield from pool_forward(waiting, min_sample, samples)
    for interval, inside in intervals.items():
        if any(window.changed for window in inside):
            whole = replace(reduce(merge, inside), start=interval.start, end=interval.end)
            if whole.revision != interval.revision:
                yield whole
