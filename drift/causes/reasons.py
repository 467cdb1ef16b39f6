"""Why records were not scored when coverage moved: each reason's part, which together are the whole move."""

from typing import NamedTuple

from drift.causes.aggregates import of_series
from drift.causes.decomposition import Move
from drift.causes.frame import Frame
from sinks.clickhouse.database import Database

_MOST = 5


class Reason(NamedTuple):
    """A kind of failure: its share of the records to be scored before and after, and of the move."""

    kind: str
    before: float
    after: float
    share: float


def reasons(database: Database, frame: Frame, move: Move) -> list[Reason]:
    """The greatest parts first, five at most."""
    rows = database.rows(
        f"""
        SELECT kind, toFloat64(sumIf(n, at < 0)) AS before, toFloat64(sumIf(n, at >= 0)) AS after FROM (
            SELECT {frame.time.step_of("toInt64(toUnixTimestamp(start))")} AS at, failures
            FROM windows FINAL WHERE {of_series(frame)} AND {frame.kept_steps("at")}
        ) ARRAY JOIN mapKeys(failures) AS kind, mapValues(failures) AS n
        GROUP BY kind"""
    )
    found = [(row["kind"], row["before"] / move.n_before, row["after"] / move.n_after) for row in rows]
    parts = [Reason(kind, before, after, (after - before) / move.size) for kind, before, after in found]
    return sorted(parts, key=lambda one: (-one.share, one.kind))[:_MOST]
