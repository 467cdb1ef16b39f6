"""Retrieval or generation: whether the contexts of the failing traces are bad too, by the metrics of retrieval.

Of the failing traces the share with bad contexts (see `contexts`) is compared, by its interval, with that of traces
that passed before: contexts that are no better where answers are good say nothing of answers that are bad.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from drift.causes.contexts import ARE_BAD, looked_at, of_contexts
from drift.causes.frame import Frame
from drift.causes.measure import Measure, records_beyond
from drift.causes.rows import selected
from drift.insights.shares import Share, wilson
from drift.problems.taxonomy import type_of
from drift.windows.metrics import WatchedMetric
from drift.windows.scope import WHOLE_MINUTES
from sinks.clickhouse.database import Database

Verdict = Literal["retrieval", "generation", "unclear"]
_NONE = Share(0, 0)
LEAST = 20  # traces of either kind; with fewer it cannot be told
_MOST = 5_000  # of either kind are looked at


class Stage(NamedTuple):
    """`bad_of_failing` of `failing` traces had bad contexts, and so had `bad_of_passing` of `passing` before."""

    verdict: Verdict
    failing: int
    bad_of_failing: int
    passing: int
    bad_of_passing: int
    metrics: tuple[str, ...]

    @property
    def too_few(self) -> bool:
        """Whether that is why it is unclear."""
        return min(self.failing, self.passing) < LEAST


def stage_of(
    database: Database, frame: Frame, measure: Measure, metrics: Mapping[str, WatchedMetric], within: Mapping[str, str]
) -> Stage | None:
    """Of failing traces with these values; None where the metric is not one of answers made from contexts."""
    lines = records_beyond(measure)
    type_ = type_of(measure.watched, "mean")
    judging = of_contexts(metrics)
    if type_ == "retrieval":
        return Stage("retrieval", 0, 0, 0, 0, (measure.watched.name,))
    if type_ != "accuracy" or measure.kind == "coverage" or lines is None or not judging:
        return None
    counted = {row["failing"]: row for row in _counted(database, frame, lines, judging, within)}
    failing, passing = (Share(counted[one]["bad"], counted[one]["n"]) if one in counted else _NONE for one in (1, 0))
    names = tuple(sorted(one.name for one in judging))
    return Stage(judged(failing, passing), failing.n, failing.hits, passing.n, passing.hits, names)


def judged(failing: Share, passing: Share) -> Verdict:
    """Retrieval: most contexts of failing traces are bad, and more than of passing ones; generation: few are."""
    if min(failing.n, passing.n) < LEAST:
        return "unclear"
    low, high = wilson(failing)
    if high < 0.5:
        return "generation"
    return "retrieval" if low > max(0.5, wilson(passing).high) else "unclear"


def _counted(
    database: Database,
    frame: Frame,
    lines: Measure,
    judging: list[WatchedMetric],
    within: Mapping[str, str],
) -> list[dict[str, int]]:
    app = "" if frame.question.app is None else "AND app = {app:String} "
    where = (
        f"run_id = 'live' AND environment = {{environment:String}} {app}"
        "AND time >= {first:DateTime64(3, 'UTC')} AND time < {last:DateTime64(3, 'UTC')}"
    )
    return database.rows(
        f"""
        SELECT failing, count() AS n, countIf(are_bad) AS bad
        FROM (
            SELECT trace_id, any(judged.failing) AS failing, {ARE_BAD} AS are_bad
            FROM ({looked_at(judging, where)}) AS contexts
            INNER JOIN (
                SELECT trace_id, toUInt8(number) AS failing FROM ({selected(frame, lines, within)})
                WHERE number = (step >= 0) ORDER BY cityHash64(trace_id) LIMIT {_MOST} BY failing
            ) AS judged USING (trace_id)
            GROUP BY trace_id
        ) GROUP BY failing""",
        {
            **lines.parameters,
            "environment": frame.question.environment,
            "app": frame.question.app or "",
            "first": frame.time.minutes[0],
            "last": frame.time.minutes[1],
        },
        WHOLE_MINUTES,
    )
