"""Rule `value`: the window's own number is on the wrong side of the line.

It is what the evaluator's `combine` makes of the window's parts. Windows that are pooled, and the prompt versions of a
model, add their parts; numbers of theirs are never averaged.
"""

from dataclasses import replace
from typing import NamedTuple

from drift.rules.lines import crossed
from drift.rules.series import Judgement, Rule, Series, Window
from drift.windows.values import segment_value_of
from evaluators.combining import combined


def judge(window: Window, rule: Rule, series: Series) -> Judgement | None:
    """Breached where the window's number lies beyond a line; None where its parts tell none."""
    metric, made = rule.watched.metric, combined(rule.watched.evaluator, window.parts)
    if metric.per:
        classes = made.per.get(metric.key, {}).items()
        value = next((v.value for labels, v in classes if segment_value_of(labels) == series.segment_value), None)
    else:
        value = made.metrics.get(metric.key)
    if value is None:
        return None
    threshold, breached = crossed(value, rule)
    # Which of them are wrong is known of all records together, not of a class.
    wrong = 0 if metric.per else records_behind(series, rule).rule.wrong(window)
    return Judgement(value, threshold, breached, window.scored, wrong)


class Behind(NamedTuple):
    """Where the records of a series are, the rule that tells bad ones, and of which class they are ('': of any)."""

    series: Series
    rule: Rule
    class_: str


def records_behind(series: Series, rule: Rule) -> Behind:
    """A window metric's records are told apart by what each alone has of the carrier, and by the carrier's threshold.

    Where the rule watches the carrier itself, its lines are those of records too.
    """
    carrier, metric = rule.watched.carrier, rule.watched.metric
    if carrier is None or carrier.metric is metric:
        return Behind(series, rule, "")
    threshold, higher = carrier.metric.threshold, carrier.metric.better == "higher"
    by_carrier = replace(
        rule, watched=carrier, least=threshold if higher else None, greatest=None if higher else threshold
    )
    if not metric.per:
        return Behind(series._replace(metric=carrier.name), by_carrier, "")
    whole = series._replace(metric=carrier.name, segment="", segment_value="")
    return Behind(whole, by_carrier, series.segment_value)
