"""SQL of parts: summed over windows, and those of the newest records. `ragtide.evaluators.parts` says what they are."""

from ragtide.dashboards.sql import APP, RUN, Tables
from ragtide.dashboards.variable_sql import in_variable
from ragtide.drift.sql import text

_NEWEST = 2000  # records that examples are taken from


def parts(tables: Tables, carrier: str) -> str:
    """The parts of each window of the time range: its `start`, `key` (name and labels) and `n`.

    `carrier` is the metric in whose windows they are.
    """
    return (
        "SELECT start, splitByChar('\\t', part.1) AS key, part.2 AS n FROM ("
        f"SELECT start, arrayJoin(CAST(parts, 'Array(Tuple(String, Float64))')) AS part {tables.windows([carrier])})"
    )


def summed_parts(tables: Tables, carrier: str) -> str:
    """The parts of all these windows together: `key` and `n`."""
    return f"SELECT key, sum(each.n) AS n FROM ({parts(tables, carrier)}) AS each GROUP BY key"


def newest(tables: Tables, evaluator: str, with_part: str = "") -> str:
    """The newest scored records of the time range, those with that part if one is named."""
    having = f"AND mapContains(parts, {text(with_part)}) " if with_part else ""
    return (
        f"SELECT trace_id, time, parts, evidence FROM {tables.name('scores')} FINAL "
        f"WHERE {RUN} AND {APP} AND evaluator = {text(evaluator)} "
        f"AND status = 'scored' AND $__timeFilter(time) AND {in_variable('environment')} AND "
        f"{in_variable('model')} {having}"
        f"ORDER BY time DESC, trace_id LIMIT {_NEWEST}"
    )


def newest_ids(most: int) -> str:
    """Aggregate of columns `time` and `trace_id`: that many ids of traces, a row each, the newest first."""
    order = "arraySort(one -> (-toUnixTimestamp64Milli(one.1), one.2), groupArray((time, trace_id)))"
    return f"arrayJoin(arraySlice({order}, 1, {most}).2)"
