"""Windows with too few records are pooled forward, without overlap, until the minimum sample is reached."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from drift.rules.series import Window

Key = TypeVar("Key")
Number = TypeVar("Number", int, float)


def pools(windows: Iterable[Window], min_sample: int, samples: Callable[[Window], int]) -> Iterator[Window]:
    """The windows in order of time, each alone where it has enough; the last ones wait where they have too few."""
    pooled: Window | None = None
    for window in sorted(windows, key=lambda w: w.start):
        pooled = window if pooled is None else together(pooled, window)
        if samples(pooled) >= min_sample:
            yield pooled
            pooled = None


def together(one: Window, other: Window) -> Window:
    """Both as one window."""
    return replace(
        one,
        start=min(one.start, other.start),
        end=max(one.end, other.end),
        seen=one.seen + other.seen,
        applicable=one.applicable + other.applicable,
        scored=one.scored + other.scored,
        failed=one.failed + other.failed,
        sum=one.sum + other.sum,
        bins=_added(one.bins, other.bins),
        parts=_added(one.parts, other.parts),
        revision=one.revision + other.revision,
        frozen=one.frozen and other.frozen,
        changed=one.changed or other.changed,
        incomplete=one.incomplete or other.incomplete,
    )


def _added(one: Mapping[Key, Number], other: Mapping[Key, Number]) -> dict[Key, Number]:
    added = dict(one)
    for key, number in other.items():
        added[key] = added[key] + number if key in added else number
    return added
