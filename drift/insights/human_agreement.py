"""Metrics that do not follow what people said of the same answers: thumbs, or numbers on a scale of their own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

from ragtide.drift.insights.agreement import Agreement, IntervalEstimate, measure_agreement, rank_correlation
from ragtide.drift.insights.data import AppEnvironment, metric_columns
from ragtide.drift.insights.model import Insight, Period
from ragtide.drift.problems.classification import type_of
from ragtide.drift.text import scope_label
from ragtide.drift.windows.metrics import MetricRef
from ragtide.sinks.clickhouse.database import Database

MIN_ANSWERS = 30  # labelled answers, and of thumbs a third of them either way
MAX_ANSWERS = 2_000  # labelled answers that are looked at, by lot
POOR_AUC = 0.6  # 0.5 is chance
POOR_RHO = 0.2
_HISTORY = timedelta(days=7)  # labels are few, and come late
_LABELS = """
    SELECT trace_id, argMaxIf(toString(thumbs), (version, partition), thumbs != '') AS said,
        argMaxIf(score, (version, partition), score IS NOT NULL) AS scored
    FROM labels FINAL
    WHERE (thumbs != '' OR score IS NOT NULL) AND time >= {start:DateTime64(3, 'UTC')}
        AND time < {end:DateTime64(3, 'UTC')}
    GROUP BY trace_id ORDER BY cityHash64(trace_id) LIMIT {most:UInt64}"""


class HumanLabel(NamedTuple):
    """What people said of a trace; None: nothing of that kind."""

    liked: bool | None
    score: float | None


def human_agreement(database: Database, metrics: Iterable[MetricRef], period: Period) -> list[Insight]:
    """Of bounded primary metrics, those that for sure tell little of what people think, or the opposite of it.

    By labels and traces of the seven days before the period's end.
    """
    watched = {one.name: one for one in metrics if one.metric.primary and one.metric.bounded and _humans_can_rate(one)}
    start, end = period.end - _HISTORY, period.end
    bound: dict[str, Any] = {"most": MAX_ANSWERS}
    labels = {
        row["trace_id"]: HumanLabel(row["said"] == "up" if row["said"] else None, row["scored"])
        for row in database.rows(_LABELS, {**bound, "start": start, "end": end})
    }
    if len(labels) < MIN_ANSWERS or not watched:
        return []
    labelled = f"trace_id IN (SELECT trace_id FROM ({_LABELS}))"
    found = metric_columns(database, watched.values(), labelled, start, end, bound)
    return [
        one
        for app_environment, of_metric in sorted(found.items())
        for name, values in sorted(of_metric.items())
        for one in _metric_insights(
            app_environment, watched[name], {at: values[at] for at in sorted(values) if at in labels}, labels
        )
    ]


def _humans_can_rate(metric_ref: MetricRef) -> bool:
    """Whether people can be asked to judge the same: of what leaks, or fails, they need not know."""
    return type_of(metric_ref, metric_ref.evaluator.rule_of(metric_ref.metric)) in ("accuracy", "retrieval")


def _metric_insights(
    app_environment: AppEnvironment,
    metric_ref: MetricRef,
    values: Mapping[str, float],
    labels: Mapping[str, HumanLabel],
) -> Iterator[Insight]:
    yield from _thumbs_insights(app_environment, metric_ref, values, labels)
    yield from _score_insights(app_environment, metric_ref, values, labels)


def _thumbs_insights(
    app_environment: AppEnvironment,
    metric_ref: MetricRef,
    values: Mapping[str, float],
    labels: Mapping[str, HumanLabel],
) -> Iterator[Insight]:
    known = [trace_id for trace_id in values if labels[trace_id].liked is not None]
    liked = np.array([bool(labels[trace_id].liked) for trace_id in known], np.bool_)
    if len(known) < MIN_ANSWERS or min(liked.sum(), (~liked).sum()) < MIN_ANSWERS // 3:
        return
    numbers = np.array([_goodness(metric_ref, values[trace_id]) for trace_id in known])
    if not np.ptp(numbers):
        return
    result = measure_agreement(numbers, liked)
    if result.auc.interval.high < POOR_AUC:
        wrong = [known[at] for at in np.argsort(-np.abs(numbers - liked), kind="stable")[:10]]
        yield _insight(
            app_environment,
            metric_ref,
            "thumbs",
            result.auc,
            _calibration(result) | {"liked": int(liked.sum())},
            len(known),
            wrong,
        )


def _score_insights(
    app_environment: AppEnvironment,
    metric_ref: MetricRef,
    values: Mapping[str, float],
    labels: Mapping[str, HumanLabel],
) -> Iterator[Insight]:
    scores = {trace_id: labels[trace_id].score for trace_id in values}
    pairs = [(_goodness(metric_ref, values[at]), score, at) for at, score in scores.items() if score is not None]
    numbers, people = (np.array([pair[side] for pair in pairs], np.float64) for side in (0, 1))
    if len(pairs) < MIN_ANSWERS or not np.ptp(numbers) or not np.ptp(people):
        return
    rho = rank_correlation(numbers, people)
    if rho.interval.high < POOR_RHO:
        examples = [at for _, _, at in pairs[:10]]
        yield _insight(app_environment, metric_ref, "scores", rho, {}, len(pairs), examples)


def _goodness(metric_ref: MetricRef, value: float) -> float:
    """From 0, the worst, to 1."""
    part = (value - metric_ref.metric.low) / (metric_ref.metric.high - metric_ref.metric.low)
    return part if metric_ref.metric.better == "higher" else 1 - part


def _calibration(found: Agreement) -> dict[str, Any]:
    return {
        "brier": found.brier.value,
        "brier_interval": list(found.brier.interval),
        "calibration_error": found.calibration_error.value,
        "calibration_error_interval": list(found.calibration_error.interval),
    }


def _insight(
    app_environment: AppEnvironment,
    metric_ref: MetricRef,
    by: str,
    figure: IntervalEstimate,
    more: Mapping[str, Any],
    labelled: int,
    examples: Sequence[str],
) -> Insight:
    name, reach = ("AUC", figure.interval) if by == "thumbs" else ("rank correlation", figure.interval)
    opposite = reach.high < (0.5 if by == "thumbs" else 0.0)
    how = "says the opposite of what people say" if opposite else "tells little of what people say"
    return Insight(
        type="calibration",
        app=app_environment.app,
        environment=app_environment.environment,
        identity=("against_people", metric_ref.name, by),
        description=(
            f"{scope_label(*app_environment)}: {metric_ref.name} {how} ({by}): {name} {figure.value:.2f} "
            f"({reach.low:.2f} to "
            f"{reach.high:.2f}) on {labelled} labelled answers of seven days."
        ),
        attributes={
            "kind": "against_people",
            "metric": metric_ref.name,
            "labels": by,
            "labelled": labelled,
            "auc" if by == "thumbs" else "rank_correlation": figure.value,
            "auc_interval" if by == "thumbs" else "rank_correlation_interval": list(reach),
            **more,
        },
        examples=examples,
        actions=(
            "Read the example traces: do people judge what the metric measures (wording, speed) or something else?",
            "Until that is clear raise no alarms on this metric alone; where its threshold is wrong, set it in "
            "rules.overrides.",
        ),
    )
