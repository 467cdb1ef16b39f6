"""One sentence an operator understands: what moved, from what to what, since when, where, on how many traces."""

from dataclasses import dataclass
from datetime import datetime

from drift.phrases import moment, number, percent
from drift.rules.series import Rule, Series


@dataclass(frozen=True, slots=True)
class Figures:
    """The numbers of a problem. `value` and `baseline` are means of the bad windows and of good ones before them."""

    value: float
    threshold: float
    baseline: float | None
    effect_size: float | None
    samples: int
    wrong: int
    traffic: int  # traces of the app in the same time, all models together
    reasons: tuple[str, ...] = ()


def describe(series: Series, rule: Rule, figures: Figures, since: datetime) -> str:
    """The sentence. It quotes no trace."""
    match rule.kind:
        case "any":
            said = f"{_traces(figures.wrong)} of {figures.samples} did not pass {series.metric}"
            said += "; one is too many"
        case "share":
            said = f"{percent(figures.value)} of the traces did not pass {series.metric}"
            said += f", {_moved(figures)}above the limit of {percent(rule.limit)}"
            said += f": {figures.wrong} of {_traces(figures.samples)}"
        case "coverage":
            said = f"{percent(figures.value)} of the traces that {rule.watched.evaluator.id} should have scored got no "
            said += f"score, above the limit of {percent(rule.limit)}: {figures.wrong} of {_traces(figures.samples)}"
            said += f" ({', '.join(figures.reasons)})" if figures.reasons else ""
        case _:
            unit = rule.watched.metric.unit or ""
            below = rule.least is not None and figures.threshold == rule.least
            said = f"{'the mean of ' if rule.kind == 'mean' else ''}{series.metric} {_change(figures, unit)}, "
            said += "below " if below else "above "
            said += f"{number(figures.threshold, unit)}, on {_traces(figures.samples)}"
            # Of a class of a window it is not known which records are wrong.
            said += "" if rule.watched.metric.per else f", {figures.wrong} of them on the wrong side"
    return f"{series.whereabouts}: {said}; since {moment(since)}."


def _change(figures: Figures, unit: str) -> str:
    if figures.baseline is None:
        return f"is {number(figures.value, unit)}"
    went = "fell" if figures.value < figures.baseline else "rose"
    return f"{went} from {number(figures.baseline, unit)} to {number(figures.value, unit)}"


def _moved(figures: Figures) -> str:
    if figures.baseline is None:
        return ""
    went = "up" if figures.value >= figures.baseline else "down"
    return f"{went} from {percent(figures.baseline)}, "


def _traces(count: int) -> str:
    return f"{count} trace" if count == 1 else f"{count} traces"
