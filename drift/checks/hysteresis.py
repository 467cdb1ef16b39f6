"""Whether the newest windows of something are bad: k of the last m stretches, until so many in a row are good.

Stretches are pooled backwards from the newest window until each has enough records, without overlap; so the answer
follows from the windows alone, whoever asks and however often.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from ragtide.drift.settings import RuleSettings
from ragtide.drift.stats.significance import MAX_INTERVALS, Sample, within_binomial_noise

CheckState = Literal["bad", "good", "unclear"]


class WindowCount(NamedTuple):
    """Records of one window that begins at `start`, or of several; seconds since 1970."""

    start: int
    end: int
    records: int
    bad: int

    @property
    def share(self) -> float:
        """Of the records, at least one, those that are wrong."""
        return self.bad / self.records


class HysteresisState(NamedTuple):
    """The state; where it is bad, the records of the stretches from the first bad one of those looked at on."""

    state: CheckState
    breach: WindowCount | None


def k_of_m(windows: Iterable[WindowCount], limit: float, settings: RuleSettings) -> HysteresisState:
    """Bad: the newest stretch is, and k of the last m, each by a share above the limit, and not by chance; good:
    `resolve_after` are.
    """
    most = max(settings.m, settings.resolve_after, MAX_INTERVALS)
    newest = list(islice(pool_backward(windows, settings.min_sample), most))
    latest = newest[: settings.m]
    bad = [one for one in latest if one.share > limit]
    enough = bool(bad) and latest[0].share > limit and len(bad) >= settings.k
    if enough and not within_binomial_noise((Sample(one.records, one.bad) for one in newest), limit, settings.chance):
        return HysteresisState("bad", merge_counts([one for one in latest if one.start >= bad[-1].start]))
    calm = newest[: settings.resolve_after]
    if len(calm) == settings.resolve_after and not any(one.share > limit for one in calm):
        return HysteresisState("good", None)
    return HysteresisState("unclear", None)


def merge_counts(some: Sequence[WindowCount]) -> WindowCount:
    """At least one, as one."""
    return WindowCount(
        min(one.start for one in some),
        max(one.end for one in some),
        sum(one.records for one in some),
        sum(one.bad for one in some),
    )


def pool_backward(windows: Iterable[WindowCount], min_sample: int) -> Iterator[WindowCount]:
    """Windows with enough records together, the newest first; the oldest are left out where they have too few."""
    pending: list[WindowCount] = []
    for window in sorted(windows, reverse=True):
        pending.append(window)
        if sum(one.records for one in pending) >= min_sample:
            yield merge_counts(pending)
            pending = []
