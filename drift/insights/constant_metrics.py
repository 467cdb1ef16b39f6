"""Find metrics that had the same value on every record of a period."""

from collections.abc import Iterator

from ragtide.drift.insights.data import PeriodData, merge
from ragtide.drift.insights.model import AppEnvironment, Insight, share_estimate
from ragtide.drift.insights.registry import insight
from ragtide.drift.problems.classification import type_of
from ragtide.drift.rules.kinds import KINDS
from ragtide.drift.stats.proportions import Share
from ragtide.drift.text import number
from ragtide.drift.windows.metrics import MetricRef

MIN_RECORDS = 100
_SCORES = ("accuracy", "retrieval")


@insight(reads=PeriodData)
def constant_metrics(data: PeriodData) -> Iterator[Insight]:
    """One insight for each constant primary metric of an application, over all models; not of guards at their best."""
    for group, own in merge(data.totals, model="", prompt_version="").items():
        if own.n < MIN_RECORDS or own.min != own.max or _is_guard_at_best(data.primary[group.metric], own.min):
            continue
        yield Insight(
            type="data",
            where=AppEnvironment(group.app, group.environment),
            identity=("constant", group.metric),
            message=f"{group.metric} was {number(own.min)} on all {own.n:,} traces: it carries no information here",
            figures={
                "kind": "constant",
                "metric": group.metric,
                "value": own.min,
                "samples": own.n,
                **share_estimate("others_share", Share(0, own.n)),
            },
            actions=(
                "Look at a few traces. Does the evaluator get what it needs (contexts, references, classes)?",
                "If it does, disable the evaluator for this traffic: evaluators.enabled.",
            ),
        )


def _is_guard_at_best(metric_ref: MetricRef, value: float) -> bool:
    """Whether it looks for something rare and found nothing: a good result is no constant metric."""
    best = metric_ref.metric.high if metric_ref.metric.better == "higher" else metric_ref.metric.low
    rule = metric_ref.evaluator.rule_of(metric_ref.metric)
    return value == best and (not KINDS[rule].is_average or type_of(metric_ref, rule) not in _SCORES)
