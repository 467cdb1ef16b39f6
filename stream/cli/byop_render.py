"""Render the trial of a prompt, as text and as JSON."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from ragtide.stream.api.result_text import describe
from ragtide.stream.cli.agreement_render import agreement_object, describe_agreement

if TYPE_CHECKING:
    from ragtide.stream.api.prompt_trial import PromptTrial, TrialVerdict

_NAMES = {"failed": "could not tell", "not_applicable": "not applicable", "sampled_out": "left out"}  # by status
_KEYS = {"failed": "could_not_tell", "not_applicable": "not_applicable", "sampled_out": "left_out"}


def lines(trial: "PromptTrial") -> list[str]:
    """Return a line per trace, then counts, cost and agreement."""
    width = max((len(one.trace_id) for one in trial.verdicts), default=0)
    return [
        *(_line(one, min(width, 40)) for one in trial.verdicts),
        *describe(replace(trial.result, notes=())),
        *(f"label rejected: {fault}" for fault in trial.label_faults),
        _counts(trial),
        *trial.result.judge_usage,
        _cost(trial),
        _agreement(trial),
    ]


def as_object(trial: "PromptTrial") -> dict[str, Any]:
    """Return the trial for JSON."""
    scored = _scored(trial.verdicts)
    agreement = trial.agreement
    return {
        "prompt": trial.prompt,
        "traces": len(trial.result.traces),
        "scored": len(scored),
        "passed": sum(one.passes is True for one in scored),
        **{key: dict(_reasons(trial.verdicts, status)) for status, key in _KEYS.items()},
        "usage": msgspec.to_builtins(trial.usage),
        "usd_per_1000_traces": trial.usd_per_1000,
        "labelled": trial.labelled,
        "agreement": None if agreement is None else agreement_object(agreement),
        "rejected": [one._asdict() for one in trial.result.rejected],
        "label_faults": list(trial.label_faults),
        "verdicts": [one._asdict() for one in trial.verdicts],
    }


def _line(one: "TrialVerdict", width: int) -> str:
    if one.passes is None:
        found = f"{_NAMES[one.status]}: {one.reason}"
    else:
        found = f"{str(one.verdict).lower():<5}  {'passes' if one.passes else 'fails'}"
    people = {None: "", True: "  people: bad", False: "  people: good"}[one.people_say_bad]
    return f"{one.trace_id:<{width}}  {found}{people}"


def _counts(trial: "PromptTrial") -> str:
    scored = _scored(trial.verdicts)
    passed = sum(one.passes is True for one in scored)
    parts = [f"{len(scored):,} scored ({passed:,} pass, {len(scored) - passed:,} fail)"]
    for status, name in _NAMES.items():
        reasons = _reasons(trial.verdicts, status)
        listed = ", ".join(f"{reason} {n:,}" for reason, n in reasons.most_common())
        parts.append(f"{reasons.total():,} {name}" + (f" ({listed})" if listed else ""))
    if other := len(trial.result.traces) - len(trial.verdicts):
        parts.append(f"{other:,} of other tasks")
    return f"{trial.prompt}: {', '.join(parts)}"


def _cost(trial: "PromptTrial") -> str:
    if not trial.has_prices:
        return "cost unknown: set input_usd_per_million and output_usd_per_million of the endpoint"
    if trial.usd_per_1000 is None:
        return "cost of 1,000 traces unknown: no call was paid for"
    return f"cost of 1,000 judged traces: about {trial.usd_per_1000:,.4f} USD"


def _agreement(trial: "PromptTrial") -> str:
    if trial.agreement is None:
        return "agreement unknown: no trace with a verdict has a label; docs/judge.md says how to give labels"
    bad = trial.agreement.cases.both + trial.agreement.cases.second_only
    head = f"agreement on {trial.labelled:,} labelled traces, of which people call {bad:,} bad"
    return f"{head}: {describe_agreement(trial.agreement)}"


def _scored(verdicts: "Sequence[TrialVerdict]") -> "list[TrialVerdict]":
    return [one for one in verdicts if one.passes is not None]


def _reasons(verdicts: "Sequence[TrialVerdict]", status: str) -> Counter[str]:
    return Counter(one.reason for one in verdicts if one.status == status)
