"""Whether a share is surely above its limit, surely no trouble, or neither, and how it is told. Pure."""

from typing import Any

from ragtide.drift.checks.hysteresis import CheckState
from ragtide.drift.problems.report import bad_share_attributes
from ragtide.drift.stats.proportions import Share, wilson
from ragtide.drift.text import percent


def above_limit(share: Share, limit: float) -> CheckState:
    """Bad: the limit lies below the whole 95 % interval (Wilson); good: the share is not above the limit.

    Between the two nothing changes, so that a share near its limit neither opens nor ends a problem at each look.
    """
    if wilson(share).low > limit:
        return "bad"
    return "good" if share.value <= limit else "unclear"


def describe_share(share: Share) -> str:
    """It and its interval."""
    low, high = wilson(share)
    return f"{percent(share.value)}, 95 % interval {low * 100:.3g} to {percent(high)}"


def share_attributes(share: Share, limit: float) -> dict[str, Any]:
    """What is told of it beside the sentence."""
    return {**bad_share_attributes(share.hits, share.n, limit), "interval": list(wilson(share))}
