"""Delete scores, explanations, texts and vectors of older messages that the newest message did not overwrite.

An evaluator writes no row of a trace whose task it does not evaluate. So a newer message with another task, or after an
evaluator was turned off, does not overwrite the row of the older message. Table `traces` has the newest message of each
trace at a place, and whether the trace moved elsewhere. Every older row at that place gets a tombstone.

The roll-up does this to the windows that it is about to compute, so that no stored window counts such a row. A
tombstone has the version just before that of the newest message: it loses against every row of that message, whichever
lane stores it later, and wins over every older row, even one that a slow lane stores again.
"""

import math
from collections.abc import Iterable, Mapping

from ragtide.drift.stats import DAY_S
from ragtide.drift.windows.scope import MINUTE_S, WHOLE_MINUTES, WindowKey, batch_scopes
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.version import input_sql, is_older_sql

_KEYS: Mapping[str, tuple[str, ...]] = {  # besides the minute
    "scores": ("run_id", "app", "environment", "evaluator", "trace_id"),
    "explanations": ("run_id", "app", "environment", "evaluator", "trace_id"),
    "trace_texts": ("run_id", "app", "environment", "trace_id"),
    "embeddings": ("run_id", "app", "environment", "trace_id"),
}
_MAX_DAYS = 50  # in one insert, which may span at most 100 partitions
_MAX_GAP = 5  # sizes between the windows of one scope, at most


def delete_replaced(database: Database, windows: Iterable[WindowKey], base_s: int) -> dict[str, int]:
    """Delete the rows of older messages in the minutes of these windows; return their number by table.

    It may stop anywhere and run again. Rows of different runs never affect each other.
    """
    size_s = math.lcm(base_s, MINUTE_S)  # all versions of a row stand in one minute
    whole = {window._replace(start=window.start // size_s * size_s) for window in windows}
    most = min(100, max(1, _MAX_DAYS * DAY_S // (_MAX_GAP * size_s)))
    deleted = dict.fromkeys(_KEYS, 0)
    for scope in batch_scopes(whole, size_s, (), most):
        start = f"toUInt32(intDiv(toUnixTimestamp(time), {size_s}) * {size_s})"
        rows = scope.rows_condition(start)
        # Rows of a message that is not the newest of any trace there.
        unknown = f"{rows} AND is_deleted = 0 AND {_message_id(start)} NOT IN "
        unknown += f"(SELECT {_message_id(start)} FROM traces FINAL WHERE {rows})"
        for table in _KEYS:
            # In most windows no trace was sent again, and it ends here, after reading hardly more than versions.
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
    """Expression: a number for a row's message and window, since another run may have the same message.

    Comparing numbers is four times as fast as comparing the columns.
    """
    return f"bitXor({input_sql('version')}, toUInt128(cityHash64(run_id, app, environment, {start})))"


def _tombstones(table: str, rows: str, unknown: str) -> str:
    """Select the tombstones: the key's columns, time, version and is_deleted.

    It groups by key to read the suspected traces only; FINAL would merge all rows of the windows.
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
