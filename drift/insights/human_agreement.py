"""Find metrics that do not agree with people's labels of the same answers: thumbs, or numbers on any scale."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, NamedTuple

import numpy as np

from ragtide.drift.insights.agreement import IntervalEstimate, measure_agreement, rank_correlation
from ragtide.drift.insights.data import PeriodData, metric_columns
from ragtide.drift.insights.model import IN_PERIOD, AppEnvironment, Insight, Period, estimate, insight
from ragtide.drift.problems import type_of
from ragtide.drift.windows import MetricRef

MIN_ANSWERS = 30  # labelled answers, and of thumbs a third of them either way
MAX_ANSWERS = 2_000  # randomly sampled labelled answers
POOR_AUC = 0.6  # 0.5 is chance
POOR_RHO = 0.2
_MAX_EXAMPLES = 10
_HISTORY = timedelta(days=7)  # labels are few, and come late
_LABELS = f"""
    SELECT trace_id, argMaxIf(toString(thumbs), (version, partition), thumbs != '') AS said,
        argMaxIf(score, (version, partition), score IS NOT NULL) AS scored
    FROM labels FINAL
    WHERE (thumbs != '' OR score IS NOT NULL) AND {IN_PERIOD}
    GROUP BY trace_id ORDER BY cityHash64(trace_id) LIMIT {MAX_ANSWERS}"""


class LabelledAnswer(NamedTuple):
    """A metric's value from 0, the worst, to 1, and the labels; None: no label of that kind."""

    trace_id: str
    value: float
    liked: bool | None
    score: float | None


@insight(reads=PeriodData)
def human_agreement(data: PeriodData) -> Iterator[Insight]:
    """Bounded primary metrics that hardly predict people's labels, or contradict them.

    By labels and traces of the seven days before the period's end.
    """
    metrics = {name: one for name, one in data.primary.items() if one.metric.bounded and _humans_can_rate(one)}
    week = Period(data.period.end - _HISTORY, data.period.end)
    labels = {row["trace_id"]: row for row in data.database.rows(_LABELS, week.bound)}
    if len(labels) < MIN_ANSWERS or not metrics:
        return
    labelled = f"trace_id IN (SELECT trace_id FROM ({_LABELS}))"
    for where, columns in sorted(metric_columns(data.database, metrics.values(), labelled, week).items()):
        for name, values in sorted(columns.items()):
            answers = [
                LabelledAnswer(
                    trace_id,
                    _goodness(metrics[name], values[trace_id]),
                    labels[trace_id]["said"] == "up" if labels[trace_id]["said"] else None,
                    labels[trace_id]["scored"],
                )
                for trace_id in sorted(values)
                if trace_id in labels
            ]
            yield from _compare_with_thumbs(where, name, [one for one in answers if one.liked is not None])
            yield from _compare_with_scores(where, name, [one for one in answers if one.score is not None])


def _humans_can_rate(metric_ref: MetricRef) -> bool:
    """Whether people can judge the same: they need not know what leaks, or fails."""
    return type_of(metric_ref, metric_ref.evaluator.rule_of(metric_ref.metric)) in ("accuracy", "retrieval")


def _goodness(metric_ref: MetricRef, value: float) -> float:
    """Scale from 0, the worst, to 1."""
    part = (value - metric_ref.metric.low) / (metric_ref.metric.high - metric_ref.metric.low)
    return part if metric_ref.metric.better == "higher" else 1 - part


def _compare_with_thumbs(where: AppEnvironment, metric: str, answers: Sequence[LabelledAnswer]) -> Iterator[Insight]:
    liked = np.array([bool(one.liked) for one in answers], np.bool_)
    values = np.array([one.value for one in answers])
    if len(answers) < MIN_ANSWERS or min(liked.sum(), (~liked).sum()) < MIN_ANSWERS // 3 or not np.ptp(values):
        return
    found = measure_agreement(values, liked)
    if found.auc.interval.high < POOR_AUC:
        worst = [answers[at] for at in np.argsort(-np.abs(values - liked), kind="stable")[:_MAX_EXAMPLES]]
        calibration = {
            **estimate("brier", *found.brier),
            **estimate("calibration_error", *found.calibration_error),
            "liked": int(liked.sum()),
        }
        yield _insight(where, metric, "thumbs", found.auc, len(answers), worst, calibration)


def _compare_with_scores(where: AppEnvironment, metric: str, answers: Sequence[LabelledAnswer]) -> Iterator[Insight]:
    values, scores = (
        np.array(column, np.float64) for column in ([a.value for a in answers], [a.score for a in answers])
    )
    if len(answers) < MIN_ANSWERS or not np.ptp(values) or not np.ptp(scores):
        return
    rho = rank_correlation(values, scores)
    if rho.interval.high < POOR_RHO:
        yield _insight(where, metric, "scores", rho, len(answers), answers[:_MAX_EXAMPLES], {})


def _insight(
    where: AppEnvironment,
    metric: str,
    labels: Literal["thumbs", "scores"],
    found: IntervalEstimate,
    labelled: int,
    examples: Sequence[LabelledAnswer],
    calibration: Mapping[str, Any],
) -> Insight:
    name, chance = ("AUC", 0.5) if labels == "thumbs" else ("rank correlation", 0.0)
    low, high = found.interval
    how = "contradicts" if high < chance else "hardly predicts"
    return Insight(
        type="calibration",
        where=where,
        identity=("against_people", metric, labels),
        message=(
            f"{metric} {how} people's {labels}: {name} {found.value:.2f} (95 % interval {low:.2f} to {high:.2f}) on "
            f"{labelled:,} labelled answers in seven days"
        ),
        figures={
            "kind": "against_people",
            "metric": metric,
            "labels": labels,
            "labelled": labelled,
            **estimate(name.lower().replace(" ", "_"), *found),
            **calibration,
        },
        examples=[one.trace_id for one in examples],
        actions=(
            "Read the example traces. Do people judge what the metric measures, or something else (wording, speed)?",
            "Until that is clear, do not alert on this metric alone. If its threshold is wrong, set it in "
            "rules.overrides.",
        ),
    )
