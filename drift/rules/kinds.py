"""The kinds of rules, one class each: it evaluates windows, describes what is bad, and charts it. Pure.

A new kind is a class here, a name in `evaluators.spec.RuleKind` and a row in docs/custom-evaluators.md.
"""

from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from ragtide.drift.attributes import Evidence
from ragtide.drift.rules.model import ChartSeries, ReferenceLine, Rule, RuleKind, RuleResult, Series, Statistics, Window
from ragtide.drift.text import number, percent, timestamp
from ragtide.drift.windows import (
    MetricRef,
    WeightedShare,
    bin_bounds,
    count_out_of_bounds,
    segment_value_of,
    weighted_bad_share,
    weighted_share,
)
from ragtide.evaluators.combining import combine_parts
from ragtide.evaluators.prediction_powered import estimate, sums_of

ROUNDING = 1e-9  # a mean of equal numbers may differ from them in its last digits


class Mean(RuleKind):
    """The mean of the records' scores is below the smallest or above the largest good value.

    It is the estimate for all traces if the window holds sums of a sample.
    """

    name = "mean"
    is_average = True

    def evaluate(self, window: Window, rule: Rule, series: Series, allowed: int = 0) -> RuleResult | None:
        bad = _as_count(_weighted_share(window, rule), window, rule)
        metric, sums = rule.metric_ref.metric, sums_of(rule.metric_ref.metric.key, window.parts)
        if not sums:
            mean = window.sum / window.scored
            return RuleResult(mean, *breached_bound(mean, rule), window.scored, bad)
        made = estimate(sums)
        if made is None:  # no score of the sample: that of another trace says nothing about all
            return None
        mean, low, high = made.mean.within(metric.low, metric.high).value, made.mean.low, made.mean.high
        return RuleResult(mean, *breached_bound(mean, rule), window.scored, bad, low, high, made.mean.freedom)

    def describe(self, series: Series, rule: Rule, statistics: Statistics) -> str:
        return f"the mean of {_level_clause(series, rule, statistics)}"

    def chart_series(self, evidence: Evidence, metric: MetricRef | None) -> ChartSeries:
        line = reference_line("threshold", evidence.threshold)
        return mean_series(line) if metric is None or metric.evaluator.judge is None else estimate_series(line)


class Share(RuleKind):
    """The share of records beyond the bounds is above the limit."""

    name = "share"
    value_type = "share"

    def evaluate(self, window: Window, rule: Rule, series: Series, allowed: int = 0) -> RuleResult:
        found = _weighted_share(window, rule)
        bad = _as_count(found, window, rule)
        if found is None:
            return _share_result(rule, bad, window.scored)
        return RuleResult(
            found.value, rule.limit, found.value > rule.limit, window.scored, bad, *found.interval, found.freedom
        )

    def describe(self, series: Series, rule: Rule, statistics: Statistics) -> str:
        before = ""
        if statistics.baseline is not None:
            direction = "up" if statistics.value >= statistics.baseline else "down"
            before = f"{direction} from {percent(statistics.baseline)}, "
        rests_on = f"{statistics.bad} of {_trace_count(statistics.samples)}"
        if statistics.interval is not None:
            low, high = map(percent, statistics.interval)
            rests_on = f"95 % interval {low} to {high}, on {statistics.samples} judged traces"
        return (
            f"{percent(statistics.value)} of traces failed {series.metric}, {before}above the limit of "
            f"{percent(rule.limit)} ({rests_on})"
        )

    def chart_series(self, evidence: Evidence, metric: MetricRef | None) -> ChartSeries | None:
        return bad_share_series(evidence, metric)


