"""A trace that was sent again with another minute or app stands under two keys; the older one is taken out."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, get_args

from drift.rules.stored import CursorRow
from evaluators.spec import Lane
from sinks.clickhouse.database import Database
from sinks.rows import DirtyRow

_CURSOR = "reconcile"
_OVERLAP = timedelta(seconds=60)  # of ingest times: an insert shows up a little after its rows' time
_FIRST_LOOK = timedelta(days=1)


class TraceTombstone(NamedTuple):
    """Tables `traces` and `trace_texts`: the row of this key is gone for every older version."""

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
    since = _since(database, now)
    moved = _moved(database, since)
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
    database.insert("traces", tombstones)
    database.insert("cursors", [CursorRow(_CURSOR, int(now.timestamp() * 1000))])
    return len(moved)


def _moved(database: Database, since: datetime) -> list[_Moved]:
    rows = database.rows(
        """
        SELECT run_id, trace_id, max(version) AS newest,
            groupArray((toString(app), toString(environment), time, version)) AS places
        FROM traces FINAL
        WHERE (run_id, trace_id) IN (
            SELECT run_id, trace_id FROM traces WHERE ingested_at >= {since:DateTime64(3, 'UTC')}
        )
        GROUP BY run_id, trace_id HAVING count() > 1
        """,
        {"since": since},
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


def _since(database: Database, now: datetime) -> datetime:
    rows = database.rows("SELECT max(position) AS position FROM cursors WHERE name = {name:String}", {"name": _CURSOR})
    position = rows[0]["position"]
    return datetime.fromtimestamp(position / 1000, UTC) - _OVERLAP if position else now - _FIRST_LOOK
