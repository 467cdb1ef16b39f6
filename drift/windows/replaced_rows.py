"""Deletes scores, texts and vectors of older messages that the newest message did not overwrite.

An evaluator leaves no row of a trace whose task it does not look at. So a newer message with another task, or after an
evaluator was switched off, writes nothing over the row of the older message. Table `traces` tells which message is the
newest at each place, and whether the trace moved elsewhere: every older row at that place is marked as deleted.

The roll-up does this to the windows that it is about to compute, so that no stored window counts such a row. A
tombstone has the version just before that of the newest message. It loses against every row of that message, whichever
lane stores it later. It wins over every older row, also one that a slow lane stores again.
"""

import math
from collections.abc import Iterable, Mapping

from ragtide.drift.windows.scope import MINUTE, WHOLE_MINUTES, WindowKey, batch_scopes
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.version import input_sql, is_older_sql

_KEYS: Mapping[str, tuple[str, ...]] = {  # besides the minute
    "scores": ("run_id", "app", "environment", "evaluator", "trace_id"),
    "trace_texts": ("run_id", "app", "environment", "trace_id"),
    "embeddings": ("run_id", "app", "environment", "trace_id"),
}
_MAX_DAYS = 50  # of one insert, which may span at most 100 partitions
_MAX_GAP = 5  # windows of one scope are so many sizes apart at most


def delete_replaced(database: Database, windows: Iterable[WindowKey], base_s: int) -> dict[str, int]:
    """Delete the rows of older messages in the minutes of these windows; how many, by table.

    It may stop anywhere and run again. Rows of different runs never affect each other.
    """
    size_s = math.lcm(base_s, MINUTE)  # all versions of a row stand in one minute
    whole = {window._replace(start=window.start // size_s * size_s) for window in windows}
    most = min(100, max(1, _MAX_DAYS * 86_400 // (_MAX_GAP * size_s)))
    deleted = dict.fromkeys(_KEYS, 0)
    for scope in batch_scopes(whole, size_s, (), most):
        start = f"toUInt32(intDiv(toUnixTimestamp(time), {size_s}) * {size_s})"
        rows = scope.rows_condition(start)
        # Rows of a message that is the newest of no trace there.
        unknown = f"{rows} AND is_deleted = 0 AND {_message_id(start)} NOT IN "
        unknown += f"(SELECT {_message_id(start)} FROM traces FINAL WHERE {rows})"
        for table in _KEYS:
            # In most windows no trace was sent again, and the look ends here: it reads hardly more than versions.
            if not database.rows(f"SELECT 1 FROM {table} WHERE {unknown} LIMIT 1", settings=WHOLE_MINUTES):
                continue
            replaced = _tombstones(table, rows, unknown)
            count = database.rows(f"SELECT count() AS n FROM ({replaced})", settings=WHOLE_MINUTES)[0]["n"]
            if count:
                columns = ", ".join((*_KEYS[table], "time", "version", "is_deleted"))
                database.command(f"INSERT INTO {table} ({columns}) {replaced}", settings=WHOLE_MINUTES)
                deleted[table] += count
    return deleted


def _message_id(start: str) -> str:
    """SQL expression: a number of the message that a row is of, and of its window: another run may have the message.

    A number is compared four times as fast as the columns that it is made of.
    """
    return f"bitXor({input_sql('version')}, toUInt128(cityHash64(run_id, app, environment, {start})))"


def _tombstones(table: str, rows: str, unknown: str) -> str:
    """SELECT of the tombstones: the key's columns, time, version and is_deleted.

    It groups by key because that reads the suspected traces only; FINAL would merge all rows of the windows.
    """
    keys = ", ".join(_KEYS[table])
    older = f"{is_older_sql('written', 'newest')} OR (gone AND {input_sql('written')} = {input_sql('newest')})"
    return f"""
    SELECT {keys}, at AS time, greatest(written, toUInt128(newest - (newest > 0))) AS version, 1 AS is_deleted
    FROM (
        SELECT {keys}, toStartOfMinute(time) AS minute, max(time) AS at,
            max(version) AS written, argMax(is_deleted, (version, ingested_at, is_deleted)) AS deleted
        FROM {table} WHERE {rows} AND trace_id IN (SELECT trace_id FROM {table} WHERE {unknown})
        GROUP BY {keys}, minute
    ) AS stored
    INNER JOIN (
        SELECT run_id, app, environment, toStartOfMinute(time) AS minute, trace_id, max(version) AS newest,
            argMax(is_deleted, (version, ingested_at, is_deleted)) AS gone
        FROM traces WHERE {rows} GROUP BY run_id, app, environment, minute, trace_id
    ) AS standing USING (run_id, app, environment, minute, trace_id)
    WHERE NOT deleted AND ({older})"""
