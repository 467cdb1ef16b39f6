"""One sentence an operator understands: what moved, from what to what, since when, where, on how many traces."""

from dataclasses import dataclass
from datetime import datetime

from ragtide.drift.rules.model import Rule, Series
from ragtide.drift.text import number, percent, timestamp


@dataclass(frozen=True, slots=True)
class Statistics:
    """The numbers of a problem. `value` and `baseline` are means of the bad windows and of good ones before them."""

    value: float
    threshold: float
    baseline: float | None
    effect_size: float | None
    samples: int
    bad: int
    traffic: int  # traces of the app in the same time, all models together
    reasons: tuple[str, ...] = ()


def describe(series: Series, rule: Rule, statistics: Statistics, since: datetime) -> str:
    """The sentence. It quotes no trace."""
    match rule.kind:
        case "any":
            message = f"{_trace_count(statistics.bad)} of {statistics.samples} did not pass {series.metric}"
            message += "; one is too many"
        case "share":
            message = f"{percent(statistics.value)} of the traces did not pass {series.metric}"
            message += f", {_baseline_clause(statistics)}above the limit of {percent(rule.limit)}"
            message += f": {statistics.bad} of {_trace_count(statistics.samples)}"
        case "coverage":
            message = (
                f"{percent(statistics.value)} of the traces that {rule.metric_ref.evaluator.id} should have scored"
            )
            message += f" got no score, above the limit of {percent(rule.limit)}"
            message += f": {statistics.bad} of {_trace_count(statistics.samples)}"
            message += f" ({', '.join(statistics.reasons)})" if statistics.reasons else ""
        case _:
            unit = rule.metric_ref.metric.unit or ""
            below = rule.min is not None and statistics.threshold == rule.min
            message = f"{'the mean of ' if rule.kind == 'mean' else ''}{series.metric} {_change(statistics, unit)}, "
            message += "below " if below else "above "
            message += f"{number(statistics.threshold, unit)}, on {_trace_count(statistics.samples)}"
            # Of a class of a window it is not known which records are wrong.
            message += "" if rule.metric_ref.metric.per else f", {statistics.bad} of them on the wrong side"
    return f"{series.label}: {message}; since {timestamp(since)}."


def _change(statistics: Statistics, unit: str) -> str:
    if statistics.baseline is None:
        return f"is {number(statistics.value, unit)}"
    direction = "fell" if statistics.value < statistics.baseline else "rose"
    return f"{direction} from {number(statistics.baseline, unit)} to {number(statistics.value, unit)}"


def _baseline_clause(statistics: Statistics) -> str:
    if statistics.baseline is None:
        return ""
    direction = "up" if statistics.value >= statistics.baseline else "down"
    return f"{direction} from {percent(statistics.baseline)}, "


def _trace_count(count: int) -> str:
    return f"{count} trace" if count == 1 else f"{count} traces"
