"""Marks of base windows whose rows changed. A mark is taken back only after a roll-up that saw its rows was stored."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from drift.leadership import Term
from drift.windows.scope import WindowKey
from sinks.clickhouse.database import Database


@dataclass(frozen=True, slots=True)
class Marked:
    """A base window that a lane's writes changed, and the marks that say so."""

    window: WindowKey
    lane: str
    mark_ids: tuple[str, ...]


class DoneRow(NamedTuple):
    """Table `dirty_windows`: takes exactly one mark back."""

    run_id: str
    app: str
    environment: str
    lane: str
    start: int
    mark_id: str
    done: int
    epoch: int


def pending(database: Database, term: Term, lanes: Iterable[str], most: int = 50_000) -> list[Marked]:
    """Marks to be worked off, the oldest windows first; of runs that are neither live nor complete none.

    Of live windows only those of `lanes`, which close theirs: a lane that nobody runs would fill up `most` in the end.
    Also those that an older leader took back when it led no more, be it that several were elected since: what it
    stored then loses against its successor's rows, so the rows that the mark speaks of may be in no window.
    """
    rows = database.rows(
        """
        SELECT run_id, app, environment, toUnixTimestamp(start) AS at, lane, groupArray(mark_id) AS mark_ids
        FROM (
            SELECT run_id, app, environment, start, lane, mark_id FROM dirty_windows FINAL
            LEFT JOIN (
                SELECT epoch, min(elected_at) OVER (ORDER BY epoch ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
                    AS over_at
                FROM leaders FINAL
            ) AS terms USING (epoch)
            WHERE (done = 0 OR (epoch < {epoch:UInt64} AND marked_at >= over_at))
                AND ((run_id IN ('live', 'probe') AND lane IN {lanes:Array(String)})
                    OR run_id IN (SELECT run_id FROM runs FINAL WHERE state = 'completed'))
            ORDER BY start LIMIT {most:UInt64}
        )
        GROUP BY run_id, app, environment, start, lane ORDER BY start, run_id, app, environment, lane
        """,
        {"epoch": term.epoch, "lanes": sorted(lanes), "most": most},
    )
    return [
        Marked(WindowKey(row["run_id"], row["app"], row["environment"], row["at"]), row["lane"], tuple(row["mark_ids"]))
        for row in rows
    ]


def take_back(database: Database, term: Term, marked: Iterable[Marked]) -> None:
    """Exactly these marks are worked off; one written meanwhile for the same window stays."""
    rows = [
        DoneRow(*one.window[:3], one.lane, one.window.start, id_, 1, term.epoch)
        for one in marked
        for id_ in one.mark_ids
    ]
    database.insert("dirty_windows", rows)
