"""Render the agreement of a metric with people's labels, as text and as JSON."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragtide.drift.calibration import AtThreshold, ShareEstimate
    from ragtide.drift.stats import Kappa


def describe_agreement(at: "AtThreshold") -> str:
    """Render kappa, precision and recall with their intervals on one line."""
    return f"{describe_kappa(at.kappa)}, precision {_share(at.precision)}, recall {_share(at.recall)}"


def describe_kappa(kappa: "Kappa | None") -> str:
    """Render kappa with its interval."""
    if kappa is None:
        return "kappa unknown: all answers are alike"
    interval = kappa.interval
    return f"kappa {kappa.value:.2f}" + (f" ({interval.low:.2f} to {interval.high:.2f})" if interval else "")


def _share(share: "ShareEstimate | None") -> str:
    if share is None:
        return "unknown"
    return f"{share.value:.0%} ({share.interval.low:.0%} to {share.interval.high:.0%})"


def agreement_object(at: "AtThreshold") -> dict[str, Any]:
    """Return kappa, precision and recall for JSON."""
    return {
        "kappa": estimate_object(at.kappa),
        "precision": estimate_object(at.precision),
        "recall": estimate_object(at.recall),
    }


def estimate_object(found: "Kappa | ShareEstimate | None") -> dict[str, float | None] | None:
    """Return an estimate and its interval for JSON; None where there is none."""
    if found is None:
        return None
    low, high = found.interval or (None, None)
    return {"value": found.value, "low": low, "high": high}
