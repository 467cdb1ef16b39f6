"""Find metrics that had the same value on every record of a period."""

from collections.abc import Iterator

from ragtide.drift.insights.data import PeriodData, merge
from ragtide.drift.insights.model import AppEnvironment, Insight, insight, share_estimate
from ragtide.drift.stats import Share
from ragtide.drift.text import number
from ragtide.drift.windows import MetricRef

MIN_RECORDS = 100


@insight(reads=PeriodData)
def constant_metrics(data: PeriodData) -> Iterator[Insight]:
    """Find constant primary metrics of each application, over all models, except those at their best."""
    for group, own in merge(data.totals, model="", prompt_version="").items():
        if own.n < MIN_RECORDS or own.min != own.max or _is_at_best(data.primary[group.metric], own.min):
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


def _is_at_best(metric_ref: MetricRef, value: float) -> bool:
    """Whether no record can be better. A metric with a threshold that finds no fault in safe traffic works."""
    metric = metric_ref.metric
    return metric.threshold is not None and value == (metric.high if metric.better == "higher" else metric.low)
