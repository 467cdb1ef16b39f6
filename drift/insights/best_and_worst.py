"""Which model does best in a metric and which worst, and of one model's prompt versions which; where that is sure.

The best and the worst of many differ by chance alone: intervals and p are of all pairs that there are (Bonferroni), and
p again of all metrics of an application (Benjamini and Hochberg).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from drift.compare.difference import Difference, adjusted, unpaired
from drift.insights.insight import Finding
from drift.insights.measured import Group, Measured, together
from drift.insights.shares import difference, more_often
from drift.phrases import number, whereabouts
from drift.problems.taxonomy import type_of
from drift.windows.metrics import WatchedMetric

LEAST = 50  # records of each
MARGIN = 0.02  # of the metric's range: what is nobody's business
_CHANCE = 0.05
_TYPES = {"retrieval": "retrieval", "fairness": "fairness", "privacy": "privacy", "security": "privacy"}
_NOUNS = {"model": "model", "prompt_version": "prompt version"}


class Extremes(NamedTuple):
    """The best and the worst of `compared` groups that differ in `by`; `better` is by how much, never negative."""

    watched: WatchedMetric
    by: str
    best: Group
    worst: Group
    of_best: Measured
    of_worst: Measured
    compared: int
    better: Difference


def best_and_worst(found: Mapping[Group, Measured], metrics: Mapping[str, WatchedMetric]) -> list[Finding]:
    """At most one finding per metric and application on models, and one per model on prompt versions.

    Of bounded metrics alone: the mean of one without bounds is made by a few records.
    """
    places: dict[tuple[str, str], list[Extremes]] = {}
    for one in (*_of("model", together(found), metrics), *_of("prompt_version", found, metrics)):
        places.setdefault((one.best.app, one.best.environment), []).append(one)
    told = []
    for _, tried in sorted(places.items()):
        chances = adjusted([one.better.p if one.better.p is not None else 1.0 for one in tried])
        told += [_finding(one, p) for one, p in zip(tried, chances, strict=True) if _is_sure(one, p)]
    return told


def _is_sure(one: Extremes, p: float) -> bool:
    return p <= _CHANCE and one.better.low is not None and one.better.low >= _margin(one.watched)


def _margin(watched: WatchedMetric) -> float:
    return MARGIN * (watched.metric.high - watched.metric.low)


def _of(by: str, found: Mapping[Group, Measured], metrics: Mapping[str, WatchedMetric]) -> Iterator[Extremes]:
    """Of each set of groups that differ in nothing else."""
    sets: dict[Group, list[Group]] = {}
    for group in sorted(found):
        watched = metrics[group.metric].metric
        if getattr(group, by) and watched.bounded and watched.primary and found[group].n >= LEAST:
            sets.setdefault(group._replace(**{by: ""}), []).append(group)
    for groups in sets.values():
        if len(groups) > 1:
            yield _extremes(by, groups, found, metrics[groups[0].metric])


def _extremes(by: str, groups: Sequence[Group], found: Mapping[Group, Measured], watched: WatchedMetric) -> Extremes:
    ranked = sorted(groups, key=lambda group: found[group].mean)
    worst, best = (ranked[0], ranked[-1]) if watched.metric.better == "higher" else (ranked[-1], ranked[0])
    low, high = found[ranked[0]], found[ranked[-1]]
    better = _difference(low, high, len(groups) * (len(groups) - 1) // 2)
    return Extremes(watched, by, best, worst, found[best], found[worst], len(groups), better)


def _difference(low: Measured, high: Measured, pairs: int) -> Difference:
    """Of two means of so many pairs: of shares after Newcombe with Fisher's p, of others after Welch."""
    few, many = low.share, high.share
    if few is not None and many is not None:
        reach = difference(many, few, 1 - _CHANCE / pairs)
        p = min(1.0, 2 * pairs * more_often(many, few))
        return Difference(many.value - few.value, reach.low, reach.high, p)
    told = unpaired(low.sample, high.sample, 1 - _CHANCE / pairs)
    return Difference(told.value, told.low, told.high, None if told.p is None else min(1.0, pairs * told.p))


def _finding(one: Extremes, p: float) -> Finding:
    noun, metric, better = _NOUNS[one.by], one.watched.name, one.better
    best, worst = (getattr(group, one.by) for group in (one.best, one.worst))
    of = f" of model {one.best.model}" if one.by == "prompt_version" else ""
    where = whereabouts(one.best.app, one.best.environment)
    share = "share" if one.of_best.share is not None and one.of_worst.share is not None else "mean"
    return Finding(
        type=_TYPES.get(type_of(one.watched, "mean"), "performance_comparison"),
        app=one.best.app,
        environment=one.best.environment,
        identity=("best_and_worst", one.by, metric, one.best.model if one.by == "prompt_version" else ""),
        description=(
            f"{where}: of {one.compared} {noun}s{of}, {best} does best in {metric} "
            f"and {worst} worst: {share} {number(one.of_best.mean)} on {one.of_best.n} traces against "
            f"{number(one.of_worst.mean)} on {one.of_worst.n}; {better.low:.3g} to {better.high:.3g} apart."
        ),
        attributes={
            "kind": "best_and_worst",
            "metric": metric,
            "by": one.by,
            "model": one.best.model if one.by == "prompt_version" else None,
            "best": {"name": best, "samples": one.of_best.n, "mean": one.of_best.mean},
            "worst": {"name": worst, "samples": one.of_worst.n, "mean": one.of_worst.mean},
            "difference": better.value,
            "difference_interval": [better.low, better.high],
            "margin": _margin(one.watched),
            "p": p,
            "compared": one.compared,
            "method": "newcombe" if share == "share" else "welch",
        },
        examples=(),
        actions=(
            f"Did both get the same questions? If not, replay those of {worst} with {best} and compare the runs: "
            "ragwatch replay, ragwatch compare.",
            f"Where they did, give {best} more of the traffic, unless it is slower or dearer than it is worth.",
        ),
    )
