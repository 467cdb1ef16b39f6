"""Read scored rows in the order in which they were stored, after a position within a millisecond."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from ragtide.drift.export.events import ScoredRow
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE

STEP = timedelta(minutes=5)  # of one look: an outage of a day is not sorted again for each page
_HASH_BITS = 22  # below the milliseconds; rows that share a position are read and sent together
_POSITION = f"""bitOr(bitShiftLeft(toUInt64(toUnixTimestamp64Milli(ingested_at)), {_HASH_BITS}),
    bitShiftRight(cityHash64(app, environment, evaluator, time, trace_id, version), {64 - _HASH_BITS}))"""
_STORED = f"""run_id = {{run:String}} AND status = 'scored' AND is_deleted = 0
    AND has({{evaluators:Array(String)}}, evaluator)
    AND ingested_at >= {{since:DateTime64(3, 'UTC')}} AND ingested_at <= {{until:DateTime64(3, 'UTC')}}
    AND {_POSITION} > {{after:UInt64}} AND {_POSITION} <= {{end:UInt64}}"""
_END = f"SELECT {_POSITION} AS position FROM scores WHERE {_STORED} ORDER BY position LIMIT 1 OFFSET {{before:UInt32}}"
_COUNT = f"SELECT count() AS n FROM scores WHERE {_STORED}"
# Of each key the greatest version counts, as for FINAL; of equal ones, a row before a tombstone.
_ROWS = f"""
SELECT DISTINCT app, environment, evaluator, time, trace_id, version, metrics, evidence, findings, fingerprint,
    position, newest <= (version, 1) AS is_newest, root AS span_id
FROM (SELECT *, toStartOfMinute(time) AS minute, {_POSITION} AS position FROM scores WHERE {_STORED}) AS scored
INNER JOIN
(
    SELECT app, environment, evaluator, toStartOfMinute(time) AS minute, trace_id,
        max((version, NOT is_deleted)) AS newest
    FROM scores
    WHERE run_id = {{run:String}} AND (app, environment, evaluator, toStartOfMinute(time), trace_id) IN
        (SELECT app, environment, evaluator, toStartOfMinute(time), trace_id FROM scores WHERE {_STORED})
    GROUP BY app, environment, evaluator, minute, trace_id
) AS known USING (app, environment, evaluator, minute, trace_id)
LEFT JOIN
(
    SELECT app, environment, trace_id, argMax(span_id, version) AS root FROM traces
    WHERE run_id = {{run:String}} AND (app, environment, toStartOfMinute(time), trace_id) IN
        (SELECT app, environment, toStartOfMinute(time), trace_id FROM scores WHERE {_STORED})
    GROUP BY app, environment, trace_id
) AS traced USING (app, environment, trace_id)
ORDER BY position, app, environment, evaluator, trace_id, version, metrics
"""


class Page(NamedTuple):
    """Rows up to position `end`, and after the position that was asked for."""

    rows: list[ScoredRow]
    end: int


def end_of(time: datetime) -> int:
    """Return the position after all rows that were stored up to that millisecond."""
    return (round(time.timestamp() * 1000) + 1 << _HASH_BITS) - 1


def time_of(position: int) -> datetime:
    """Return the millisecond of a position."""
    return datetime.fromtimestamp((position >> _HASH_BITS) / 1000, UTC)


def read_page(database: Database, evaluators: Collection[str], after: int, end: int, most: int) -> Page:
    """Read the next `most` rows, and those that share the last one's position; `STEP` at most."""
    end = min(end, end_of(time_of(after) + STEP))
    if last := database.rows(_END, {**_bounds(evaluators, after, end), "before": most - 1}):
        end = int(last[0]["position"])
    rows = database.rows(_ROWS, _bounds(evaluators, after, end))
    return Page([ScoredRow(*row.values()) for row in rows], end)


def count_rows(database: Database, evaluators: Collection[str], after: int, end: int) -> int:
    """Count the rows between two positions."""
    return int(database.rows(_COUNT, _bounds(evaluators, after, end))[0]["n"])


def _bounds(evaluators: Collection[str], after: int, end: int) -> Mapping[str, Any]:
    times = {"since": time_of(after), "until": time_of(end)}  # for the index
    return {"run": LIVE, "evaluators": sorted(evaluators), "after": after, "end": end, **times}
