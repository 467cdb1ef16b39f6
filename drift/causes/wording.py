"""Says a cause in one sentence that an operator understands."""

from drift.causes.cause import Cause
from drift.causes.decomposition import Contribution
from drift.causes.stage import Stage
from drift.causes.traffic import Traffic
from drift.causes.versions import VersionChange
from drift.phrases import number
from drift.windows.contents import OTHER

_WHOLLY = 0.95  # of the traffic


def sentence(cause: Cause) -> str:
    """The sentence; it quotes no trace."""
    if cause.move is None:
        said = [*map(_version, cause.versions), "there is nothing to compare with before the onset"]
    else:
        said = [*_where(cause), *map(_version, cause.versions)]
        said += [f"{_percent(cause.reasons[0].share)} of it is {cause.reasons[0].kind}"] if cause.reasons else []
        said += [_stage(cause.stage)] if cause.stage and (cause.stage.failing or not cause.stage.too_few) else []
        said += [_traffic(cause.traffic)] if cause.traffic and cause.traffic.verdict != "unclear" else []
    text = "; ".join(said) or "nothing is known that parts the traffic"
    return f"{text[0].upper()}{text[1:]}."


def _where(cause: Cause) -> list[str]:
    assert cause.move is not None
    went = "fall" if cause.move.size < 0 else "rise"
    if cause.too_few:
        return ["too few windows have traffic to tell where it comes from"]
    if not cause.culprits:
        # Where one took the place of another wholly, no share of the traffic parts them: the change itself is told.
        whole = {one.what for one in cause.versions if one.share_after - one.share_before > _WHOLLY}
        tried = [_plain(name) for name in cause.tried if name not in whole]
        listed = " and ".join(filter(None, [", ".join(tried[:-1]), *tried[-1:]]))
        return [f"{'none of' if len(tried) > 1 else 'no'} {listed} explains the {went}"] if tried else []
    said = []
    for depth, one in enumerate(cause.culprits):
        comes = f"of the {went} comes from" if not depth else "from"
        said.append(f"{'within it ' * bool(depth)}{_percent(one.share)} {comes} {_group(one)} ({_moved(cause, one)})")
    said[-1] += f", by {_percent(cause.sampled)} of the traces" if 0 < cause.sampled < 1 else ""
    return said


def _moved(cause: Cause, one: Contribution) -> str:
    if not one.by_rate:
        mean = one.mean_before if one.mean_after is None else one.mean_after
        went = f"from {_percent(one.traffic_before)} to {_percent(one.traffic_after)} of the traffic"
        return f"{went}, {_level(cause, mean)}"
    both = f"{_number(cause, one.mean_before)} → {_number(cause, one.mean_after)}"
    return f"{_level_name(cause)}{both}{_beyond(cause)}, {_percent(one.traffic_after)} of the traffic"


def _level(cause: Cause, mean: float | None) -> str:
    return f"{_level_name(cause)}{_number(cause, mean)}{_beyond(cause)}"


def _level_name(cause: Cause) -> str:
    return "mean " if cause.measure and cause.measure.kind == "mean" else ""


def _beyond(cause: Cause) -> str:
    """What a share is of."""
    if cause.measure is None or cause.measure.kind == "mean":
        return ""
    return " without a score" if cause.measure.kind == "coverage" else " beyond the line"


def _number(cause: Cause, mean: float | None) -> str:
    if mean is None:
        return "none"
    return number(mean) if cause.measure and cause.measure.kind == "mean" else _percent(mean)


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


def _traffic(traffic: Traffic) -> str:
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
