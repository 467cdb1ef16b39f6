"""The figure that a problem was judged by around its onset, from closed windows."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from drift.problems.drawn import Figure
from drift.problems.problem import Problem
from sinks.clickhouse.database import Database

POINTS = 60
_BEFORE = timedelta(minutes=30)  # at least, and as long as the trouble lasts
_AFTER = timedelta(minutes=15)
_LONGEST = timedelta(days=7)


class Point(NamedTuple):
    """The figure over so many records from `start` on."""

    start: datetime
    value: float
    records: int


def around(database: Database, problem: Problem, figure: Figure, base_s: int) -> list[Point]:
    """At most some `POINTS`, in order of time; none where windows have no such figure. `base_s` sizes the windows."""
    since, until = _stretch(problem)
    step_s = max(base_s, -(-int((until - since).total_seconds()) // POINTS // base_s) * base_s)
    rows = database.rows(
        f"SELECT intDiv(toUnixTimestamp(start), {step_s}) * {step_s} AS at, {figure.value} AS figure, "
        f"{figure.records} AS records "
        "FROM windows FINAL WHERE run_id = 'live' AND size_s = {base_s:UInt32} AND app = {app:String} "
        "AND environment = {environment:String} AND metric = {metric:String} "
        "AND ({model:String} = '' OR model = {model:String}) AND segment = {segment:String} "
        "AND segment_value = {segment_value:String} "
        "AND start >= {since:DateTime64(3, 'UTC')} AND start < {until:DateTime64(3, 'UTC')} "
        "GROUP BY at HAVING records > 0 ORDER BY at",
        {
            **{name: getattr(problem, name) for name in ("app", "environment", "metric", "model")},
            "segment": "" if figure.of_whole else problem.segment,
            "segment_value": "" if figure.of_whole else problem.segment_value,
            "base_s": base_s,
            "since": since,
            "until": until,
        },
    )
    return [Point(datetime.fromtimestamp(row["at"], UTC), row["figure"], row["records"]) for row in rows]


def onset_of(problem: Problem) -> datetime:
    """When the trouble began, in event time as far as it is known."""
    since = problem.attributes.get("since")
    return datetime.fromisoformat(since) if since else problem.opened_at or problem.first_seen_at


def _stretch(problem: Problem) -> tuple[datetime, datetime]:
    onset = onset_of(problem)
    end = problem.resolved_at or problem.last_seen_at
    lasted = min(max(end - onset, timedelta()), _LONGEST)
    return onset - max(_BEFORE, lasted), onset + lasted + _AFTER
