"""Which stretches of a series are judged now: those never judged, and those in which a window changed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from drift.rules.pooling import pools, together
from drift.rules.series import Window


class JudgedStretch(NamedTuple):
    """A stretch [start, end) that has a verdict, and the revision that the verdict saw."""

    start: int
    end: int
    revision: int


def to_judge(
    windows: Iterable[Window], judged: Sequence[JudgedStretch], min_sample: int, samples: Callable[[Window], int]
) -> Iterator[Window]:
    """Pooled windows to be judged, each (stretch, revision) once.

    A stretch with a verdict keeps its bounds for ever, also where it has too few records left. What no verdict covers
    is pooled forward, never across a stretch that has one; where too few wait at the end, nothing is said yet.
    """
    stretches: dict[JudgedStretch, list[Window]] = {stretch: [] for stretch in sorted(judged)}
    waiting: list[Window] = []
    for window in sorted(windows, key=lambda w: w.start):
        stretch = next((s for s in stretches if s.start <= window.start < s.end), None)
        if stretch is not None:
            if waiting:
                yield from pools(waiting, min_sample, samples)
                waiting = []
            stretches[stretch].append(window)
        elif not window.frozen:
            waiting.append(window)
    yield from pools(waiting, min_sample, samples)
    for stretch, inside in stretches.items():
        if any(window.changed for window in inside):
            whole = replace(reduce(together, inside), start=stretch.start, end=stretch.end)
            if whole.revision != stretch.revision:
                yield whole
