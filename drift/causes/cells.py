"""From cells, what one group had in one step of time, to splits; groups with little traffic are read as one."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from drift.causes.culprit import LEAST_TRAFFIC
from drift.causes.frame import Frame
from drift.causes.splits import Split, Sums, split_of
from drift.windows.scope import WHOLE_MINUTES
from sinks.clickhouse.database import Database

WHOLE = ""  # the dimension that does not split


def read_splits(
    database: Database, frame: Frame, cells: str, parameters: Mapping[str, Any] | None = None, sampled: float = 1.0
) -> dict[str, Split]:
    """By dimension of a SELECT of step, dimension, value, n, total, squares; little groups have no column."""
    rows = database.rows(
        f"""
        SELECT dimension, value, steps, ns, totals, all_squares FROM (
            SELECT dimension, value, groupArray(step) AS steps, groupArray(n) AS ns, groupArray(total) AS totals,
                groupArray(squares) AS all_squares,
                sumIf(n, step < 0) AS before, sumIf(n, step >= 0) AS after,
                sum(before) OVER (PARTITION BY dimension) AS all_before,
                sum(after) OVER (PARTITION BY dimension) AS all_after
            FROM ({cells}) GROUP BY dimension, value
        ) WHERE before >= {LEAST_TRAFFIC} * all_before OR after >= {LEAST_TRAFFIC} * all_after
        ORDER BY dimension, value
        """,
        parameters,
        WHOLE_MINUTES,
    )
    found: dict[str, dict[str, Sums]] = {}
    for row in rows:
        found.setdefault(row["dimension"], {})[row["value"]] = _through_time(frame, row)
    if WHOLE not in found:
        return {}
    whole = found.pop(WHOLE)[""]
    made = {name: split_of(name, groups, whole, frame.after, sampled) for name, groups in found.items()}
    return {WHOLE: split_of(WHOLE, {}, whole, frame.after, sampled), **made}


def _through_time(frame: Frame, row: Mapping[str, Any]) -> Sums:
    """Its sums of each kept step."""
    at = np.array(row["steps"], dtype=int) + frame.time.before
    sums = np.zeros((3, len(frame.kept)))
    sums[:, at] = row["ns"], row["totals"], row["all_squares"]
    return Sums(*sums[:, frame.kept])