class Value(RuleKind):
    """The number that the evaluator's `combine` makes of the window's parts is beyond a bound.

    Pooled windows and the prompt versions of a model add their parts; values are never averaged.
    """

    name = "value"
    per_record = False

    def evaluate(self, window: Window, rule: Rule, series: Series, allowed: int = 0) -> RuleResult | None:
        metric, combined = rule.metric_ref.metric, combine_parts(rule.metric_ref.evaluator, window.parts)
        if metric.per:
            classes = combined.per.get(metric.key, {}).items()
            value = next((v.value for labels, v in classes if segment_value_of(labels) == series.segment_value), None)
        else:
            value = combined.metrics.get(metric.key)
        if value is None:
            return None
        threshold, breached = breached_bound(value, rule)
        # Which records are bad is known of all together, not of a class.
        bad = 0 if metric.per else record_source(series, rule).rule.bad_count(window)
        return RuleResult(value, threshold, breached, window.scored, bad)

    def describe(self, series: Series, rule: Rule, statistics: Statistics) -> str:
        return _level_clause(series, rule, statistics)

    def chart_series(self, evidence: Evidence, metric: MetricRef | None) -> ChartSeries:
        value, records = "argMaxIf(value, scored, value IS NOT NULL)", "sumIf(scored, value IS NOT NULL)"
        line = reference_line("threshold", evidence.threshold)
        return ChartSeries("value of the largest window", value, records, line)


class ZeroTolerance(RuleKind):
    """A record is beyond the bounds, and no allow-list excuses it."""

    name = "any"
    value_type = "count"
    zero_tolerance = True

    def evaluate(self, window: Window, rule: Rule, series: Series, allowed: int = 0) -> RuleResult:
        bad = max(rule.bad_count(window) - allowed, 0)
        return RuleResult(float(bad), 0.0, bad > 0, window.scored, bad)

    def describe(self, series: Series, rule: Rule, statistics: Statistics) -> str:
        failed = f"{statistics.bad} of {_trace_count(statistics.samples)}"
        return f"{failed} failed {series.metric} (none allowed)"

    def chart_series(self, evidence: Evidence, metric: MetricRef | None) -> ChartSeries | None:
        return bad_share_series(evidence, metric)


class Coverage(RuleKind):
    """The share of applicable records without a score is above the limit. Every evaluator has this rule."""

    name = "coverage"
    value_type = "share"
    counts_unscored = True

    def evaluate(self, window: Window, rule: Rule, series: Series, allowed: int = 0) -> RuleResult:
        return _share_result(rule, window.failed, window.applicable)

    def describe(self, series: Series, rule: Rule, statistics: Statistics) -> str:
        reasons = f"; reasons: {', '.join(statistics.reasons)}" if statistics.reasons else ""
        return (
            f"{percent(statistics.value)} of applicable traces got no score from {rule.metric_ref.evaluator.id}, above "
            f"the limit of {percent(rule.limit)} ({statistics.bad} of {_trace_count(statistics.samples)}{reasons})"
        )

    def chart_series(self, evidence: Evidence, metric: MetricRef | None) -> ChartSeries:
        line = reference_line("limit", evidence.limit)
        return share_series("share without a score", "failed", "applicable", line)


MEAN, SHARE, VALUE, ANY, COVERAGE = Mean(), Share(), Value(), ZeroTolerance(), Coverage()
RULE_KINDS: dict[str, RuleKind] = {kind.name: kind for kind in (MEAN, SHARE, VALUE, ANY, COVERAGE)}


def describe_problem(series: Series, rule: Rule, statistics: Statistics, since: datetime) -> str:
    """Say in one sentence where, what, by how much and since when. It quotes no trace."""
    return f"{series.label}: {rule.kind.describe(series, rule, statistics)}, since {timestamp(since)}."


class BoundCheck(NamedTuple):
    """The bound that was crossed, or else the nearest one."""

    threshold: float
    breached: bool


def breached_bound(value: float, rule: Rule) -> BoundCheck:
    """Compare a value with the rule's bounds, of which there is at least one. Equal, but for rounding, is good."""
    if rule.min is not None and value < rule.min - ROUNDING * abs(rule.min):
        return BoundCheck(rule.min, True)
    if rule.max is not None and value > rule.max + ROUNDING * abs(rule.max):
        return BoundCheck(rule.max, True)
    bounds = [bound for bound in (rule.min, rule.max) if bound is not None]
    return BoundCheck(min(bounds, key=lambda bound: abs(bound - value)), False)


def _share_result(rule: Rule, bad: int, samples: int) -> RuleResult:
    share = bad / samples
    return RuleResult(share, rule.limit, share > rule.limit, samples, bad)


