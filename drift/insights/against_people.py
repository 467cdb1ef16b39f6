"""Metrics that do not follow what people said of the same answers: thumbs, or numbers on a scale of their own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

from drift.insights.agreement import Agreement, Figure, agreement, rank_correlation
from drift.insights.columns import Place, columns
from drift.insights.insight import Finding, Period
from drift.phrases import whereabouts
from drift.problems.taxonomy import type_of
from drift.windows.metrics import WatchedMetric
from sinks.clickhouse.database import Database

LEAST = 30  # labelled answers, and of thumbs a third of them either way
MOST = 2_000  # labelled answers that are looked at, by lot
POOR_AUC = 0.6  # 0.5 is chance
POOR_RHO = 0.2
_HISTORY = timedelta(days=7)  # labels are few, and come late
_SAID = """
    SELECT trace_id, argMaxIf(toString(thumbs), (version, partition), thumbs != '') AS said,
        argMaxIf(score, (version, partition), score IS NOT NULL) AS scored
    FROM labels FINAL
    WHERE (thumbs != '' OR score IS NOT NULL) AND time >= {start:DateTime64(3, 'UTC')}
        AND time < {end:DateTime64(3, 'UTC')}
    GROUP BY trace_id ORDER BY cityHash64(trace_id) LIMIT {most:UInt64}"""


class Said(NamedTuple):
    """What people said of a trace; None: nothing of that kind."""

    liked: bool | None
    score: float | None


def against_people(database: Database, metrics: Iterable[WatchedMetric], period: Period) -> list[Finding]:
    """Of bounded primary metrics, those that for sure tell little of what people think, or the opposite of it.

    By labels and traces of the seven days before the period's end.
    """
    watched = {one.name: one for one in metrics if one.metric.primary and one.metric.bounded and _is_of_answers(one)}
    start, end = period.end - _HISTORY, period.end
    bound: dict[str, Any] = {"most": MOST}
    said = {
        row["trace_id"]: Said(row["said"] == "up" if row["said"] else None, row["scored"])
        for row in database.rows(_SAID, {**bound, "start": start, "end": end})
    }
    if len(said) < LEAST or not watched:
        return []
    labelled = f"trace_id IN (SELECT trace_id FROM ({_SAID}))"
    found = columns(database, watched.values(), labelled, start, end, bound)
    return [
        one
        for place, of_metric in sorted(found.items())
        for name, values in sorted(of_metric.items())
        for one in _of_metric(place, watched[name], {at: values[at] for at in sorted(values) if at in said}, said)
    ]


def _is_of_answers(watched: WatchedMetric) -> bool:
    """Whether people can be asked to judge the same: of what leaks, or fails, they need not know."""
    return type_of(watched, watched.evaluator.rule_of(watched.metric)) in ("accuracy", "retrieval")


def _of_metric(
    place: Place, watched: WatchedMetric, values: Mapping[str, float], said: Mapping[str, Said]
) -> Iterator[Finding]:
    yield from _of_thumbs(place, watched, values, said)
    yield from _of_scores(place, watched, values, said)


def _of_thumbs(
    place: Place, watched: WatchedMetric, values: Mapping[str, float], said: Mapping[str, Said]
) -> Iterator[Finding]:
    known = [trace_id for trace_id in values if said[trace_id].liked is not None]
    liked = np.array([bool(said[trace_id].liked) for trace_id in known], np.bool_)
    if len(known) < LEAST or min(liked.sum(), (~liked).sum()) < LEAST // 3:
        return
    numbers = np.array([_goodness(watched, values[trace_id]) for trace_id in known])
    if not np.ptp(numbers):
        return
    told = agreement(numbers, liked)
    if told.auc.interval.high < POOR_AUC:
        wrong = [known[at] for at in np.argsort(-np.abs(numbers - liked), kind="stable")[:10]]
        yield _finding(place, watched, "thumbs", told.auc, _told(told) | {"liked": int(liked.sum())}, len(known), wrong)


def _of_scores(
    place: Place, watched: WatchedMetric, values: Mapping[str, float], said: Mapping[str, Said]
) -> Iterator[Finding]:
    scores = {trace_id: said[trace_id].score for trace_id in values}
    pairs = [(_goodness(watched, values[at]), score, at) for at, score in scores.items() if score is not None]
    numbers, people = (np.array([pair[side] for pair in pairs], np.float64) for side in (0, 1))
    if len(pairs) < LEAST or not np.ptp(numbers) or not np.ptp(people):
        return
    rho = rank_correlation(numbers, people)
    if rho.interval.high < POOR_RHO:
        examples = [at for _, _, at in pairs[:10]]
        yield _finding(place, watched, "scores", rho, {}, len(pairs), examples)


def _goodness(watched: WatchedMetric, value: float) -> float:
    """From 0, the worst, to 1."""
    part = (value - watched.metric.low) / (watched.metric.high - watched.metric.low)
    return part if watched.metric.better == "higher" else 1 - part


def _told(found: Agreement) -> dict[str, Any]:
    return {
        "brier": found.brier.value,
        "brier_interval": list(found.brier.interval),
        "calibration_error": found.calibration_error.value,
        "calibration_error_interval": list(found.calibration_error.interval),
    }


def _finding(
    place: Place,
    watched: WatchedMetric,
    by: str,
    figure: Figure,
    more: Mapping[str, Any],
    labelled: int,
    examples: Sequence[str],
) -> Finding:
    name, reach = ("AUC", figure.interval) if by == "thumbs" else ("rank correlation", figure.interval)
    opposite = reach.high < (0.5 if by == "thumbs" else 0.0)
    how = "says the opposite of what people say" if opposite else "tells little of what people say"
    return Finding(
        type="calibration",
        app=place.app,
        environment=place.environment,
        identity=("against_people", watched.name, by),
        description=(
            f"{whereabouts(*place)}: {watched.name} {how} ({by}): {name} {figure.value:.2f} ({reach.low:.2f} to "
            f"{reach.high:.2f}) on {labelled} labelled answers of seven days."
        ),
        attributes={
            "kind": "against_people",
            "metric": watched.name,
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
