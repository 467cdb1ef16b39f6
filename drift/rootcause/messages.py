"""Says a cause in one sentence that an operator understands."""

from ragtide.drift.rootcause.attribution import Contribution
from ragtide.drift.rootcause.explain import RootCause
from ragtide.drift.rootcause.question_mix import QuestionMix
from ragtide.drift.rootcause.retrieval_or_generation import Stage
from ragtide.drift.rootcause.versions import VersionChange
from ragtide.drift.text import number
from ragtide.drift.windows.contents import OTHER

_FULL_TAKEOVER = 0.95  # of the traffic


def root_cause_message(cause: RootCause) -> str:
    """The sentence; it quotes no trace."""
    if cause.shift is None:
        clauses = [*map(_version, cause.versions), "there is nothing to compare with before the onset"]
    else:
        clauses = [*_where(cause), *map(_version, cause.versions)]
        clauses += (
            [f"{_percent(cause.failure_reasons[0].share)} of it is {cause.failure_reasons[0].kind}"]
            if cause.failure_reasons
            else []
        )
        clauses += [_stage(cause.stage)] if cause.stage and (cause.stage.failing or not cause.stage.too_few) else []
        clauses += (
            [_question_mix(cause.question_mix)]
            if cause.question_mix and cause.question_mix.verdict != "unclear"
            else []
        )
    text = "; ".join(clauses) or "nothing is known that parts the traffic"
    return f"{text[0].upper()}{text[1:]}."


def _where(cause: RootCause) -> list[str]:
    assert cause.shift is not None
    went = "fall" if cause.shift.size < 0 else "rise"
    if cause.too_few:
        return ["too few windows have traffic to tell where it comes from"]
    if not cause.contributors:
        # Where one took the place of another wholly, no share of the traffic parts them: the change itself is told.
        whole = {one.what for one in cause.versions if one.share_after - one.share_before > _FULL_TAKEOVER}
        tried = [_plain(name) for name in cause.dimensions if name not in whole]
        listed = " and ".join(filter(None, [", ".join(tried[:-1]), *tried[-1:]]))
        return [f"{'none of' if len(tried) > 1 else 'no'} {listed} explains the {went}"] if tried else []
    clauses = []
    for depth, one in enumerate(cause.contributors):
        comes = f"of the {went} comes from" if not depth else "from"
        clauses.append(
            f"{'within it ' * bool(depth)}{_percent(one.share)} {comes} {_group(one)} ({_change(cause, one)})"
        )
    clauses[-1] += f", by {_percent(cause.sample_share)} of the traces" if 0 < cause.sample_share < 1 else ""
    return clauses


def _change(cause: RootCause, one: Contribution) -> str:
    if not one.is_rate_effect:
        mean = one.mean_before if one.mean_after is None else one.mean_after
        went = f"from {_percent(one.traffic_before)} to {_percent(one.traffic_after)} of the traffic"
        return f"{went}, {_level(cause, mean)}"
    both = f"{_number(cause, one.mean_before)} → {_number(cause, one.mean_after)}"
    return f"{_level_name(cause)}{both}{_share_of(cause)}, {_percent(one.traffic_after)} of the traffic"


def _level(cause: RootCause, mean: float | None) -> str:
    return f"{_level_name(cause)}{_number(cause, mean)}{_share_of(cause)}"


def _level_name(cause: RootCause) -> str:
    return "mean " if cause.quantity and cause.quantity.kind == "mean" else ""


def _share_of(cause: RootCause) -> str:
    """What a share is of."""
    if cause.quantity is None or cause.quantity.kind == "mean":
        return ""
    return " without a score" if cause.quantity.kind == "coverage" else " beyond the line"


def _number(cause: RootCause, mean: float | None) -> str:
    if mean is None:
        return "none"
    return number(mean) if cause.quantity and cause.quantity.kind == "mean" else _percent(mean)


def _group(one: Contribution) -> str:
    if one.value == OTHER:
        return f"all {_plain(one.dimension)}s without windows of their own"
    return f"{_plain(one.dimension)} {one.value}" if one.value else f"traces without {_plain(one.dimension)}"


def _version(change: VersionChange) -> str:
    at = f"at {change.at:%H:%M} UTC ({_percent(change.share_before)} → {_percent(change.share_after)} of the traffic)"
    return f"{_plain(change.what)} changed from {change.before or 'none'} to {change.after or 'none'} {at}"


def _stage(stage: Stage) -> str:
    counted = f"{stage.bad_of_failing} of {stage.failing} failing traces have bad contexts"
    if stage.verdict == "retrieval":
        return f"{counted}, so look at retrieval" if stage.failing else "it is retrieval itself that is measured"
    if stage.verdict == "generation":
        return f"retrieval looks well ({counted}), so look at generation"
    if stage.too_few:
        had = f"{stage.failing} failing and {stage.passing} passing traces had context metrics"
        return f"retrieval or generation could not be told: {had}"
    return (
        f"contexts do not tell retrieval from generation ({counted}, {stage.bad_of_passing} of {stage.passing} passing)"
    )


def _question_mix(traffic: QuestionMix) -> str:
    match traffic.verdict:
        case "questions":
            return f"the mix of questions explains {_percent(traffic.mix)}, and the answers are as good as ever"
        case "both":
            return f"the mix of questions explains {_percent(traffic.mix)}, the rest are answers"
        case _:
            return "answers differ at an equal mix of questions"


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _percent(share: float) -> str:
    return f"{min(share, 1.0) * 100:.2g} %" if share < 0.995 else "100 %"
