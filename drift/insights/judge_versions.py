"""State once how a new version of a judge scores canaries beside the version before: whether both can be compared."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from statistics import fmean, variance

from ragtide.drift.canaries import CanaryScoreRow, JudgeRuns, load_judge_versions, load_scored
from ragtide.drift.insights.data import PeriodData
from ragtide.drift.insights.model import AppEnvironment, Insight, estimate, insight
from ragtide.drift.stats import Interval, Sample, paired_difference
from ragtide.drift.text import number
from ragtide.drift.windows import MetricRef

MIN_CANARIES = 8
_RUNS = 3  # the last ones of the version before, and the first ones of the new one
_HISTORY = timedelta(days=7)  # since a version began: time for its first runs


@insight(reads=PeriodData)
def judge_versions(data: PeriodData) -> Iterator[Insight]:
    """One insight for each bounded primary metric of a judge's new version, in the period in which it began."""
    for versions in load_judge_versions(data.database, data.now).values():
        for before, after in pairwise(versions):
            if after.runs[0] < data.now - _HISTORY or before.evaluator not in data.evaluators:
                continue
            old = load_scored(data.database, [before], before.runs[-_RUNS:])
            new = load_scored(data.database, [after], after.runs[:_RUNS])
            for metric in data.metrics.values():
                if metric.evaluator.id == before.evaluator and metric.metric.primary and metric.metric.bounded:
                    yield from _compare(metric, before, after, _levels(old, metric), _levels(new, metric))


def _levels(rows: Sequence[CanaryScoreRow], metric: MetricRef) -> dict[str, float]:
    """Return the mean score of each canary."""
    values: dict[str, list[float]] = {}
    for row in rows:
        if metric.metric.key in row.metrics:
            values.setdefault(row.subject, []).append(row.metrics[metric.metric.key])
    return {name: fmean(some) for name, some in values.items()}


def _compare(
    metric: MetricRef, before: JudgeRuns, after: JudgeRuns, old: Mapping[str, float], new: Mapping[str, float]
) -> Iterator[Insight]:
    both = sorted(old.keys() & new.keys())
    if len(both) < MIN_CANARIES:
        return
    changes = [new[name] - old[name] for name in both]
    mean = fmean(changes)
    found = paired_difference(Sample(len(changes), mean, variance(changes)))
    interval = Interval(mean if found.low is None else found.low, mean if found.high is None else found.high)
    levels = f"{_number(fmean(old[name] for name in both))} → {_number(fmean(new[name] for name in both))}"
    if interval.low <= 0 <= interval.high:
        how = f"about as the version before ({levels}"
    else:
        how = f"{_number(abs(mean))} {'higher' if mean > 0 else 'lower'} than the version before ({levels}"
    yield Insight(
        type="calibration",
        where=AppEnvironment("", ""),
        identity=("judge_version", metric.name, after.fingerprint),
        message=(
            f"the new version of {before.evaluator} since {after.runs[0]:%Y-%m-%d %H:%M} UTC scores the same traces "
            f"{how}; 95 % interval of the difference {_number(interval.low)} to {_number(interval.high)}, on "
            f"{len(both)} canaries)"
        ),
        figures={
            "kind": "judge_version",
            "metric": metric.name,
            "before": before.fingerprint,
            "fingerprint": after.fingerprint,
            **estimate("difference", mean, interval),
            "canaries": len(both),
        },
        actions=("Move thresholds of the metric by the difference, or replay earlier traces: ragtide replay.",),
        label="Judge",
        at=after.runs[0],
    )


def _number(value: float) -> str:
    """Format to a thousandth: no score is more exact."""
    return number(round(value, 3) + 0.0)
