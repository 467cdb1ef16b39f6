"""Whether the contexts of a trace were bad: at least half of its metrics of retrieval are on their wrong side."""

from collections.abc import Mapping

from drift.windows import sql
from drift.windows.metrics import WatchedMetric

ARE_BAD = "avg(beyond) >= 0.5"  # of the rows of a trace that `looked_at` gives


def of_contexts(metrics: Mapping[str, WatchedMetric]) -> list[WatchedMetric]:
    """The metrics that judge contexts: primary ones of retrieval that have a threshold."""
    return [
        one
        for one in metrics.values()
        if one.evaluator.domain == "retrieval" and one.metric.primary and one.metric.threshold is not None
    ]


def looked_at(judging: list[WatchedMetric], where: str) -> str:
    """SELECT of `trace_id` and `beyond` (0 or 1), a row for each of these metrics that a trace has.

    `where`: conditions on rows of `scores`; traces that none of them looked at are left out.
    """
    sides = []
    for one in judging:
        name = f"evaluator = {sql.text(one.evaluator.id)} AND key = {sql.text(one.metric.key)}"
        sides.append(f"{name}, value {'<' if one.metric.better == 'higher' else '>'} {one.metric.threshold!r}")
    return f"""
        SELECT trace_id, multiIf({", ".join(sides)}, NULL) AS beyond
        FROM scores FINAL ARRAY JOIN mapKeys(metrics) AS key, mapValues(metrics) AS value
        WHERE {where} AND status = 'scored' AND beyond IS NOT NULL
            AND evaluator IN {sql.texts(sorted({one.evaluator.id for one in judging}))}"""
