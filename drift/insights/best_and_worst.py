"""Find the model that does best in a metric and the one that does worst, and the same of a model's prompt versions.

The best and the worst of many differ by chance alone: intervals and p are adjusted for all pairs (Bonferroni), and p
again for all metrics of an application (Benjamini and Hochberg)."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from ragtide.drift.insights.data import Group, MetricTotals, PeriodData, merge
from ragtide.drift.insights.model import AppEnvironment, Insight, estimate, insight
from ragtide.drift.problems import type_of
from ragtide.drift.stats import (
    Difference,
    Interval,
    benjamini_hochberg,
    fisher_p,
    share_difference,
    unpaired_difference,
)
from ragtide.drift.text import number
from ragtide.drift.windows import MetricRef

MIN_RECORDS = 50  # records of each
TOLERANCE = 0.02  # of the metric's range: a smaller difference does not matter
_ALPHA = 0.05
_TYPES = {"retrieval": "retrieval", "fairness": "fairness", "privacy": "privacy", "security": "privacy"}
_NOUNS = {"model": "model", "prompt_version": "prompt version"}


class Extreme(NamedTuple):
    """One of the groups, under what it is compared by."""

    name: str
    totals: MetricTotals

    @property
    def figures(self) -> dict[str, Any]:
        """Name, count and mean."""
        return {"name": self.name, "samples": self.totals.n, "mean": self.totals.mean}


class Extremes(NamedTuple):
    """The best and the worst of `compared` groups that differ in `by` alone; `difference` is never negative.

    `among` has what the groups have in common.
    """

    metric_ref: MetricRef
    by: Literal["model", "prompt_version"]
    among: Group
    best: Extreme
    worst: Extreme
    compared: int
    difference: Difference

    @property
    def tolerance(self) -> float:
        """In the metric's unit."""
        return TOLERANCE * (self.metric_ref.metric.high - self.metric_ref.metric.low)


@insight(reads=PeriodData)
def best_and_worst(data: PeriodData) -> Iterator[Insight]:
    """Find at most one insight per metric and application on models, and one per model on prompt versions.

    Only of bounded metrics: a few records make the mean of one without bounds.
    """
    by_app: dict[AppEnvironment, list[Extremes]] = {}
    models = merge(data.totals, prompt_version="")
    for one in (*_extremes("model", models, data.primary), *_extremes("prompt_version", data.totals, data.primary)):
        by_app.setdefault(AppEnvironment(one.among.app, one.among.environment), []).append(one)
    for where, compared in sorted(by_app.items()):
        adjusted = benjamini_hochberg([1.0 if one.difference.p is None else one.difference.p for one in compared])
        for one, p in zip(compared, adjusted, strict=True):
            low, high = one.difference.low, one.difference.high
            if p <= _ALPHA and low is not None and high is not None and low >= one.tolerance:
                yield _insight(where, one, p, Interval(low, high))


def _extremes(
    by: Literal["model", "prompt_version"], totals: Mapping[Group, MetricTotals], metrics: Mapping[str, MetricRef]
) -> Iterator[Extremes]:
    """Compare the extremes of every set of groups that differ in nothing else."""
    sets: dict[Group, list[Extreme]] = {}
    for group, own in sorted(totals.items()):
        name = getattr(group, by)
        if name and metrics[group.metric].metric.bounded and own.n >= MIN_RECORDS:
            sets.setdefault(group._replace(**{by: ""}), []).append(Extreme(name, own))
    for among, groups in sets.items():
        if len(groups) > 1:
            low, *_, high = sorted(groups, key=lambda one: one.totals.mean)
            metric_ref = metrics[among.metric]
            best, worst = (high, low) if metric_ref.metric.better == "higher" else (low, high)
            found = _difference(low.totals, high.totals, len(groups) * (len(groups) - 1) // 2)
            yield Extremes(metric_ref, by, among, best, worst, len(groups), found)


def _difference(low: MetricTotals, high: MetricTotals, pairs: int) -> Difference:
    """Compare two means among so many pairs: shares by Newcombe with Fisher's p, others by Welch."""
    few, many = low.share, high.share
    if few is not None and many is not None:
        reach = share_difference(many, few, 1 - _ALPHA / pairs)
        p = min(1.0, 2 * pairs * fisher_p(many, few))
        return Difference(many.value - few.value, reach.low, reach.high, p)
    found = unpaired_difference(low.sample, high.sample, 1 - _ALPHA / pairs)
    return Difference(found.value, found.low, found.high, None if found.p is None else min(1.0, pairs * found.p))


def _insight(where: AppEnvironment, one: Extremes, p: float, interval: Interval) -> Insight:
    metric, best, worst = one.metric_ref.name, one.best, one.worst
    model = one.among.model if one.by == "prompt_version" else ""
    are_shares = best.totals.share is not None and worst.totals.share is not None
    figure = "share" if are_shares else "mean"
    assert one.difference.value is not None
    return Insight(
        type=_TYPES.get(type_of(one.metric_ref, "mean"), "performance_comparison"),
        where=where,
        identity=("best_and_worst", one.by, metric, model),
        message=(
            f"{best.name} is the best of {one.compared} {_NOUNS[one.by]}s{f' of model {model}' if model else ''} in "
            f"{metric}, {worst.name} the worst: {figure} {number(best.totals.mean)} on {best.totals.n:,} traces, "
            f"{number(worst.totals.mean)} on {worst.totals.n:,}. "
            f"The {figure}s differ by {interval.low:.3g} to {interval.high:.3g}"
        ),
        figures={
            "kind": "best_and_worst",
            "metric": metric,
            "by": one.by,
            "model": model if one.by == "prompt_version" else None,
            "best": best.figures,
            "worst": worst.figures,
            **estimate("difference", one.difference.value, interval),
            "margin": one.tolerance,
            "p": p,
            "compared": one.compared,
            "method": "newcombe" if are_shares else "welch",
        },
        actions=(
            f"Did both get the same questions? If not, replay those of {worst.name} with {best.name} and compare the "
            "runs: ragtide replay, ragtide compare.",
            f"If they did, move traffic to {best.name}, unless its quality is not worth its latency or cost.",
        ),
    )
