"""Render the agreement of a metric with people's labels, as text and as JSON."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragtide.drift.calibration import AtThreshold, ShareEstimate
    from ragtide.drift.label_sample import JudgedTraces
    from ragtide.drift.stats import Kappa
    from ragtide.evaluators.label_estimates import PeopleEstimate

_LOW_COVERAGE = 0.8


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


def describe_people(judged: "JudgedTraces", people: "PeopleEstimate | None") -> list[str]:
    """Render the share of answers that people would call good, and what it rests on."""
    if people is None:
        return ["  of all answers: unknown, because no label is of a sample; ragtide labels sample draws one"]
    from ragtide.drift.text import timestamp

    mean = people.mean
    interval = "" if mean.low is None or mean.high is None else f" ({mean.low:.1%} to {mean.high:.1%})"
    lines = [
        f"  of all answers from {timestamp(judged.since)} to {timestamp(judged.until)}: people would call "
        f"{mean.value:.1%}{interval} good, estimated from {people.labelled:,} labels of a sample and the scores of "
        f"{people.judged:,} judged answers"
    ]
    if people.coverage is None:
        lines.append("  the labels have several sample rates, so it is unknown how many of the sample have none")
    elif people.coverage < _LOW_COVERAGE:
        lines.append(f"  only {people.coverage:.0%} of that sample has labels: if the others differ, so does the truth")
    return lines


def people_object(judged: "JudgedTraces", people: "PeopleEstimate") -> dict[str, float | str | None]:
    """Return what people would say for JSON."""
    return {
        "good_share": people.mean.value,
        "low": people.mean.low,
        "high": people.mean.high,
        "share_of_labels_alone": people.plain.value,
        "labels": people.labelled,
        "judged": people.judged,
        "coverage": people.coverage,
        "saved_labels": people.saved,
        "since": judged.since.isoformat(),
        "until": judged.until.isoformat(),
    }
