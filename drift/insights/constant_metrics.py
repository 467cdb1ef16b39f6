"""Find metrics that had the same value on every record of a period."""

from collections.abc import Iterator

from ragtide.drift.insights.data import PeriodData, merge
from ragtide.drift.insights.model import AppEnvironment, Insight, share_estimate
from ragtide.drift.insights.registry import insight
from ragtide.drift.problems.classification import type_of
from ragtide.drift.stats.proportions import Share, wilson
from ragtide.drift.text import number, percent
from ragtide.drift.windows.metrics import MetricRef

MIN_RECORDS = 100
_SCORES = ("accuracy", "retrieval")


@insight(reads=PeriodData)
def constant_metrics(data: PeriodData) -> Iterator[Insight]:
    """One insight for each constant primary metric of an application, over all models; not of guards at their best."""
    for group, own in merge(data.totals, model="", prompt_version="").items():
        if own.n < MIN_RECORDS or own.min != own.max or _is_guard_at_best(data.primary[group.metric], own.min):
            continue
        others = Share(0, own.n)
        yield Insight(
            type="data",
            where=AppEnvironment(group.app, group.environment),
            identity=("constant", group.metric),
            sentence=(
                f"{group.metric} was {number(own.min)} on all of {own.n} traces, so it "
                f"does not tell them apart; at most {percent(wilson(others).high)} of answers would have another value"
            ),
            figures={
                "kind": "constant",
                "metric": group.metric,
                "value": own.min,
                "samples": own.n,
                **share_estimate("others_share", others),
            },
            actions=(
                "Look at a few traces: does the evaluator get what it needs (contexts, references, classes)?",
                "Where it does and nothing can be told by it here, switch it off: evaluators.enabled.",
            ),
        )


def _is_guard_at_best(metric_ref: MetricRef, value: float) -> bool:
    """Whether it looks for something rare and found nothing: a good result is no constant metric."""
    best = metric_ref.metric.high if metric_ref.metric.better == "higher" else metric_ref.metric.low
    rule = metric_ref.evaluator.rule_of(metric_ref.metric)
    return value == best and (rule != "mean" or type_of(metric_ref, rule) not in _SCORES)
