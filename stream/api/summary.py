"""Summarise the scores of each metric: mean or share with its interval, quantiles, coverage and reasons. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from ragtide.drift.stats import CONFIDENCE, Interval, Sample, Share, mean_interval, wilson
from ragtide.evaluators.combining import combine_parts
from ragtide.evaluators.spec import Better, Metric
from ragtide.stream.api.columns import ScoreColumns

Figure = Literal["mean", "share", "combined"]
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric over all traces. None: it cannot be computed from these scores.

    `figure` says how `value` was computed, by the metric's declaration: the mean of the scores, the share of ones of a
    binary metric, or combined from the counts of all traces (evaluators of method `window`), without interval. The
    interval takes traces as independent; it ends where the metric's range does. `quantiles`, of means only, are in the
    order of `QUANTILES`.

    Of the `seen` traces, sampling kept `sampled`. The evaluator applies to `applicable`, of which `scored` have a score
    and `failed` have none. `skipped` counts the others by reason, `failures` the failed ones. `bad` counts scores
    beyond the metric's threshold; None: it has no threshold.
    """

    metric: str
    labels: tuple[str, ...]  # such as a class; empty: the metric has none
    unit: str | None
    better: Better
    figure: Figure
    value: float | None
    low: float | None
    high: float | None
    quantiles: tuple[float | None, ...]
    bad: int | None
    seen: int
    sampled: int
    applicable: int
    scored: int
    failed: int
    skipped: Mapping[str, int] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The metric, with its labels if it has any."""
        return f"{self.metric} [{', '.join(self.labels)}]" if self.labels else self.metric

    @property
    def coverage(self) -> float | None:
        """Share of the applicable traces that have a score."""
        return self.scored / self.applicable if self.applicable else None


def summarise(columns: ScoreColumns, seen: int, confidence: float = CONFIDENCE) -> Iterator[MetricSummary]:
    """Summarise each metric of an evaluator, of `seen` traces; `confidence` is that of the intervals."""
    evaluator = columns.evaluator
    status, rows = Counter(columns.status), zip(columns.status, columns.reason, strict=True)
    by_reason = Counter(rows)
    skipped = {why: n for (state, why), n in by_reason.items() if state not in ("scored", "failed")}
    if other := seen - len(columns):
        skipped["other_task"] = other
    failures = {why: n for (state, why), n in by_reason.items() if state == "failed"}
    combined = combine_parts(evaluator, _sum_parts(columns) if evaluator.combine is not None else {})
    for metric in evaluator.metrics:
        values = scores_of(columns, metric.key)
        counts = {"seen": seen, "sampled": seen - status["sampled_out"], "failed": status["failed"]}
        absent = status["scored"] - len(values) if not metric.per else 0
        reasons = skipped | ({"not_recorded": absent} if absent else {})
        counts |= {"scored": len(values), "applicable": len(values) + status["failed"]}
        if evaluator.combine is None:
            yield _summary(columns, metric, values, confidence, counts, reasons, failures)
            continue
        single = {(): combined.metrics.get(metric.key)} if not metric.per else {}
        of_labels = {labels: found.value for labels, found in combined.per.get(metric.key, {}).items()}
        for labels, value in (single | of_labels).items():
            scored = status["scored"]
            counts |= {"scored": scored, "applicable": scored + status["failed"]}
            yield _of_window(columns, metric, labels, value, counts, skipped, failures)


def _sum_parts(columns: ScoreColumns) -> Mapping[str, float]:
    sums: defaultdict[str, float] = defaultdict(float)
    for parts in columns.parts.values():
        for key, count in parts.items():
            sums[key] += count
    return sums


def scores_of(columns: ScoreColumns, key: str) -> npt.NDArray[np.float64]:
    """The scores of a metric, without the traces that have none."""
    held = columns.values.get(key)
    values = np.frombuffer(held, np.float64) if held else np.empty(0)
    return values[~np.isnan(values)]


def sample_of(values: npt.NDArray[np.float64]) -> Sample:
    """Count, mean and variance; NaN where undefined."""
    n = len(values)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(values.mean()) if n else float("nan")
        return Sample(n, mean, float(values.var(ddof=1)) if n > 1 else float("nan"))


def _summary(
    columns: ScoreColumns,
    metric: Metric,
    values: npt.NDArray[np.float64],
    confidence: float,
    counts: Mapping[str, int],
    skipped: Mapping[str, int],
    failures: Mapping[str, int],
) -> MetricSummary:
    figure: Figure = "share" if metric.binary else "mean"
    sample = sample_of(values)
    interval: Interval | None = None
    if sample.n and figure == "share":
        interval = wilson(Share(round(values.sum()), sample.n), confidence)
    elif (found := mean_interval(sample, confidence) if sample.n else None) is not None:
        interval = Interval(max(found.low, metric.low), min(found.high, metric.high))
    quantiles: tuple[float | None, ...] = (None,) * len(QUANTILES)
    if sample.n and figure == "mean":
        quantiles = tuple(map(float, np.quantile(values, QUANTILES)))
    return MetricSummary(
        metric=f"{columns.evaluator.id}.{metric.key}",
        labels=(),
        unit=metric.unit,
        better=metric.better,
        figure=figure,
        value=sample.mean if np.isfinite(sample.mean) else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        quantiles=quantiles,
        bad=_bad(metric, values),
        skipped=skipped,
        failures=failures,
        **counts,
    )


def _of_window(
    columns: ScoreColumns,
    metric: Metric,
    labels: tuple[str, ...],
    value: float | None,
    counts: Mapping[str, int],
    skipped: Mapping[str, int],
    failures: Mapping[str, int],
) -> MetricSummary:
    return MetricSummary(
        metric=f"{columns.evaluator.id}.{metric.key}",
        labels=labels,
        unit=metric.unit,
        better=metric.better,
        figure="combined",
        value=value,
        low=None,
        high=None,
        quantiles=(None,) * len(QUANTILES),
        bad=None,
        skipped=skipped,
        failures=failures,
        **counts,
    )


def _bad(metric: Metric, values: npt.NDArray[np.float64]) -> int | None:
    if metric.threshold is None:
        return None
    beyond = values < metric.threshold if metric.better == "higher" else values > metric.threshold
    return int(beyond.sum())
