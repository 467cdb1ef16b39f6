"""Decide whether recent windows are bad, with hysteresis: k of the last m intervals open, n good ones in a row clear.

Intervals are pooled backwards from the newest window until each has enough records, without overlap. So the result
follows from the windows alone.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from operator import attrgetter
from typing import Literal, NamedTuple

from ragtide.drift.rules import Interval, VersionStart, active_versions
from ragtide.drift.settings import RuleSettings
from ragtide.drift.stats import MAX_INTERVALS, BadCount, within_binomial_noise

CheckState = Literal["bad", "good", "unclear"]
_start, _end = attrgetter("start"), attrgetter("end")


class WindowCount(NamedTuple):
    """Records of one window that begins at `start`, or of several; seconds since 1970.

    Of a sample, `records` and `bad` are sums of weights, and `squares` is the sum of all squared weights; else it is 0.
    """

    start: int
    end: int
    records: float
    bad: float
    squares: float = 0.0

    @property
    def share(self) -> float:
        """Share of bad records; needs at least one record."""
        return self.bad / self.records

    @property
    def counts(self) -> BadCount:
        """Numbers of records; of a sample, of as many as would tell as much with one weight (Kish 1965)."""
        records = self.records**2 / self.squares if self.squares else self.records
        return BadCount(records, records * self.bad / self.records if self.records else 0.0)


class HysteresisState(NamedTuple):
    """The state; if bad, the records from the first bad interval on."""

    state: CheckState
    breach: WindowCount | None


def k_of_m(windows: Iterable[WindowCount], limit: float, settings: RuleSettings) -> HysteresisState:
    """Return bad if the newest interval and k of the last m exceed the limit, and not by chance.

    Return good if the last `resolve_after` intervals do not exceed it.
    """
    most = max(settings.m, settings.resolve_after, MAX_INTERVALS)
    newest = list(islice(pool_backward(windows, settings.min_sample), most))
    latest = newest[: settings.m]
    bad = [one for one in latest if one.share > limit]
    enough = bool(bad) and latest[0].share > limit and len(bad) >= settings.k
    if enough and not within_binomial_noise((one.counts for one in newest), limit, settings.chance):
        return HysteresisState("bad", merge_counts([one for one in latest if one.start >= bad[-1].start]))
    calm = newest[: settings.resolve_after]
    if len(calm) == settings.resolve_after and not any(one.share > limit for one in calm):
        return HysteresisState("good", None)
    return HysteresisState("unclear", None)


def merge_counts(some: Sequence[WindowCount]) -> WindowCount:
    """Merge counts, at least one."""
    return WindowCount(
        min(one.start for one in some),
        max(one.end for one in some),
        sum(one.records for one in some),
        sum(one.bad for one in some),
        sum(one.squares or one.records for one in some) if any(one.squares for one in some) else 0.0,
    )


def pool_backward(windows: Iterable[WindowCount], min_sample: int) -> Iterator[WindowCount]:
    """Pool windows to intervals with enough records, the newest first; a remainder of the oldest is dropped."""
    pending: list[WindowCount] = []
    for window in sorted(windows, reverse=True):
        pending.append(window)
        pooled = merge_counts(pending)
        if pooled.counts.records >= min_sample:
            yield pooled
            pending = []


def k_of_m_history(
    windows: Mapping[str, Sequence[WindowCount]],
    limit: float,
    settings: RuleSettings,
    instants: range,
    lookback: timedelta,
) -> Iterator[tuple[int, HysteresisState]]:
    """Return the state at each instant, by the windows of one size that started and ended in the `lookback` before it.

    `windows` by evaluator version, in order of time; those of the active one count. Without windows the state is good.
    """
    bad_ends = sorted(window.end for some in windows.values() for window in some if window.share > limit)
    calm = HysteresisState("good", None)
    state = calm
    for at in instants:
        since = at - int(lookback.total_seconds())
        is_calm = bisect_left(bad_ends, since) == bisect_left(bad_ends, at + 1)  # no interval is worse than its windows
        if not (is_calm and state.state == "good"):
            recent = {name: _within(some, since, at) for name, some in windows.items()}
            known = {name: some for name, some in recent.items() if some}
            counted = windows_of_active_version(known, settings.min_sample)
            state = k_of_m(counted, limit, settings) if known else calm
        yield at, state


def _within(windows: Sequence[WindowCount], since: int, until: int) -> Sequence[WindowCount]:
    return windows[bisect_left(windows, since, key=_start) : bisect_left(windows, until + 1, key=_end)]


def windows_of_active_version(windows: Mapping[str, Sequence[WindowCount]], min_sample: int) -> tuple[WindowCount, ...]:
    """Return the windows of the newest active fingerprint, if they have enough records for an interval."""
    spans: dict[VersionStart, list[Interval]] = {}
    for name, some in windows.items():
        judged = [Interval(one.start, one.end) for one in pool_backward(some, min_sample)]
        if judged:
            spans[VersionStart(min(one.start for one in some), name)] = judged[::-1]
    scoring = active_versions(spans)
    if not scoring:
        return ()
    newest = scoring[-1]
    return tuple(one for one in windows[newest.version.fingerprint] if one.start >= newest.since)
