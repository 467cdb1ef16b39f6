"""Metrics of the same traces, by metric: what is read of rows where two numbers of a trace are compared."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from drift.causes.rows import kept
from drift.insights.agreement import Floats
from drift.insights.insight import Period
from drift.windows import sql
from drift.windows.metrics import WatchedMetric
from sinks.clickhouse.database import Database

_TIMES = "time >= {start:DateTime64(3, 'UTC')} AND time < {end:DateTime64(3, 'UTC')}"


class Place(NamedTuple):
    """Whose traces they are."""

    app: str
    environment: str


def sampled_columns(
    database: Database, metrics: Iterable[WatchedMetric], period: Period, most: int
) -> dict[Place, dict[str, dict[str, float]]]:
    """Of each application about `most` live traces of the period at most, in minutes drawn by lot: rows are sorted by
    minutes, so that no others are read.
    """
    rows = database.rows(
        "SELECT app, environment, toUnixTimestamp(toStartOfMinute(time)) AS minute, count() AS n FROM traces "
        f"WHERE run_id = 'live' AND {_TIMES} GROUP BY app, environment, minute "
        "ORDER BY app, environment, cityHash64(minute)",
        {"start": period.start, "end": period.end},
    )
    places: dict[Place, list[tuple[int, int]]] = {}
    for row in rows:
        places.setdefault(Place(row["app"], row["environment"]), []).append((row["minute"], row["n"]))
    names = list(metrics)
    found: dict[Place, dict[str, dict[str, float]]] = {}
    for place, minutes in places.items():
        drawn, traces = _drawn(minutes, most)
        times = ", ".join(f"toDateTime({one}, 'UTC')" for one in drawn)
        where = f"app = {sql.text(place.app)} AND environment = {sql.text(place.environment)}"
        where += f" AND toStartOfMinute(time) IN ({times})"
        where += f" AND {kept(min(1.0, most / traces))}"
        found |= columns(database, names, where, period.start, period.end)
    return found


def columns(
    database: Database,
    metrics: Iterable[WatchedMetric],
    where: str,
    start: datetime,
    end: datetime,
    bound: Mapping[str, Any] | None = None,
) -> dict[Place, dict[str, dict[str, float]]]:
    """Of live scored rows in [start, end) for which `where` holds, `bound` its parameters; of each metric the values
    under the fingerprint that most have: others never mix.
    """
    names = sorted(one.name for one in metrics)
    rows = database.rows(
        f"""
        SELECT app, environment, metric, toString(fingerprint) AS mark, groupArray(trace_id) AS traces,
            groupArray(value) AS values
        FROM (
            SELECT app, environment, fingerprint, trace_id, concat(evaluator, '.', key) AS metric, value
            FROM (
                SELECT app, environment, evaluator, fingerprint, trace_id, metrics FROM scores FINAL
                WHERE run_id = 'live' AND status = 'scored' AND {_TIMES} AND {where}
                    AND evaluator IN {sql.texts(sorted({name.partition(".")[0] for name in names}))}
            ) ARRAY JOIN mapKeys(metrics) AS key, mapValues(metrics) AS value
        )
        WHERE metric IN {sql.texts(names)}
        GROUP BY app, environment, metric, mark
        ORDER BY app, environment, metric, length(values) DESC, mark LIMIT 1 BY app, environment, metric""",
        {**(bound or {}), "start": start, "end": end},
    )
    found: dict[Place, dict[str, dict[str, float]]] = {}
    for row in rows:
        of_place = found.setdefault(Place(row["app"], row["environment"]), {})
        of_place[row["metric"]] = dict(zip(row["traces"], row["values"], strict=True))
    return found


def side_by_side(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[Floats, Floats]:
    """The values of the traces that have both, in one order."""
    both = [trace_id for trace_id in a if trace_id in b]
    return np.array([a[one] for one in both], np.float64), np.array([b[one] for one in both], np.float64)


def _drawn(minutes: Sequence[tuple[int, int]], most: int) -> tuple[list[int], int]:
    """As many minutes as it takes, the first first, and how many traces they have."""
    found, traces = [], 0
    for minute, n in minutes:
        found.append(minute)
        traces += n
        if traces >= most:
            break
    return found, traces
