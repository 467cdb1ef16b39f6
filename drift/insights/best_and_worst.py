"""Which model does best in a metric and which worst, and of one model's prompt versions which; where that is sure.

The best and the worst of many differ by chance alone: intervals and p are of all pairs that there are (Bonferroni), and
p again of all metrics of an application (Benjamini and Hochberg).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ragtide.drift.insights.data import Group, MetricTotals, merge_prompt_versions
from ragtide.drift.insights.model import Insight
from ragtide.drift.problems.classification import type_of
from ragtide.drift.stats.means import Difference, benjamini_hochberg, unpaired_difference
from ragtide.drift.stats.proportions import difference, fisher_p
from ragtide.drift.text import number, scope_label
from ragtide.drift.windows.metrics import MetricRef

MIN_RECORDS = 50  # records of each
TOLERANCE = 0.02  # of the metric's range: what is nobody's business
_ALPHA = 0.05
_TYPES = {"retrieval": "retrieval", "fairness": "fairness", "privacy": "privacy", "security": "privacy"}
_NOUNS = {"model": "model", "prompt_version": "prompt version"}


class Extremes(NamedTuple):
    """The best and the worst of `compared` groups that differ in `by`; `better` is by how much, never negative."""

    metric_ref: MetricRef
    by: str
    best: Group
    worst: Group
    best_totals: MetricTotals
    worst_totals: MetricTotals
    compared: int
    difference: Difference


def best_and_worst(found: Mapping[Group, MetricTotals], metrics: Mapping[str, MetricRef]) -> list[Insight]:
    """At most one finding per metric and application on models, and one per model on prompt versions.

    Of bounded metrics alone: the mean of one without bounds is made by a few records.
    """
    places: dict[tuple[str, str], list[Extremes]] = {}
    for one in (
        *_extremes_by("model", merge_prompt_versions(found), metrics),
        *_extremes_by("prompt_version", found, metrics),
    ):
        places.setdefault((one.best.app, one.best.environment), []).append(one)
    told = []
    for _, compared in sorted(places.items()):
        chances = benjamini_hochberg([one.difference.p if one.difference.p is not None else 1.0 for one in compared])
        told += [_insight(one, p) for one, p in zip(compared, chances, strict=True) if _is_sure(one, p)]
    return told


def _is_sure(one: Extremes, p: float) -> bool:
    return p <= _ALPHA and one.difference.low is not None and one.difference.low >= _tolerance(one.metric_ref)


def _tolerance(metric_ref: MetricRef) -> float:
    return TOLERANCE * (metric_ref.metric.high - metric_ref.metric.low)


def _extremes_by(by: str, found: Mapping[Group, MetricTotals], metrics: Mapping[str, MetricRef]) -> Iterator[Extremes]:
    """Of each set of groups that differ in nothing else."""
    sets: dict[Group, list[Group]] = {}
    for group in sorted(found):
        watched = metrics[group.metric].metric
        if getattr(group, by) and watched.bounded and watched.primary and found[group].n >= MIN_RECORDS:
            sets.setdefault(group._replace(**{by: ""}), []).append(group)
    for groups in sets.values():
        if len(groups) > 1:
            yield _extremes(by, groups, found, metrics[groups[0].metric])


def _extremes(by: str, groups: Sequence[Group], found: Mapping[Group, MetricTotals], metric_ref: MetricRef) -> Extremes:
    ranked = sorted(groups, key=lambda group: found[group].mean)
    worst, best = (ranked[0], ranked[-1]) if metric_ref.metric.better == "higher" else (ranked[-1], ranked[0])
    low, high = found[ranked[0]], found[ranked[-1]]
    better = _difference(low, high, len(groups) * (len(groups) - 1) // 2)
    return Extremes(metric_ref, by, best, worst, found[best], found[worst], len(groups), better)


def _difference(low: MetricTotals, high: MetricTotals, pairs: int) -> Difference:
    """Of two means of so many pairs: of shares after Newcombe with Fisher's p, of others after Welch."""
    few, many = low.share, high.share
    if few is not None and many is not None:
        reach = difference(many, few, 1 - _ALPHA / pairs)
        p = min(1.0, 2 * pairs * fisher_p(many, few))
        return Difference(many.value - few.value, reach.low, reach.high, p)
    told = unpaired_difference(low.sample, high.sample, 1 - _ALPHA / pairs)
    return Difference(told.value, told.low, told.high, None if told.p is None else min(1.0, pairs * told.p))


def _insight(one: Extremes, p: float) -> Insight:
    noun, metric, better = _NOUNS[one.by], one.metric_ref.name, one.difference
    best, worst = (getattr(group, one.by) for group in (one.best, one.worst))
    of = f" of model {one.best.model}" if one.by == "prompt_version" else ""
    where = scope_label(one.best.app, one.best.environment)
    share = "share" if one.best_totals.share is not None and one.worst_totals.share is not None else "mean"
    return Insight(
        type=_TYPES.get(type_of(one.metric_ref, "mean"), "performance_comparison"),
        app=one.best.app,
        environment=one.best.environment,
        identity=("best_and_worst", one.by, metric, one.best.model if one.by == "prompt_version" else ""),
        description=(
            f"{where}: of {one.compared} {noun}s{of}, {best} does best in {metric} "
            f"and {worst} worst: {share} {number(one.best_totals.mean)} on {one.best_totals.n} traces against "
            f"{number(one.worst_totals.mean)} on {one.worst_totals.n}; {better.low:.3g} to {better.high:.3g} apart."
        ),
        attributes={
            "kind": "best_and_worst",
            "metric": metric,
            "by": one.by,
            "model": one.best.model if one.by == "prompt_version" else None,
            "best": {"name": best, "samples": one.best_totals.n, "mean": one.best_totals.mean},
            "worst": {"name": worst, "samples": one.worst_totals.n, "mean": one.worst_totals.mean},
            "difference": better.value,
            "difference_interval": [better.low, better.high],
            "margin": _tolerance(one.metric_ref),
            "p": p,
            "compared": one.compared,
            "method": "newcombe" if share == "share" else "welch",
        },
        examples=(),
        actions=(
            f"Did both get the same questions? If not, replay those of {worst} with {best} and compare the runs: "
            "ragtide replay, ragtide compare.",
            f"Where they did, give {best} more of the traffic, unless it is slower or dearer than it is worth.",
        ),
    )
