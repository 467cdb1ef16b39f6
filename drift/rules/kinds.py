"""Evaluate one window by each kind of rule: any, mean, share, value and coverage. Pure.

A value equal to a bound, but for rounding, is good. Rule `value` evaluates what the evaluator's `combine` makes of the
window's parts: pooled windows and the prompt versions of a model add their parts, and values are never averaged."""

from dataclasses import replace
from typing import NamedTuple

from ragtide.drift.rules.model import Rule, RuleResult, Series, Window
from ragtide.drift.windows.window_metrics import segment_value_of
from ragtide.evaluators.combining import combine_parts


def evaluate_any(window: Window, rule: Rule, allowed: int = 0) -> RuleResult:
    """Breached where a record is beyond the lines; `allowed` of them are excused by the allow-list."""
    bad = max(rule.bad_count(window) - allowed, 0)
    return RuleResult(float(bad), 0.0, bad > 0, window.scored, bad)


def evaluate_share(window: Window, rule: Rule) -> RuleResult:
    """Breached where the share of records beyond the lines is above the limit."""
    bad = rule.bad_count(window)
    share = bad / window.scored
    return RuleResult(share, rule.limit, share > rule.limit, window.scored, bad)


def evaluate_coverage(window: Window, rule: Rule) -> RuleResult:
    """Breached where the share of applicable records without a score is above the limit."""
    share = window.failed / window.applicable
    return RuleResult(share, rule.limit, share > rule.limit, window.applicable, window.failed)


ROUNDING = 1e-9  # a mean of equal numbers may differ from them in its last digits


class BoundCheck(NamedTuple):
    """The line that was crossed; where none was, the one that is nearest."""

    threshold: float
    breached: bool


def breached_bound(value: float, rule: Rule) -> BoundCheck:
    """Equal to a line, but for rounding, is good. A rule has at least one line."""
    if rule.min is not None and value < rule.min - ROUNDING * abs(rule.min):
        return BoundCheck(rule.min, True)
    if rule.max is not None and value > rule.max + ROUNDING * abs(rule.max):
        return BoundCheck(rule.max, True)
    bounds = [bound for bound in (rule.min, rule.max) if bound is not None]
    return BoundCheck(min(bounds, key=lambda bound: abs(bound - value)), False)


def evaluate_mean(window: Window, rule: Rule) -> RuleResult:
    """Breached where the mean lies below the least or above the greatest good value."""
    mean = window.sum / window.scored
    threshold, breached = breached_bound(mean, rule)
    return RuleResult(mean, threshold, breached, window.scored, rule.bad_count(window))


def evaluate_value(window: Window, rule: Rule, series: Series) -> RuleResult | None:
    """Breached where the window's number lies beyond a line; None where its parts tell none."""
    metric, made = rule.metric_ref.metric, combine_parts(rule.metric_ref.evaluator, window.parts)
    if metric.per:
        classes = made.per.get(metric.key, {}).items()
        value = next((v.value for labels, v in classes if segment_value_of(labels) == series.segment_value), None)
    else:
        value = made.metrics.get(metric.key)
    if value is None:
        return None
    threshold, breached = breached_bound(value, rule)
    # Which of them are wrong is known of all records together, not of a class.
    bad = 0 if metric.per else record_source(series, rule).rule.bad_count(window)
    return RuleResult(value, threshold, breached, window.scored, bad)


class RecordSource(NamedTuple):
    """Where the records of a series are, the rule that tells bad ones, and of which class they are ('': of any)."""

    series: Series
    rule: Rule
    class_: str


def record_source(series: Series, rule: Rule) -> RecordSource:
    """A window metric's records are told apart by what each alone has of the carrier, and by the carrier's threshold.

    Where the rule watches the carrier itself, its lines are those of records too.
    """
    carrier, metric = rule.metric_ref.counts_metric, rule.metric_ref.metric
    if carrier is None or carrier.metric is metric:
        return RecordSource(series, rule, "")
    threshold, higher = carrier.metric.threshold, carrier.metric.better == "higher"
    by_carrier = replace(rule, metric_ref=carrier, min=threshold if higher else None, max=None if higher else threshold)
    if not metric.per:
        return RecordSource(series._replace(metric=carrier.name), by_carrier, "")
    whole = series._replace(metric=carrier.name, segment="", segment_value="")
    return RecordSource(whole, by_carrier, series.segment_value)
