"""Metrics that tell nothing, since every record of a period had the same value. Pure."""

from collections.abc import Mapping

from ragtide.drift.insights.data import Group, MetricTotals
from ragtide.drift.insights.model import Insight
from ragtide.drift.problems.classification import type_of
from ragtide.drift.rules.kinds import KINDS
from ragtide.drift.stats.proportions import Share, wilson
from ragtide.drift.text import number, percent, scope_label
from ragtide.drift.windows.metrics import MetricRef

MIN_RECORDS = 100  # records
_SCORES = ("accuracy", "retrieval")


def constant_metrics(found: Mapping[Group, MetricTotals], metrics: Mapping[str, MetricRef]) -> list[Insight]:
    """Of the primary metrics of an application, whatever model it had; guards at their best are left out."""
    whole: dict[tuple[str, str, str], MetricTotals] = {}
    for group, own in sorted(found.items()):
        key = (group.app, group.environment, group.metric)
        whole[key] = whole[key] + own if key in whole else own
    return [
        _insight(app, environment, metrics[name], own)
        for (app, environment, name), own in whole.items()
        if metrics[name].metric.primary
        and own.n >= MIN_RECORDS
        and own.min == own.max
        and not _is_guard_at_best(metrics[name], own.min)
    ]


def _is_guard_at_best(metric_ref: MetricRef, value: float) -> bool:
    """Whether it is there to find what is rare, and found nothing: that nothing leaked is what one wants to hear."""
    best = metric_ref.metric.high if metric_ref.metric.better == "higher" else metric_ref.metric.low
    rule = metric_ref.evaluator.rule_of(metric_ref.metric)
    return value == best and (not KINDS[rule].is_average or type_of(metric_ref, rule) not in _SCORES)


def _insight(app: str, environment: str, metric_ref: MetricRef, own: MetricTotals) -> Insight:
    others = wilson(Share(0, own.n))
    return Insight(
        type="data",
        app=app,
        environment=environment,
        identity=("constant", metric_ref.name),
        description=(
            f"{scope_label(app, environment)}: {metric_ref.name} was {number(own.min)} on all of {own.n} traces, so it "
            f"does not tell them apart; at most {percent(others.high)} of answers would have another value."
        ),
        attributes={
            "kind": "constant",
            "metric": metric_ref.name,
            "value": own.min,
            "samples": own.n,
            "others_share": 0.0,
            "others_share_interval": list(others),
        },
        examples=(),
        actions=(
            "Look at a few traces: does the evaluator get what it needs (contexts, references, classes)?",
            "Where it does and nothing can be told by it here, switch it off: evaluators.enabled.",
        ),
    )
