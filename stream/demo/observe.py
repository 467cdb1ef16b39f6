"""The console's data, read from the tables."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from ragtide.sinks.rows import LIVE

_RATE_OVER_S = 5

_TRAFFIC = """
SELECT count() AS stored, countIf(ingested_at > now64(3) - toIntervalSecond({over:UInt32})) / {over:UInt32} AS rate
FROM traces FINAL WHERE run_id = {run:String}
"""
_SCORES = "SELECT count() AS scores FROM scores WHERE run_id = {run:String} AND status = 'scored'"
_LAG = "SELECT lane, sum(lag) AS records FROM progress FINAL GROUP BY lane ORDER BY lane"
_DEAD = "SELECT count() AS letters FROM dead_letters FINAL WHERE run_id = {run:String}"
_WINDOWS = """
SELECT metric, start, sum(sum) AS total, sum(scored) AS scored, sum(seen) AS seen
FROM windows FINAL
WHERE run_id = {run:String} AND size_s = {size:UInt32} AND segment = ''
  AND start > now() - toIntervalSecond({size:UInt32} * {keep:UInt32})
GROUP BY metric, start
ORDER BY metric, start
"""
_JUDGED = """
SELECT metric, max(start) AS newest FROM windows
WHERE run_id = {run:String} AND size_s = {size:UInt32} AND segment = '' GROUP BY metric
"""


class Rows(Protocol):
    """Interface of the database."""

    def rows(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """The rows of a query, its parameters bound by the server."""
        ...


@dataclass(frozen=True, slots=True)
class Point:
    """One closed window of one metric; no `mean` where nothing was scored."""

    start: datetime
    mean: float | None
    scored: int
    seen: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of the pipeline at one instant."""

    stored: int  # traces
    rate: float  # traces stored a second, of late
    scores: int  # rows with a score
    lag: Mapping[str, int]  # records behind, by lane
    dead_letters: int
    series: Mapping[str, Sequence[Point]]  # by evaluator.metric, oldest first
    judged_until: Mapping[str, datetime]  # end of the newest closed window, by evaluator.metric


def observe(database: Rows, *, base_s: int, keep: int) -> Snapshot:
    """The latest state, with at most `keep` windows of `base_s` seconds a metric; raises what the sink raises."""
    traffic = database.rows(_TRAFFIC, {"run": LIVE, "over": _RATE_OVER_S})[0]
    series: dict[str, list[Point]] = defaultdict(list)
    for row in database.rows(_WINDOWS, {"run": LIVE, "size": base_s, "keep": keep}):
        scored = int(row["scored"])
        mean = float(row["total"]) / scored if scored else None
        series[row["metric"]].append(Point(row["start"], mean, scored, int(row["seen"])))
    return Snapshot(
        stored=int(traffic["stored"]),
        rate=float(traffic["rate"]),
        scores=int(database.rows(_SCORES, {"run": LIVE})[0]["scores"]),
        lag={row["lane"]: int(row["records"]) for row in database.rows(_LAG)},
        dead_letters=int(database.rows(_DEAD, {"run": LIVE})[0]["letters"]),
        series=series,
        judged_until={
            row["metric"]: row["newest"] + timedelta(seconds=base_s)
            for row in database.rows(_JUDGED, {"run": LIVE, "size": base_s})
        },
    )


def describe_delay(snapshot: Snapshot, metrics: Iterable[str], now: datetime, usual_s: float) -> str:
    """Say how far the jobs are behind with the slowest of the metrics; empty if within what is usual."""
    ends = [snapshot.judged_until[metric] for metric in metrics if metric in snapshot.judged_until]
    if not ends:
        return "no window is judged yet"
    behind_s = (now - min(ends)).total_seconds()
    return f"jobs are {behind_s:.0f} s behind" if behind_s > usual_s else ""
