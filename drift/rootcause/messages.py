"""State a root cause in sentences for operators."""

from collections.abc import Iterator, Sequence

from ragtide.drift.rootcause.attribution import Contribution
from ragtide.drift.rootcause.explain import RootCause
from ragtide.drift.rootcause.question_mix import QuestionMix
from ragtide.drift.rootcause.retrieval_or_generation import Stage
from ragtide.drift.rootcause.versions import VersionChange
from ragtide.drift.text import number
from ragtide.drift.windows import OTHER_VALUES

_FULL_TAKEOVER = 0.95  # of the traffic


def root_cause_message(cause: RootCause) -> str:
    """Write the sentences; they quote no trace."""
    sentences = list(_sentences(cause)) or ["there are no models, prompt versions or segments to compare"]
    return " ".join(f"{one[0].upper()}{one[1:]}." for one in sentences)


def _sentences(cause: RootCause) -> Iterator[str]:
    if cause.shift is None:
        yield from map(_version, cause.versions)
        yield "there is no data from before and after the onset to compare"
        return
    direction = "drop" if cause.shift.size < 0 else "rise"
    if cause.too_few:
        yield f"too few windows have traffic to attribute the {direction}"
    elif cause.contributors:
        yield from _contributors(cause, direction)
    else:
        # A version that took over all traffic divides none of it: the change itself is stated.
        whole = {one.what for one in cause.versions if one.share_after - one.share_before > _FULL_TAKEOVER}
        if tested := [_plain(name) for name in cause.dimensions if name not in whole]:
            yield f"no single {_any_of(tested)} explains the {direction}"
    yield from map(_version, cause.versions)
    if cause.failure_reasons:
        reason = cause.failure_reasons[0]
        yield f"failure reason {reason.kind} explains {_percent(reason.share)} of the {direction}"
    if cause.stage and (cause.stage.failing or not cause.stage.too_few):
        yield _stage(cause.stage)
    if cause.question_mix and cause.question_mix.verdict != "unclear":
        yield _question_mix(cause.question_mix, direction)


def _contributors(cause: RootCause, direction: str) -> Iterator[str]:
    for depth, one in enumerate(cause.contributors):
        of_what = f"of the {direction} " if not depth else ""
        verb = "explains" if one.value and one.value != OTHER_VALUES else "explain"
        group = f"{'within that, ' if depth else ''}{_group(one)}"
        yield f"{group} {verb} {_percent(one.share)} {of_what}({_change(cause, one)})"
    if 0 < cause.sample_share < 1:
        yield f"this is estimated from {_percent(cause.sample_share)} of the traces"


def _change(cause: RootCause, one: Contribution) -> str:
    if one.is_rate_effect:
        means = f"{_number(cause, one.mean_before)} → {_number(cause, one.mean_after)}"
        return f"{_level(cause, means)}, {_percent(one.traffic_after)} of the traffic"
    mean = one.mean_before if one.mean_after is None else one.mean_after
    traffic = f"from {_percent(one.traffic_before)} to {_percent(one.traffic_after)} of the traffic"
    return f"{traffic}, {_level(cause, _number(cause, mean))}"


def _level(cause: RootCause, numbers: str) -> str:
    """Name the numbers: a mean or a share."""
    match cause.quantity and cause.quantity.kind:
        case "mean":
            return f"mean {numbers}"
        case "coverage":
            return f"{numbers} without a score"
        case _:
            return f"{numbers} out of bounds"


def _number(cause: RootCause, mean: float | None) -> str:
    if mean is None:
        return "none"
    return number(mean) if cause.quantity and cause.quantity.kind == "mean" else _percent(mean)


def _group(one: Contribution) -> str:
    if one.value == OTHER_VALUES:
        return f"all {_plain(one.dimension)}s without windows of their own"
    return f"{_plain(one.dimension)} {one.value}" if one.value else f"traces without {_plain(one.dimension)}"


def _version(change: VersionChange) -> str:
    at = f"at {change.at:%H:%M} UTC ({_percent(change.share_before)} → {_percent(change.share_after)} of the traffic)"
    return f"{_plain(change.what)} changed from {change.before or 'none'} to {change.after or 'none'} {at}"


def _stage(stage: Stage) -> str:
    counts = f"{stage.bad_of_failing} of {stage.failing} failing traces have bad contexts"
    if stage.verdict == "retrieval" and not stage.failing:
        return "the metric measures retrieval itself"
    if stage.verdict != "unclear":
        return f"{counts}: look at {stage.verdict}"
    if stage.too_few:
        traces = f"{stage.failing} failing, {stage.passing} passing"
        return f"too few traces have context metrics to tell retrieval from generation: {traces}"
    return f"{counts}, and {stage.bad_of_passing} of {stage.passing} passing ones: retrieval or generation is unclear"


def _question_mix(mix: QuestionMix, direction: str) -> str:
    explains = f"the mix of questions explains {_percent(mix.mix)} of the {direction}"
    match mix.verdict:
        case "questions":
            return f"{explains}: the answers are as good as before"
        case "both":
            return f"{explains}, changed answers the rest"
        case _:
            return f"the mix of questions does not explain the {direction}"


def _any_of(names: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _percent(share: float) -> str:
    return f"{min(share, 1.0) * 100:.2g} %" if share < 0.995 else "100 %"
