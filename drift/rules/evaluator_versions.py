"""Choose whose verdicts count while one evaluator version replaces another, or returns. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ragtide.drift.rules.model import Rule, Verdict

_LAST = 5  # intervals of a version that say how long one takes
_PATIENCE = 2  # intervals without data before a version counts as replaced: a small share of the traffic has pauses


class VersionStart(NamedTuple):
    """A fingerprint and when it first scored the series; the newest sorts last."""

    at: float
    fingerprint: str


class Interval(NamedTuple):
    """Windows that were evaluated together, in seconds since 1970."""

    start: float
    end: float


class ActiveVersion(NamedTuple):
    """A fingerprint that scores now, and the start of its current use. Its earlier verdicts do not count."""

    version: VersionStart
    since: float


def active_versions(intervals: Mapping[VersionStart, Sequence[Interval]]) -> list[ActiveVersion]:
    """Find the versions whose last interval is recent for their own pace, the newest last.

    Each has at least one interval; intervals are in order of time.
    """
    until = max((of_one[-1].end for of_one in intervals.values()), default=0.0)
    return [
        ActiveVersion(
            version,
            _active_since(
                of_one, (interval for other, found in intervals.items() if other != version for interval in found)
            ),
        )
        for version, of_one in sorted(intervals.items())
        if until - of_one[-1].end <= _max_pause(of_one)
    ]


def verdicts_of_active_versions(rule: Rule, verdicts: Mapping[VersionStart, Sequence[Verdict]]) -> list[Verdict]:
    """Choose verdicts of the newest active version, in order of time; with zero tolerance those of all of them.

    One bad record is bad whichever version found it.
    """
    enough = {version: [v for v in some if v.samples >= rule.min_sample] for version, some in verdicts.items()}
    intervals = {
        version: [Interval(v.start.timestamp(), v.end.timestamp()) for v in some] for version, some in enough.items()
    }
    active = active_versions({version: some for version, some in intervals.items() if some})
    chosen = active if rule.kind.zero_tolerance else active[-1:]
    found = [v for one in chosen for v in enough[one.version] if v.start.timestamp() >= one.since]
    return sorted(found, key=lambda verdict: (verdict.start, verdict.end))


def _max_pause(intervals: Sequence[Interval]) -> float:
    return _PATIENCE * max(interval.end - interval.start for interval in intervals[-_LAST:])


def _active_since(intervals: Sequence[Interval], others: Iterable[Interval]) -> float:
    """Find the start of the last interval that follows a long pause in which other versions scored."""
    between = list(others)
    for nth in range(len(intervals) - 1, 0, -1):
        before, after = intervals[nth - 1], intervals[nth]
        if after.start - before.end > _max_pause(intervals[:nth]) and any(
            before.end <= other.start and other.end <= after.start for other in between
        ):
            return after.start
    return intervals[0].start