class RecordSource(NamedTuple):
    """The series that has the records, the rule that finds bad ones, and the class to which they belong ('': any)."""

    series: Series
    rule: Rule
    class_: str


def record_source(series: Series, rule: Rule) -> RecordSource:
    """Find the records behind a series: those of a window metric are judged by the carrier and its threshold.

    A rule on the carrier itself has its bounds for records too.
    """
    carrier, metric = rule.metric_ref.counts_metric, rule.metric_ref.metric
    if rule.kind.per_record or carrier is None or carrier.metric is metric:
        return RecordSource(series, rule, "")
    min_value, max_value = carrier.bounds
    by_carrier = replace(rule, metric_ref=carrier, min=min_value, max=max_value)
    if not metric.per:
        return RecordSource(series._replace(metric=carrier.name), by_carrier, "")
    whole = series._replace(metric=carrier.name, segment="", segment_value="")
    return RecordSource(whole, by_carrier, series.segment_value)


def share_series(name: str, part: str, whole: str, line: ReferenceLine | None) -> ChartSeries:
    """Chart a ratio of two sums over windows."""
    return ChartSeries(name, f"sum({part}) / sum({whole})", f"sum({whole})", line)


def mean_series(line: ReferenceLine | None) -> ChartSeries:
    """Chart the mean of the records' scores."""
    return share_series("mean", "windows.sum", "scored", line)


def estimate_series(line: ReferenceLine | None) -> ChartSeries:
    """Chart the mean that a judge would give to all traces: windows count by their traces, those not sampled too."""
    level, seen = "ifNull(estimate, windows.sum / scored)", "seen * (scored > 0)"
    return ChartSeries("mean", f"sumIf({level} * seen, scored > 0) / sum({seen})", "sum(scored)", line)


def bad_share_series(evidence: Evidence, metric: MetricRef | None) -> ChartSeries | None:
    """Chart the share of records beyond `min` and `max`; None without either, or where the metric is unknown."""
    bounds = evidence.min, evidence.max
    if metric is None or bounds == (None, None):
        return None
    bins, line = bin_bounds(metric.scale, *bounds), reference_line("limit", evidence.limit)
    found = share_series("share that failed", count_out_of_bounds(*bins), "scored", line)
    if metric.evaluator.judge is None:
        return found
    return found._replace(value=f"ifNull({weighted_bad_share(metric, *bins)}, {found.value})")


def reference_line(name: str, value: object) -> ReferenceLine | None:
    """Make the line; None where the value is no number."""
    return ReferenceLine(name, float(value)) if isinstance(value, int | float) else None


def _weighted_share(window: Window, rule: Rule) -> WeightedShare | None:
    """Return the share of bad records by their weights; None if the window holds no different weights."""
    return weighted_share(rule.metric_ref, window.parts, window.scored, rule.bad_sum) if window.parts else None


def _as_count(share: WeightedShare | None, window: Window, rule: Rule) -> int:
    """Return how many records are bad; by weights, as many as would be if they were a simple random sample."""
    return rule.bad_count(window) if share is None else round(share.value * window.scored)


def _level_clause(series: Series, rule: Rule, statistics: Statistics) -> str:
    unit = rule.metric_ref.metric.unit or ""
    change = f"is {number(statistics.value, unit)}"
    if statistics.baseline is not None:
        direction = "fell" if statistics.value < statistics.baseline else "rose"
        change = f"{direction} from {number(statistics.baseline, unit)} to {number(statistics.value, unit)}"
    side = "below" if rule.min is not None and statistics.threshold == rule.min else "above"
    threshold, traces = number(statistics.threshold, unit), _trace_count(statistics.samples)
    if statistics.interval is not None:
        low, high = (number(end, unit) for end in statistics.interval)
        interval = f"95 % interval {low} to {high}"
        return f"{series.metric} {change} ({interval}), {side} {threshold}, on {statistics.samples} judged traces"
    # Of a class of a window it is not known which records are bad.
    bad = "" if rule.metric_ref.metric.per else f" ({statistics.bad} failed)"
    return f"{series.metric} {change}, {side} {threshold}, on {traces}{bad}"


def _trace_count(count: int) -> str:
    return f"{count} trace" if count == 1 else f"{count} traces"
