"""Read scored rows in the order in which they were stored: the same rows for the same bounds."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple

from ragtide.drift.export.events import ScoredRow
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE

STEP = timedelta(minutes=5)  # of one look: an outage of a day is not sorted again for each page
_STORED = """run_id = {run:String} AND status = 'scored' AND is_deleted = 0
    AND has({evaluators:Array(String)}, evaluator)
    AND ingested_at > {since:DateTime64(3, 'UTC')} AND ingested_at <= {until:DateTime64(3, 'UTC')}"""
_UNTIL = f"SELECT ingested_at FROM scores WHERE {_STORED} ORDER BY ingested_at LIMIT 1 OFFSET {{before:UInt32}}"
_COUNT = f"SELECT count() AS n FROM scores WHERE {_STORED}"
_ROWS = f"""
SELECT app, environment, evaluator, time, trace_id, version, metrics, evidence, findings, fingerprint,
    max(ingested_at) AS stored_at, any(root) AS span_id
FROM (SELECT * FROM scores WHERE {_STORED}) AS scored
LEFT JOIN
(
    SELECT app, environment, trace_id, argMax(span_id, version) AS root FROM traces
    WHERE run_id = {{run:String}} AND (app, environment, toStartOfMinute(time), trace_id) IN
        (SELECT app, environment, toStartOfMinute(time), trace_id FROM scores WHERE {_STORED})
    GROUP BY app, environment, trace_id
) AS traced USING (app, environment, trace_id)
GROUP BY app, environment, evaluator, time, trace_id, version, metrics, evidence, findings, fingerprint
ORDER BY stored_at, app, environment, evaluator, trace_id, version, metrics
"""


class Page(NamedTuple):
    """Rows that were stored up to `until`, and after the position that was asked for."""

    rows: list[ScoredRow]
    until: datetime


def read_page(database: Database, evaluators: Collection[str], since: datetime, until: datetime, most: int) -> Page:
    """Read about `most` rows, and all that were stored in the same millisecond as the last one; `STEP` at most."""
    until = min(until, since + STEP)
    asked = {"run": LIVE, "evaluators": sorted(evaluators), "since": since}
    if last := database.rows(_UNTIL, {**asked, "until": until, "before": most - 1}):
        until = last[0]["ingested_at"]
    rows = database.rows(_ROWS, {**asked, "until": until})
    return Page([ScoredRow(*row.values()) for row in rows], until)


def count_rows(database: Database, evaluators: Collection[str], since: datetime, until: datetime) -> int:
    """Count the rows that were stored in between."""
    asked = {"run": LIVE, "evaluators": sorted(evaluators), "since": since, "until": until}
    return int(database.rows(_COUNT, asked)[0]["n"])
