"""Marks of base windows whose rows changed. A mark is cleared only after a roll-up that read its rows is stored."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.drift.leadership import Term
from ragtide.drift.windows.backoff import Application
from ragtide.drift.windows.scope import Scope, WindowKey
from ragtide.sinks.clickhouse.database import Database

MAX_MARKS = 50_000  # of one roll-up
_PASSED = "passed:"  # how the marks of `mark_larger` begin


@dataclass(frozen=True, slots=True)
class DirtyWindow:
    """A base window that a lane's writes changed, and its marks."""

    window: WindowKey
    lane: str
    mark_ids: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether no row changed: the watermark passed a larger window that begins with this one."""
        return all(id_.startswith(_PASSED) for id_ in self.mark_ids)


class ClearedMarkRow(NamedTuple):
    """Table `dirty_windows`: clears exactly one mark."""

    run_id: str
    app: str
    environment: str
    lane: str
    start: int
    mark_id: str
    done: int
    epoch: int


def pending_windows(
    database: Database, term: Term, lanes: Iterable[str], excluding: Iterable[Application] = (), limit: int = MAX_MARKS
) -> list[DirtyWindow]:
    """Return marked windows, the oldest first, of live runs and complete ones.

    Applications of `excluding` are left out: theirs would fill up `limit` while they wait. So are live windows of other
    lanes than `lanes`: those of a lane without workers would fill it up in the end.

    Marks count as pending if an older leader cleared them after its term ended, however many were elected since: its
    windows lose against its successor's, so the marked rows may be in no window.
    """
    left_out = [sql.digest(one.app) + sql.digest(one.environment) for one in excluding]
    rows = database.rows(
        f"""
        SELECT run_id, app, environment, toUnixTimestamp(start) AS at, lane, groupArray(mark_id) AS mark_ids
        FROM (
            SELECT run_id, app, environment, start, lane, mark_id FROM dirty_windows FINAL
            LEFT JOIN (
                SELECT epoch, min(elected_at) OVER (ORDER BY epoch ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
                    AS over_at
                FROM leaders FINAL
            ) AS terms USING (epoch)
            WHERE (done = 0 OR (epoch < {{epoch:UInt64}} AND marked_at >= over_at))
                AND ((run_id IN ('live', 'probe') AND lane IN {{lanes:Array(String)}})
                    OR run_id IN (SELECT run_id FROM runs FINAL WHERE state = 'completed'))
                {_excluding(left_out)}
            ORDER BY start LIMIT {{most:UInt64}}
        )
        GROUP BY run_id, app, environment, start, lane ORDER BY start, run_id, app, environment, lane
        """,
        {"epoch": term.epoch, "lanes": sorted(lanes), "most": limit},
    )
    return [
        DirtyWindow(
            WindowKey(row["run_id"], row["app"], row["environment"], row["at"]), row["lane"], tuple(row["mark_ids"])
        )
        for row in rows
    ]


def clear_marks(database: Database, term: Term, marked: Iterable[DirtyWindow]) -> None:
    """Clear exactly these marks; one written meanwhile for the same window stays."""
    rows = [
        ClearedMarkRow(*one.window[:3], one.lane, one.window.start, id_, 1, term.epoch)
        for one in marked
        for id_ in one.mark_ids
    ]
    database.insert("dirty_windows", rows)


def mark_larger(database: Database, term: Term, scope: Scope, smaller_s: int, lane: str) -> None:
    """Mark every window of the scope that has windows of `smaller_s`, at its first base window."""
    start = f"toDateTime(intDiv(toUnixTimestamp(start), {scope.size_s}) * {scope.size_s}, 'UTC')"
    database.command(
        "INSERT INTO dirty_windows (run_id, app, environment, lane, start, mark_id, done) "
        f"SELECT DISTINCT run_id, app, environment, {sql.text(lane)}, {start}, '{_PASSED}{term.next_version()}', 0 "
        f"FROM windows WHERE {scope.windows_condition(smaller_s)}"
    )


def _excluding(digests: Collection[str]) -> str:
    names = f"concat({sql.digest_of('app')}, {sql.digest_of('environment')})"
    return f"AND {names} NOT IN {sql.texts(digests)}" if digests else ""
