"""Whether a share is surely above its limit, surely no trouble, or neither, and how it is told. Pure."""

from typing import Any

from drift.insights.shares import Share, wilson
from drift.kinds.recent import Health
from drift.phrases import percent
from drift.problems.accounts import part_wrong


def judged(share: Share, limit: float) -> Health:
    """Bad: the limit lies below the whole 95 % interval (Wilson); good: the share is not above the limit.

    Between the two nothing changes, so that a share near its limit neither opens nor ends a problem at each look.
    """
    if wilson(share).low > limit:
        return "bad"
    return "good" if share.value <= limit else "unclear"


def in_words(share: Share) -> str:
    """It and its interval."""
    low, high = wilson(share)
    return f"{percent(share.value)}, 95 % interval {low * 100:.3g} to {percent(high)}"


def attributes_of(share: Share, limit: float) -> dict[str, Any]:
    """What is told of it beside the sentence."""
    return {**part_wrong(share.hits, share.n, limit), "interval": list(wilson(share))}
