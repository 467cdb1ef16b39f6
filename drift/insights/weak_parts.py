"""Parts of an application's traces that fail more often than the rest: how they are tested and stated. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

from ragtide.drift.insights.model import estimate, share_estimate
from ragtide.drift.stats import Interval, Share, benjamini_hochberg, fisher_p_values, share_difference
from ragtide.drift.text import percent

TYPE = "weak_point"
ALPHA = 0.05
READ = "Read the example traces. Is the answer in the index, and is it retrieved?"
WRITE = "Add or rewrite the documents that should answer them, then replay the examples."

Name = TypeVar("Name")


@dataclass(frozen=True, slots=True)
class WeakPart(Generic[Name]):
    """A part that fails more often than `rest`; `p` is adjusted for all parts that were tested."""

    name: Name
    share: Share
    rest: Share
    p: float

    @property
    def excess(self) -> Interval:
        """The failure rate less that of the rest."""
        return share_difference(self.share, self.rest)

    def message(self, others: str = "all others") -> str:
        """Both rates and their difference."""
        low, high = self.excess
        more = f"{low * 100:.0f} to {high * 100:.0f} percentage points more"
        return f"{rates_message(self.share, self.rest, others)}: {more}"

    @property
    def figures(self) -> dict[str, Any]:
        """Both rates, their difference and p."""
        return {
            "asked": self.share.n,
            "failed": self.share.hits,
            **share_estimate("failed_share", self.share),
            "rest_asked": self.rest.n,
            "rest_failed": self.rest.hits,
            **estimate("more_than_rest", self.share.value - self.rest.value, self.excess),
            "p": self.p,
        }


def rates_message(share: Share, rest: Share, others: str = "all others") -> str:
    """State how often a part and the rest failed."""
    return (
        f"failed {share.hits:,} of {share.n:,} times ({percent(share.value)}), "
        f"{others} {rest.hits:,} of {rest.n:,} ({percent(rest.value)})"
    )


def without(whole: Share, part: Share) -> Share:
    """Return the rest of the whole."""
    return Share(whole.hits - part.hits, whole.n - part.n)


def weak_parts(tested: Sequence[tuple[Name, Share, Sequence[Share]]]) -> list[WeakPart[Name]]:
    """Return the parts that fail more often than each of their `rests`, the largest excess (its lower end) first.

    Of several rests, `p` is the largest and `rest` is the one with the smallest excess.
    """
    p_values = iter(fisher_p_values([(share, rest) for _, share, rests in tested for rest in rests]))
    adjusted = benjamini_hochberg([max(islice(p_values, len(rests))) for _, _, rests in tested])
    parts = [
        WeakPart(name, share, min(rests, key=lambda rest: share_difference(share, rest).low), p)
        for (name, share, rests), p in zip(tested, adjusted, strict=True)
        if p <= ALPHA
    ]
    return sorted((one for one in parts if one.excess.low > 0), key=lambda one: (-one.excess.low, one.name))
