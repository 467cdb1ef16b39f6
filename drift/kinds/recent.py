"""Whether the newest windows of something are bad: k of the last m stretches, until so many in a row are good.

Stretches are pooled backwards from the newest window until each has enough records, without overlap; so the answer
follows from the windows alone, whoever asks and however often.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from drift.rules.chance import LOOKED_BACK, Part, may_be_chance
from drift.settings import RuleSettings

Health = Literal["bad", "good", "unclear"]


class Counted(NamedTuple):
    """Records of one window that begins at `start`, or of several; seconds since 1970."""

    start: int
    end: int
    records: int
    wrong: int

    @property
    def share(self) -> float:
        """Of the records, at least one, those that are wrong."""
        return self.wrong / self.records


class Recent(NamedTuple):
    """The state; where it is bad, the records of the stretches from the first bad one of those looked at on."""

    state: Health
    since_bad: Counted | None


def recent(windows: Iterable[Counted], limit: float, settings: RuleSettings) -> Recent:
    """Bad: the newest stretch is, and k of the last m, each by a share above the limit, and not by chance; good:
    `resolve_after` are.
    """
    most = max(settings.m, settings.resolve_after, LOOKED_BACK)
    newest = list(islice(stretches(windows, settings.min_sample), most))
    looked = newest[: settings.m]
    bad = [one for one in looked if one.share > limit]
    enough = bool(bad) and looked[0].share > limit and len(bad) >= settings.k
    if enough and not may_be_chance((Part(one.records, one.wrong) for one in newest), limit, settings.chance):
        return Recent("bad", together([one for one in looked if one.start >= bad[-1].start]))
    calm = newest[: settings.resolve_after]
    if len(calm) == settings.resolve_after and not any(one.share > limit for one in calm):
        return Recent("good", None)
    return Recent("unclear", None)


def together(some: Sequence[Counted]) -> Counted:
    """At least one, as one."""
    return Counted(
        min(one.start for one in some),
        max(one.end for one in some),
        sum(one.records for one in some),
        sum(one.wrong for one in some),
    )


def stretches(windows: Iterable[Counted], min_sample: int) -> Iterator[Counted]:
    """Windows with enough records together, the newest first; the oldest are left out where they have too few."""
    waiting: list[Counted] = []
    for window in sorted(windows, reverse=True):
        waiting.append(window)
        if sum(one.records for one in waiting) >= min_sample:
            yield together(waiting)
            waiting = []
