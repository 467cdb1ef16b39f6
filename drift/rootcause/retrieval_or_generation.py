"""Tell retrieval from generation: whether failing traces have bad contexts too.

The contexts of a trace are bad if at least half of its retrieval metrics failed. The share of failing traces with bad
contexts is compared, by its interval, with that of traces that passed before the onset. If good answers have contexts
as bad, contexts do not explain bad answers."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from ragtide.drift import sql
from ragtide.drift.problems import type_of
from ragtide.drift.rootcause.measure import MeasuredQuantity, bad_share
from ragtide.drift.rootcause.query import RcaScope
from ragtide.drift.rootcause.slice_queries import select_rows
from ragtide.drift.stats import Share, wilson
from ragtide.drift.windows import WHOLE_MINUTES, MetricRef
from ragtide.sinks.clickhouse.database import Database

CONTEXTS_ARE_BAD = "avg(beyond) >= 0.5"  # of the rows of a trace that `select_context_results` gives


def context_metrics(metrics: Mapping[str, MetricRef]) -> list[MetricRef]:
    """Return the metrics that judge contexts: primary ones of retrieval with a threshold."""
    return [
        one
        for one in metrics.values()
        if one.evaluator.domain == "retrieval" and one.metric.primary and one.metric.threshold is not None
    ]


def select_context_results(metrics: list[MetricRef], where: str, table: str = "scores") -> str:
    """SELECT of `trace_id` and `beyond` (0 or 1), a row for each of these metrics that a trace has.

    `where` is a condition on rows of `scores`, which the statement calls `table`. Traces that none of the metrics
    scored are left out.
    """
    sides = []
    for one in metrics:
        name = f"evaluator = {sql.text(one.evaluator.id)} AND key = {sql.text(one.metric.key)}"
        sides.append(f"{name}, value {'<' if one.metric.better == 'higher' else '>'} {one.metric.threshold!r}")
    return f"""
        SELECT trace_id, multiIf({", ".join(sides)}, NULL) AS beyond
        FROM {table} FINAL ARRAY JOIN mapKeys(metrics) AS key, mapValues(metrics) AS value
        WHERE {where} AND status = 'scored' AND beyond IS NOT NULL
            AND evaluator IN {sql.texts(sorted({one.evaluator.id for one in metrics}))}"""


StageVerdict = Literal["retrieval", "generation", "unclear"]
MIN_TRACES = 20  # failing traces, and passing ones
_MAX_TRACES = 5_000  # of either kind


class Stage(NamedTuple):
    """`bad_of_failing` of `failing` traces had bad contexts, and so had `bad_of_passing` of `passing` before."""

    verdict: StageVerdict
    failing: int
    bad_of_failing: int
    passing: int
    bad_of_passing: int
    metrics: tuple[str, ...]

    @property
    def too_few(self) -> bool:
        """Whether there are too few traces for a verdict."""
        return min(self.failing, self.passing) < MIN_TRACES


def find_stage(
    database: Database,
    scope: RcaScope,
    quantity: MeasuredQuantity,
    metrics: Mapping[str, MetricRef],
    within: Mapping[str, str],
) -> Stage | None:
    """Find the stage of failing traces with the values `within`; None if the metric is not of answers from contexts."""
    bad_quantity = bad_share(quantity)
    type_ = type_of(quantity.metric_ref, "mean")
    contexts = context_metrics(metrics)
    if type_ == "retrieval":
        return Stage("retrieval", 0, 0, 0, 0, (quantity.metric_ref.name,))
    if type_ != "accuracy" or quantity.kind == "coverage" or bad_quantity is None or not contexts:
        return None
    where = f"{scope.query.condition} AND {scope.timeline.in_minutes}"
    rows = database.rows(
        f"""
        SELECT failing, count() AS n, countIf(are_bad) AS bad
        FROM (
            SELECT trace_id, any(judged.failing) AS failing, {CONTEXTS_ARE_BAD} AS are_bad
            FROM ({select_context_results(contexts, where)}) AS contexts
            INNER JOIN (
                SELECT trace_id, toUInt8(amount) AS failing FROM ({select_rows(scope, bad_quantity, within)})
                WHERE amount = (step >= 0) ORDER BY cityHash64(trace_id) LIMIT {_MAX_TRACES} BY failing
            ) AS judged USING (trace_id)
            GROUP BY trace_id
        ) GROUP BY failing""",
        bad_quantity.parameters,
        WHOLE_MINUTES,
    )
    counts = {row["failing"]: Share(row["bad"], row["n"]) for row in rows}
    failing, passing = (counts.get(one, Share(0, 0)) for one in (1, 0))
    names = tuple(sorted(one.name for one in contexts))
    return Stage(stage_verdict(failing, passing), failing.n, failing.hits, passing.n, passing.hits, names)


def stage_verdict(failing: Share, passing: Share) -> StageVerdict:
    """Retrieval: most failing traces have bad contexts, and more than passing ones do; generation: few have."""
    if min(failing.n, passing.n) < MIN_TRACES:
        return "unclear"
    low, high = wilson(failing)
    if high < 0.5:
        return "generation"
    return "retrieval" if low > max(0.5, wilson(passing).high) else "unclear"
