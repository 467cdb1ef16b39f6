"""Tell retrieval from generation: whether failing traces have bad contexts too.

The contexts of a trace are bad where at least half of its retrieval metrics failed. The share of failing traces with
bad contexts is compared, by its interval, with that of traces that passed before: contexts that are no better where
answers are good do not explain answers that are bad."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from ragtide.drift import sql
from ragtide.drift.problems.classification import type_of
from ragtide.drift.rootcause.measure import MeasuredQuantity, bad_share
from ragtide.drift.rootcause.query import RcaScope
from ragtide.drift.rootcause.slice_queries import select_rows
from ragtide.drift.stats.proportions import Share, wilson
from ragtide.drift.windows.metrics import MetricRef
from ragtide.drift.windows.scope import WHOLE_MINUTES
from ragtide.sinks.clickhouse.database import Database

ARE_BAD = "avg(beyond) >= 0.5"  # of the rows of a trace that `select_context_results` gives


def context_metrics(metrics: Mapping[str, MetricRef]) -> list[MetricRef]:
    """The metrics that judge contexts: primary ones of retrieval that have a threshold."""
    return [
        one
        for one in metrics.values()
        if one.evaluator.domain == "retrieval" and one.metric.primary and one.metric.threshold is not None
    ]


def select_context_results(metrics: list[MetricRef], where: str) -> str:
    """SELECT of `trace_id` and `beyond` (0 or 1), a row for each of these metrics that a trace has.

    `where`: conditions on rows of `scores`; traces that none of them looked at are left out.
    """
    sides = []
    for one in metrics:
        name = f"evaluator = {sql.text(one.evaluator.id)} AND key = {sql.text(one.metric.key)}"
        sides.append(f"{name}, value {'<' if one.metric.better == 'higher' else '>'} {one.metric.threshold!r}")
    return f"""
        SELECT trace_id, multiIf({", ".join(sides)}, NULL) AS beyond
        FROM scores FINAL ARRAY JOIN mapKeys(metrics) AS key, mapValues(metrics) AS value
        WHERE {where} AND status = 'scored' AND beyond IS NOT NULL
            AND evaluator IN {sql.texts(sorted({one.evaluator.id for one in metrics}))}"""


StageVerdict = Literal["retrieval", "generation", "unclear"]
_NO_TRACES = Share(0, 0)
MIN_TRACES = 20  # traces of either kind; with fewer it cannot be told
_MAX_TRACES = 5_000  # of either kind are looked at


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
        """Whether that is why it is unclear."""
        return min(self.failing, self.passing) < MIN_TRACES


def find_stage(
    database: Database,
    scope: RcaScope,
    quantity: MeasuredQuantity,
    metrics: Mapping[str, MetricRef],
    within: Mapping[str, str],
) -> Stage | None:
    """Of failing traces with these values; None where the metric is not one of answers made from contexts."""
    bad_quantity = bad_share(quantity)
    type_ = type_of(quantity.metric_ref, "mean")
    contexts = context_metrics(metrics)
    if type_ == "retrieval":
        return Stage("retrieval", 0, 0, 0, 0, (quantity.metric_ref.name,))
    if type_ != "accuracy" or quantity.kind == "coverage" or bad_quantity is None or not contexts:
        return None
    counted = {row["failing"]: row for row in _count_traces(database, scope, bad_quantity, contexts, within)}
    failing, passing = (
        Share(counted[one]["bad"], counted[one]["n"]) if one in counted else _NO_TRACES for one in (1, 0)
    )
    names = tuple(sorted(one.name for one in contexts))
    return Stage(stage_verdict(failing, passing), failing.n, failing.hits, passing.n, passing.hits, names)


def stage_verdict(failing: Share, passing: Share) -> StageVerdict:
    """Retrieval: most contexts of failing traces are bad, and more than of passing ones; generation: few are."""
    if min(failing.n, passing.n) < MIN_TRACES:
        return "unclear"
    low, high = wilson(failing)
    if high < 0.5:
        return "generation"
    return "retrieval" if low > max(0.5, wilson(passing).high) else "unclear"


def _count_traces(
    database: Database,
    scope: RcaScope,
    bad_quantity: MeasuredQuantity,
    contexts: list[MetricRef],
    within: Mapping[str, str],
) -> list[dict[str, int]]:
    app = "" if scope.query.app is None else "AND app = {app:String} "
    where = (
        f"run_id = 'live' AND environment = {{environment:String}} {app}"
        "AND time >= {first:DateTime64(3, 'UTC')} AND time < {last:DateTime64(3, 'UTC')}"
    )
    return database.rows(
        f"""
        SELECT failing, count() AS n, countIf(are_bad) AS bad
        FROM (
            SELECT trace_id, any(judged.failing) AS failing, {ARE_BAD} AS are_bad
            FROM ({select_context_results(contexts, where)}) AS contexts
            INNER JOIN (
                SELECT trace_id, toUInt8(number) AS failing FROM ({select_rows(scope, bad_quantity, within)})
                WHERE number = (step >= 0) ORDER BY cityHash64(trace_id) LIMIT {_MAX_TRACES} BY failing
            ) AS judged USING (trace_id)
            GROUP BY trace_id
        ) GROUP BY failing""",
        {
            **bad_quantity.parameters,
            "environment": scope.query.environment,
            "app": scope.query.app or "",
            "first": scope.timeline.minutes[0],
            "last": scope.timeline.minutes[1],
        },
        WHOLE_MINUTES,
    )
