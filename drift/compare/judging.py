"""Which metrics of one run are worse than another's: each difference with its confidence, and all of them together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from drift.compare.difference import Difference, adjusted, paired, unpaired
from drift.compare.result import Comparison, Fingerprints, MetricChange, Question, Verdict
from drift.compare.sums import FAILED, Evaluated, Sums, evaluated, incomplete, sums
from drift.windows.metrics import WatchedMetric
from evaluators.errors import ConfigError
from sinks.clickhouse.database import Database


def compare(database: Database, declared: Mapping[str, WatchedMetric], question: Question) -> Comparison:
    """Every metric of both runs, by name; raises `ConfigError` for a run or a metric that is not there.

    That an evaluator failed more often is a difference too: its line is `evaluator.(failed)`.
    """
    of_a, of_b = (evaluated(database, question, run) for run in (question.run_a, question.run_b))
    wanted = {name.partition(".")[0] for name in question.metrics}
    both = [name for name in sorted(of_a.keys() & of_b.keys()) if not wanted or name in wanted]
    changes = [
        _change(name, found, of_a[name], of_b[name], declared, question)
        for name in both
        for found in sums(database, question, name)
        if (found.key and _wanted(f"{name}.{found.key}", question.metrics))
        or (not found.key and of_a[name].failed + of_b[name].failed)
    ]
    there = {change.metric for change in changes}
    if absent := [name for name in question.metrics if name not in there and name not in both]:
        raise ConfigError(
            f"both runs lack {', '.join(absent)}; they share: {', '.join(sorted(of_a.keys() & of_b.keys()))}"
        )
    return Comparison(
        metrics=tuple(_judged(changes, question)),
        only_a=tuple(sorted(of_a.keys() - of_b.keys())),
        only_b=tuple(sorted(of_b.keys() - of_a.keys())),
        fingerprints={
            name: Fingerprints(of_a[name].fingerprints, of_b[name].fingerprints)
            for name in both
            if of_a[name].fingerprints != of_b[name].fingerprints
        },
        incomplete=incomplete(database, (question.run_a, question.run_b)),
    )


def _wanted(metric: str, names: Sequence[str]) -> bool:
    return not names or metric in names or metric.partition(".")[0] in names


def _change(
    evaluator: str,
    found: Sums,
    of_a: Evaluated,
    of_b: Evaluated,
    declared: Mapping[str, WatchedMetric],
    question: Question,
) -> MetricChange:
    pairs = found.differences.n
    by_pairs = pairs > 0 and 2 * pairs >= min(found.a.n, found.b.n)
    difference = _difference(found, by_pairs, 1 - question.alpha)
    name = f"{evaluator}.{found.key or '(failed)'}"
    known = declared.get(name)
    return MetricChange(
        metric=name,
        better="lower" if found.key == FAILED else known.metric.better if known else None,
        verdict="unknown",
        method="paired" if by_pairs else "welch",
        paired=pairs,
        only_a=found.a.n - pairs,
        only_b=found.b.n - pairs,
        mean_a=_told(found.pairs_a if by_pairs else found.a.mean),
        mean_b=_told(found.pairs_b if by_pairs else found.b.mean),
        difference=difference.value,
        low=difference.low,
        high=difference.high,
        p=difference.p,
        p_adjusted=None,
        coverage_a=_coverage(found.key, found.a.n, of_a),
        coverage_b=_coverage(found.key, found.b.n, of_b),
        moved=found.moved,
    )


def _difference(found: Sums, by_pairs: bool, confidence: float) -> Difference:
    """Of the pairs, where at least half of the smaller run has a partner; else of all values as if none had."""
    if by_pairs:
        return paired(found.differences, confidence)
    return unpaired(found.a, found.b, confidence) if found.a.n and found.b.n else Difference()


def _told(mean: float) -> float | None:
    """None for the mean of nothing, and for one beyond what a double holds."""
    return mean if math.isfinite(mean) else None


def _coverage(key: str, scored: int, evaluated: Evaluated) -> float | None:
    applicable = scored + evaluated.failed
    return scored / applicable if key != FAILED and applicable else None


def _judged(changes: Sequence[MetricChange], question: Question) -> list[MetricChange]:
    """With verdicts; what could not be told stays as it is."""
    told = {change.metric: change.p for change in changes if change.p is not None}
    of_all = dict(zip(told, adjusted(list(told.values())), strict=True))
    return [
        replace(change, p_adjusted=of_all[change.metric], verdict=_verdict(change, of_all[change.metric], question))
        if change.metric in of_all
        else change
        for change in changes
    ]


def _verdict(change: MetricChange, p: float, question: Question) -> Verdict:
    difference = change.difference or 0.0
    if p > question.alpha or abs(difference) < question.min_change:
        return "same"
    if change.better is None:
        return "differs"
    return "better" if (difference > 0) == (change.better == "higher") else "worse"
