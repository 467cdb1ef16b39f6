"""Decide which metrics changed between two runs, corrected for multiple testing. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ragtide.drift.compare.model import ChangeVerdict, CompareQuery, Comparison, MetricChange, MovedTrace, VersionPair
from ragtide.drift.stats import Difference, Sample, benjamini_hochberg, paired_difference, unpaired_difference
from ragtide.drift.windows import MetricRef
from ragtide.evaluators.errors import ConfigError

FAILURE = ""  # the metric key of failures: 1 where the evaluator failed, 0 where it scored


class EvaluatorRun(NamedTuple):
    """Failures and versions of one evaluator in a run."""

    failed: int
    fingerprints: tuple[str, ...]


class MetricSums(NamedTuple):
    """One metric's values: all of each run, and those of traces in both with their differences."""

    key: str
    a: Sample
    b: Sample
    pairs_a: float  # means of the pairs
    pairs_b: float
    differences: Sample
    moved: tuple[MovedTrace, ...]


RunSums = Mapping[str, Sequence[MetricSums]]  # by evaluator, of those that both runs have


def shared_evaluators(
    of_a: Mapping[str, EvaluatorRun], of_b: Mapping[str, EvaluatorRun], query: CompareQuery
) -> list[str]:
    """Name the evaluators of both runs that the query selects, sorted."""
    wanted = {name.partition(".")[0] for name in query.metrics}
    return [name for name in sorted(of_a.keys() & of_b.keys()) if not wanted or name in wanted]


def compare_sums(
    sums: RunSums,
    of_a: Mapping[str, EvaluatorRun],
    of_b: Mapping[str, EvaluatorRun],
    declared: Mapping[str, MetricRef],
    query: CompareQuery,
    incomplete: Sequence[str] = (),
) -> Comparison:
    """Compare every metric that both runs have, by name. Raises `ConfigError` for a metric that both lack.

    `sums` has the evaluators of `shared_evaluators`. The failure rate of an evaluator is compared as
    `evaluator.(failed)`.
    """
    changes = [
        _change(name, found, of_a[name], of_b[name], declared, query)
        for name, metrics in sums.items()
        for found in metrics
        if (found.key and _is_selected(f"{name}.{found.key}", query.metrics))
        or (not found.key and of_a[name].failed + of_b[name].failed)
    ]
    there = {change.metric for change in changes}
    if absent := [name for name in query.metrics if name not in there and name not in sums]:
        raise ConfigError(
            f"both runs lack {', '.join(absent)}; they share: {', '.join(sorted(of_a.keys() & of_b.keys()))}"
        )
    return Comparison(
        metrics=tuple(_with_verdicts(changes, query)),
        only_a=tuple(sorted(of_a.keys() - of_b.keys())),
        only_b=tuple(sorted(of_b.keys() - of_a.keys())),
        fingerprints={
            name: VersionPair(of_a[name].fingerprints, of_b[name].fingerprints)
            for name in sums
            if of_a[name].fingerprints != of_b[name].fingerprints
        },
        incomplete=tuple(incomplete),
    )


def _is_selected(metric: str, names: Sequence[str]) -> bool:
    return not names or metric in names or metric.partition(".")[0] in names


def _change(
    evaluator: str,
    found: MetricSums,
    of_a: EvaluatorRun,
    of_b: EvaluatorRun,
    declared: Mapping[str, MetricRef],
    query: CompareQuery,
) -> MetricChange:
    pairs = found.differences.n
    by_pairs = pairs > 0 and 2 * pairs >= min(found.a.n, found.b.n)
    difference = _difference(found, by_pairs, 1 - query.alpha)
    name = f"{evaluator}.{found.key or '(failed)'}"
    known = declared.get(name)
    return MetricChange(
        metric=name,
        better="lower" if found.key == FAILURE else known.metric.better if known else None,
        verdict="unknown",
        method="paired" if by_pairs else "welch",
        paired=pairs,
        only_a=found.a.n - pairs,
        only_b=found.b.n - pairs,
        mean_a=_finite(found.pairs_a if by_pairs else found.a.mean),
        mean_b=_finite(found.pairs_b if by_pairs else found.b.mean),
        difference=difference.value,
        low=difference.low,
        high=difference.high,
        p=difference.p,
        p_adjusted=None,
        coverage_a=_coverage(found.key, found.a.n, of_a),
        coverage_b=_coverage(found.key, found.b.n, of_b),
        moved=found.moved,
    )


def _difference(found: MetricSums, by_pairs: bool, confidence: float) -> Difference:
    """Compare the pairs if at least half of the smaller run is paired, else all values as independent samples."""
    if by_pairs:
        return paired_difference(found.differences, confidence)
    return unpaired_difference(found.a, found.b, confidence) if found.a.n and found.b.n else Difference()


def _finite(mean: float) -> float | None:
    """Replace the mean of no values, or an overflow, by None."""
    return mean if math.isfinite(mean) else None


def _coverage(key: str, scored: int, evaluated: EvaluatorRun) -> float | None:
    applicable = scored + evaluated.failed
    return scored / applicable if key != FAILURE and applicable else None


def _with_verdicts(changes: Sequence[MetricChange], query: CompareQuery) -> list[MetricChange]:
    """Set verdict and adjusted p-value of changes that have a p-value."""
    known = [change for change in changes if change.p is not None]
    adjusted = benjamini_hochberg([change.p for change in known if change.p is not None])
    judged = {
        change.metric: replace(change, p_adjusted=p, verdict=_verdict(change, p, query))
        for change, p in zip(known, adjusted, strict=True)
    }
    return [judged.get(change.metric, change) for change in changes]


def _verdict(change: MetricChange, p: float, query: CompareQuery) -> ChangeVerdict:
    difference = change.difference or 0.0
    if p > query.alpha or abs(difference) < query.min_change:
        return "same"
    if change.better is None:
        return "differs"
    return "better" if (difference > 0) == (change.better == "higher") else "worse"
