"""Delete the older row of a trace that was sent again with another minute, app, environment or `probe`.

The older row in `traces` gets a tombstone and its windows are marked as dirty. The roll-up then deletes the trace's
other rows there (`ragtide.drift.windows.replaced_rows`). Live traces and probes are one stream; each replay is its own.

Only a search of all stored ids tells whether a trace was there before. So each run searches the days around the new
traces, and once an hour all days.
"""

import logging
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, get_args

from ragtide.drift import cursors
from ragtide.evaluators.spec import Lane
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.errors import STATEMENT_FAILED, describe_failure
from ragtide.sinks.rows import LIVE, PROBE, DirtyRow

logger = logging.getLogger(__name__)
_CURSOR = "reconcile"
_FULL_CURSOR = "reconcile:far"
_FULL_TRIED = "reconcile:far_tried"
_FULL_EVERY = timedelta(hours=1)
_NEAR = timedelta(days=1)
_FIRST_LOOKBACK = timedelta(days=1)
_STREAM = f"if(run_id = '{PROBE}', '{LIVE}', run_id) AS stream"


class TraceTombstone(NamedTuple):
    """Table `traces`: deletes every older version of the row with this key."""

    run_id: str
    app: str
    environment: str
    time: datetime
    trace_id: str
    version: int
    is_deleted: int = 1


def tombstone_moved_traces(database: Database, base_s: int, now: datetime) -> int:
    """Leave each trace ingested lately at one place, mark the windows it left, and return the number of tombstones.

    Marks are stored first: after a crash the next leader finds either the trace at two places or its windows marked. If
    the search of all days is too much for the server, it is tried again an hour later. The days around the new traces
    are searched instead.
    """
    moved = _search_all_days(database, now)
    full = moved is not None
    if moved is None:
        moved = _moved_traces(database, _since(database, _CURSOR, now), _NEAR)
    database.insert("dirty_windows", _dirty_marks(moved, base_s))
    database.insert("traces", moved)
    for cursor in (_CURSOR, _FULL_CURSOR) if full else (_CURSOR,):
        cursors.save(database, cursor, _ms(now))
    return len(moved)


def _search_all_days(database: Database, now: datetime) -> "list[TraceTombstone] | None":
    """Return what a search of all days finds; None where it is not due or the server could not finish it."""
    since = _since(database, _FULL_CURSOR, now)
    if now - since < _FULL_EVERY or _ms(now - _FULL_EVERY) < cursors.load(database, _FULL_TRIED):
        return None
    try:
        return _moved_traces(database, since, None)
    except STATEMENT_FAILED as error:
        database.version()  # raises where it is the server that does not answer
        cursors.save(database, _FULL_TRIED, _ms(now))
        logger.warning(
            "the search of all days for moved traces failed and will be retried in an hour: %s", describe_failure(error)
        )
        return None


def _moved_traces(database: Database, since: datetime, near: timedelta | None) -> list[TraceTombstone]:
    """Find the older places of traces ingested since then, within `near` of any new one, or all.

    Each has the version of the newest place.
    """
    new = database.rows(
        "SELECT count() AS n, min(time) AS first, max(time) AS last FROM traces "
        "WHERE ingested_at >= {since:DateTime64(3, 'UTC')}",
        {"since": since},
    )[0]
    if not new["n"]:
        return []
    within, bounds = "1", {"since": since}
    if near is not None:
        within = "time >= {first:DateTime64(3, 'UTC')} AND time <= {last:DateTime64(3, 'UTC')}"
        bounds |= {"first": new["first"] - near, "last": new["last"] + near}
    duplicates = f"""
        SELECT {_STREAM}, trace_id FROM traces
        WHERE {within} AND trace_id IN (
            SELECT trace_id FROM traces WHERE {within} AND ingested_at >= {{since:DateTime64(3, 'UTC')}}
        )
        GROUP BY stream, trace_id
        HAVING min(cityHash64(run_id, app, environment, toStartOfMinute(time)))
            != max(cityHash64(run_id, app, environment, toStartOfMinute(time)))"""
    # A trace whose older place was deleted is among the duplicates until the engine merges it away.
    if not database.rows(f"{duplicates} LIMIT 1", bounds):
        return []
    # Equal versions are of one record that a changed decoder placed elsewhere, or of more partitions than versions can
    # distinguish.
    rows = database.rows(
        f"""
        SELECT trace_id, max(version_there) AS newest,
            arraySort(groupArray((version_there, topic_there, partition_there, ingested_there,
                run_id, app, environment, time_there))) AS places
        FROM (
            SELECT {_STREAM}, toString(run_id) AS run_id, toString(app) AS app, toString(environment) AS environment,
                trace_id, max(version) AS version_there,
                argMax((toString(topic), partition, ingested_at, time, is_deleted), (version, ingested_at)) AS row,
                row.1 AS topic_there, row.2 AS partition_there, row.3 AS ingested_there, row.4 AS time_there
            FROM traces
            WHERE {within} AND trace_id IN (SELECT trace_id FROM ({duplicates}))
            GROUP BY stream, run_id, app, environment, toStartOfMinute(time), trace_id
            HAVING row.5 = 0
        )
        GROUP BY stream, trace_id HAVING count() > 1
        """,
        bounds,
    )
    return [
        TraceTombstone(run_id, app, environment, time, row["trace_id"], row["newest"])
        for row in rows
        for *_, run_id, app, environment, time in row["places"][:-1]
    ]


def _dirty_marks(moved: Iterable[TraceTombstone], base_s: int) -> list[DirtyRow]:
    mark = f"reconcile:{uuid.uuid4().hex}"
    windows = {(one.run_id, one.app, one.environment, int(one.time.timestamp()) // base_s * base_s) for one in moved}
    return [
        DirtyRow(run_id, app, environment, lane, datetime.fromtimestamp(start, UTC), mark)
        for run_id, app, environment, start in sorted(windows)
        for lane in get_args(Lane)
    ]


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _since(database: Database, cursor: str, now: datetime) -> datetime:
    last_run_ms = cursors.load(database, cursor)
    if not last_run_ms:
        return now - _FIRST_LOOKBACK
    return datetime.fromtimestamp(last_run_ms / 1000, UTC) - cursors.INGEST_OVERLAP
