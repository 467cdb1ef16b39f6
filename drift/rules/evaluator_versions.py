"""Which evidence counts where a version of an evaluator takes the place of another, or comes back. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ragtide.drift.rules.model import Rule, Verdict

_LAST = 5  # stretches that tell how long one of a fingerprint takes
_PATIENCE = 2  # times as long it may be silent while another scores: a small share of the traffic has pauses


class VersionStart(NamedTuple):
    """A fingerprint of a series and when it was seen there first; the newest is the greatest."""

    at: float
    fingerprint: str


class Interval(NamedTuple):
    """Windows that were judged together; seconds since 1970."""

    start: float
    end: float


class ActiveVersion(NamedTuple):
    """A fingerprint that scores now, and since when: what it said before another took its place is of the past."""

    version: VersionStart
    since: float


def active_versions(intervals: Mapping[VersionStart, Sequence[Interval]]) -> list[ActiveVersion]:
    """Those not silent for longer than their own pace explains, the newest last; each has spans, in order of time."""
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
    """In order of time, those of the newest fingerprint that scores now; of rule `any` of all that do.

    One bad record is one, whichever version found it.
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
    """The start of the last of its spans before which it was silent for too long while others scored."""
    between = list(others)
    for nth in range(len(intervals) - 1, 0, -1):
        before, after = intervals[nth - 1], intervals[nth]
        if after.start - before.end > _max_pause(intervals[:nth]) and any(
            before.end <= other.start and other.end <= after.start for other in between
        ):
            return after.start
    return intervals[0].start
