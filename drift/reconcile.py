"""A trace that was sent again with another minute or app stands under two keys; the older one is taken out.

Nothing but a look at every id of the retention tells whether a trace was there before. So each look searches the days
around the traces that are new, and only once an hour all days.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, get_args

from drift import cursors
from evaluators.spec import Lane
from sinks.clickhouse.database import Database
from sinks.rows import DirtyRow

_CURSOR = "reconcile"
_CURSOR_FAR = "reconcile:far"
_FAR_EVERY = timedelta(hours=1)
_NEAR = timedelta(days=1)
_FIRST_LOOK = timedelta(days=1)


class TraceTombstone(NamedTuple):
    """Tables `traces`, `trace_texts` and `embeddings`: the row of this key is gone for every older version."""

    run_id: str
    app: str
    environment: str
    time: datetime
    trace_id: str
    version: int
    is_deleted: int


class ScoreTombstone(NamedTuple):
    """Table `scores`, likewise."""

    run_id: str
    app: str
    environment: str
    evaluator: str
    time: datetime
    trace_id: str
    version: int
    is_deleted: int


@dataclass(frozen=True, slots=True)
class _Moved:
    """One place of a trace that has a newer one."""

    run_id: str
    app: str
    environment: str
    time: datetime
    trace_id: str
    version: int  # of the newest


def reconcile(database: Database, evaluators: Iterable[str], base_s: int, now: datetime) -> int:
    """Every trace ingested lately stands under one key when this returns, and the windows it left are dirty.

    Marks come first and the trace's own row last, so that whoever takes over after a crash finds either the trace still
    doubled or its windows marked. An evaluator that has not written yet finds its tombstone there: all get one.
    """
    far_since = _since(database, _CURSOR_FAR, now)
    far = now - far_since >= _FAR_EVERY
    moved = _moved(database, far_since, None) if far else _moved(database, _since(database, _CURSOR, now), _NEAR)
    database.insert("dirty_windows", _marks(moved, base_s))
    ids = sorted(set(evaluators))
    database.insert(
        "scores",
        [
            ScoreTombstone(one.run_id, one.app, one.environment, id_, one.time, one.trace_id, one.version, 1)
            for one in moved
            for id_ in ids
        ],
    )
    tombstones = [
        TraceTombstone(one.run_id, one.app, one.environment, one.time, one.trace_id, one.version, 1) for one in moved
    ]
    database.insert("trace_texts", tombstones)
    database.insert("embeddings", tombstones)
    database.insert("traces", tombstones)
    for cursor in (_CURSOR, _CURSOR_FAR) if far else (_CURSOR,):
        cursors.keep(database, cursor, int(now.timestamp() * 1000))
    return len(moved)


def _moved(database: Database, since: datetime, near: timedelta | None) -> list[_Moved]:
    """Of traces ingested since then the older places: all of them, or those that are as near to any new one."""
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
    doubled = f"""
        SELECT run_id, trace_id FROM traces
        WHERE {within} AND trace_id IN (
            SELECT trace_id FROM traces WHERE {within} AND ingested_at >= {{since:DateTime64(3, 'UTC')}}
        )
        GROUP BY run_id, trace_id
        HAVING min(cityHash64(app, environment, toStartOfMinute(time)))
            != max(cityHash64(app, environment, toStartOfMinute(time)))"""
    # A trace whose older place was taken out is among the doubled until the engine has merged it away.
    if not database.rows(f"{doubled} LIMIT 1", bounds):
        return []
    rows = database.rows(
        f"""
        SELECT run_id, trace_id, max(newest_here) AS newest,
            groupArray((app, environment, there, newest_here)) AS places
        FROM (
            SELECT run_id, trace_id, toString(app) AS app, toString(environment) AS environment,
                argMax(time, version) AS there, max(version) AS newest_here, argMax(is_deleted, version) AS gone
            FROM traces
            WHERE {within} AND trace_id IN (SELECT trace_id FROM ({doubled}))
            GROUP BY run_id, app, environment, toStartOfMinute(time), trace_id
        )
        WHERE gone = 0
        GROUP BY run_id, trace_id HAVING count() > 1
        """,
        bounds,
    )
    return [
        _Moved(row["run_id"], app, environment, time, row["trace_id"], row["newest"])
        for row in rows
        for app, environment, time, version in row["places"]
        if version < row["newest"]
    ]


def _marks(moved: Iterable[_Moved], base_s: int) -> list[DirtyRow]:
    mark = f"reconcile:{uuid.uuid4().hex}"
    windows = {(one.run_id, one.app, one.environment, int(one.time.timestamp()) // base_s * base_s) for one in moved}
    return [
        DirtyRow(run_id, app, environment, lane, datetime.fromtimestamp(start, UTC), mark)
        for run_id, app, environment, start in sorted(windows)
        for lane in get_args(Lane)
    ]


def _since(database: Database, cursor: str, now: datetime) -> datetime:
    looked_ms = cursors.position(database, cursor)
    return datetime.fromtimestamp(looked_ms / 1000, UTC) - cursors.INGEST_OVERLAP if looked_ms else now - _FIRST_LOOK
