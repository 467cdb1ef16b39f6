"""What detectors read of the windows: columns of numbers for many series at once, pooled to ticks.

A series is named by a 64-bit hash of its place, a fingerprint by its own; names are read once, when one is new.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragtide.drift import sql
from ragtide.drift.anomalies.metrics import MonitoredMetric, SignalKind
from ragtide.drift.detectors.arrays import Integers
from ragtide.drift.rules.model import Series
from ragtide.drift.stats.calendar import DAY_S
from ragtide.drift.windows.histogram import FAR, bin_bounds, count_out_of_bounds
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE

Ids = npt.NDArray[np.uint64]
WindowCells = npt.NDArray[np.void]  # one row per series, fingerprint and tick (and label) with records
OTHER_LABEL = 0
_FIELDS = ", ".join(Series._fields)
_ID = f"cityHash64({_FIELDS})"
_CELL = [("series", "<u8"), ("fingerprint", "<u8"), ("at", "<u4"), ("n", "<u8"), ("x", "<f8"), ("y", "<f8")]
_LABEL_CELL = [("series", "<u8"), ("fingerprint", "<u8"), ("at", "<u4"), ("label", "<u8"), ("n", "<u8")]
_DAY = [("series", "<u8"), ("day", "<u4"), ("first", "<u4"), ("n", "<u8")]
_CHANGED_TICK = [("series", "<u8"), ("at", "<u4"), ("alive", "<u1"), ("version", "<u8")]
_MAX_IDS = 5_000  # ids in a statement
BIN_OFFSET = 1 << 30  # bins may be negative
_SETTINGS = {"do_not_merge_across_partitions_select_final": 1}  # all versions of a window stand in one partition


@dataclass(frozen=True, slots=True)
class TickRange:
    """Base windows of a run (live, or a replay's) that start in [first, end), pooled to ticks."""

    base_s: int
    tick_s: int
    first: int
    end: int
    run_id: str = LIVE

    @property
    def ticks(self) -> Integers:
        """Their starts."""
        return np.arange(self.first, self.end, self.tick_s, dtype=np.int64)

    def starting_at(self, first: int) -> "TickRange":
        """The same, from another tick on."""
        return TickRange(self.base_s, self.tick_s, first, self.end, self.run_id)

    @property
    def condition(self) -> str:
        """Condition on rows of `windows`."""
        return (
            f"run_id = {sql.text(self.run_id)} AND size_s = {self.base_s} "
            f"AND start >= toDateTime({self.first}, 'UTC') AND start < toDateTime({self.end}, 'UTC')"
        )


class NewSeries(NamedTuple):
    """A series that was not known, and the hash of its last fingerprint."""

    series: Series
    fingerprint: int


def newest_version(database: Database, base_s: int, since: int) -> int:
    """Of live base windows; at least `since`."""
    rows = database.rows(
        f"SELECT max(version) AS newest FROM windows WHERE run_id = 'live' AND size_s = {base_s} AND version >= {since}"
    )
    return max(since, int(rows[0]["newest"]))


def changed_ticks(database: Database, span: TickRange, metrics: Iterable[str], since: int) -> WindowCells:
    """Series and ticks with windows newer than version `since`; `alive`: some of them may still page."""
    return database.numbers(
        f"""
        SELECT {_ID} AS series, {_tick(span)} AS at, toUInt8(max(state != 'frozen')) AS alive, max(version) AS newest
        FROM windows WHERE {span.condition} AND version > {since} AND metric IN {sql.texts(metrics)}
        GROUP BY series, at""",
        _CHANGED_TICK,
    )


def series_ids(database: Database, span: TickRange, metrics: Iterable[str]) -> Ids:
    """The series of these metrics that have windows, ascending."""
    found = database.numbers(
        f"SELECT DISTINCT {_ID} AS series FROM windows WHERE {span.condition} AND metric IN {sql.texts(metrics)} "
        "ORDER BY series",
        [("series", "<u8")],
    )
    return np.ascontiguousarray(found["series"])


def load_series(database: Database, span: TickRange, metrics: Iterable[str], ids: Ids) -> dict[int, NewSeries]:
    """Series by id, in the order in which windows are stored."""
    found: dict[int, NewSeries] = {}
    for first in range(0, len(ids), _MAX_IDS):
        rows = database.rows(
            f"SELECT {_FIELDS}, {_ID} AS id, argMaxIf(cityHash64(fingerprint), start, scored > 0) AS mark FROM windows "
            f"WHERE {span.condition} AND metric IN {sql.texts(metrics)} "
            f"AND id IN {_id_list(ids[first : first + _MAX_IDS])} GROUP BY {_FIELDS}"
        )
        found |= {row["id"]: NewSeries(Series(*(row[name] for name in Series._fields)), row["mark"]) for row in rows}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def record_days(database: Database, series: Sequence[Series], ids: Ids, span: TickRange) -> WindowCells:
    """Of each series and day (its start) with records: how many, `n`, and when the first window with any began."""
    return database.numbers(
        f"""
        SELECT series, day, min(at), sum(records) FROM (
            SELECT {_ID} AS series, toUInt32(intDiv(toUnixTimestamp(start), {DAY_S}) * {DAY_S}) AS day,
                toUInt32(toUnixTimestamp(start)) AS at, scored AS records
            FROM windows FINAL WHERE {span.condition} AND scored > 0 AND {_series_condition(series)}
        ) WHERE series IN {_id_list(ids)}
        GROUP BY series, day""",
        _DAY,
        _SETTINGS,
    )


def window_cells(
    database: Database,
    kind: SignalKind,
    monitored: Mapping[str, MonitoredMetric],
    series: Sequence[Series],
    ids: Ids,
    levels: npt.NDArray[Any],
    span: TickRange,
) -> WindowCells:
    """Ticks of these series. `x`, `y` of scores: sum and sum of squares; of rates: hits; of positives: how many lie
    above each of the `levels` [S, 2] (bins). Of categories `label` instead, a hash of it.
    """
    if not len(ids) or span.first >= span.end:
        return np.empty(0, np.dtype(_LABEL_CELL if kind == "category" else _CELL))
    if kind == "category":
        return _label_cells(database, series, ids, levels, span)
    x, y = _sums(kind, monitored, sorted({one.metric for one in series}), ids, levels)
    return database.numbers(
        f"""
        SELECT series, mark, at, sum(records), sum(first), sum(second) FROM (
            SELECT {_ID} AS series, cityHash64(fingerprint) AS mark, {_tick(span)} AS at, scored AS records,
                toFloat64({x}) AS first, toFloat64({y}) AS second
            FROM windows FINAL WHERE {span.condition} AND scored > 0 AND {_series_condition(series)}
        ) WHERE series IN {_id_list(ids)}
        GROUP BY series, mark, at""",
        _CELL,
        _SETTINGS,
    )


def merged_bins(database: Database, series: Sequence[Series], ids: Ids, span: TickRange) -> WindowCells:
    """Histograms over the whole span: `at` is the bin, `n` its records; of each fingerprint."""
    return database.numbers(
        f"""
        SELECT series, mark, bin, sum(records), 0., 0. FROM (
            SELECT {_ID} AS series, cityHash64(fingerprint) AS mark, toUInt32(entry.1 + {BIN_OFFSET}) AS bin,
                entry.2 AS records
            FROM windows FINAL ARRAY JOIN bins AS entry WHERE {span.condition} AND {_series_condition(series)}
        ) WHERE series IN {_id_list(ids)}
        GROUP BY series, mark, bin""",
        _CELL,
        _SETTINGS,
    )


def daily_bins(database: Database, series: Sequence[Series], ids: Ids, span: TickRange) -> WindowCells:
    """Histograms by day: `at` is the day's start, `label` the bin, `n` its records; of each fingerprint."""
    return database.numbers(
        f"""
        SELECT series, mark, day, bin, sum(records) FROM (
            SELECT {_ID} AS series, cityHash64(fingerprint) AS mark, {_tick(span)} AS day,
                toUInt64(entry.1 + {BIN_OFFSET}) AS bin, entry.2 AS records
            FROM windows FINAL ARRAY JOIN bins AS entry WHERE {span.condition} AND {_series_condition(series)}
        ) WHERE series IN {_id_list(ids)}
        GROUP BY series, mark, day, bin""",
        _LABEL_CELL,
        _SETTINGS,
    )


def frequent_labels(
    database: Database, series: Sequence[Series], ids: Ids, span: TickRange, most: int
) -> list[dict[str, Any]]:
    """Of each series, its most frequent labels: `series`, `label` (text), `hash`."""
    return database.rows(
        f"""
        SELECT series, label, cityHash64(label) AS hash, sum(records) AS n FROM (
            SELECT {_ID} AS series, entry.1 AS label, entry.2 AS records
            FROM windows FINAL ARRAY JOIN category_counts AS entry WHERE {span.condition}
            AND {_series_condition(series)}
        ) WHERE series IN {_id_list(ids)}
        GROUP BY series, label ORDER BY series, n DESC, label LIMIT {most} BY series""",
        settings=_SETTINGS,
    )


def _label_cells(
    database: Database, series: Sequence[Series], ids: Ids, levels: npt.NDArray[Any], span: TickRange
) -> WindowCells:
    known = _id_list(np.unique(levels))
    return database.numbers(
        f"""
        SELECT series, mark, at, if(hash IN {known}, hash, {OTHER_LABEL}) AS label, sum(records) FROM (
            SELECT {_ID} AS series, cityHash64(fingerprint) AS mark, {_tick(span)} AS at,
                cityHash64(entry.1) AS hash, entry.2 AS records
            FROM windows FINAL ARRAY JOIN category_counts AS entry WHERE {span.condition}
            AND {_series_condition(series)}
        ) WHERE series IN {_id_list(ids)}
        GROUP BY series, mark, at, label""",
        _LABEL_CELL,
        _SETTINGS,
    )


def _sums(
    kind: SignalKind,
    monitored: Mapping[str, MonitoredMetric],
    metrics: Sequence[str],
    ids: Ids,
    levels: npt.NDArray[Any],
) -> tuple[str, str]:
    if kind == "score":
        return "windows.sum", "sum_squares"
    if kind == "rate":
        return _bad_records(monitored, metrics), "0"
    low, high = (count_out_of_bounds(-FAR, _lookup(_ID, ids, levels[:, column], "Int32")) for column in (0, 1))
    return low, high


def _bad_records(monitored: Mapping[str, MonitoredMetric], metrics: Sequence[str]) -> str:
    """Records on the wrong side of the metric's own threshold, as `ragtide.drift.windows.histogram` counts them."""
    good = []
    for name in metrics:
        metric = monitored[name].ref
        assert metric is not None
        assert metric.metric.threshold is not None
        higher = metric.metric.better == "higher"
        line = metric.metric.threshold
        good.append(bin_bounds(metric.scale, line if higher else None, None if higher else line))
    named = f"[{', '.join(sql.text(name) for name in metrics)}]"
    lowest, highest = (
        f"transform(toString(metric), {named}, {side}, 0)"
        for side in ([one.min_bin for one in good], [one.max_bin for one in good])
    )
    return count_out_of_bounds(lowest, highest)


def _lookup(value: str, ids: Ids, levels: npt.NDArray[Any], type_: str) -> str:
    keys = f"CAST([{', '.join(map(str, ids.tolist()))}], 'Array(UInt64)')"
    return f"transform({value}, {keys}, CAST([{', '.join(map(str, levels.tolist()))}], 'Array({type_})'), 0)"


def _tick(span: TickRange) -> str:
    return f"toUInt32(intDiv(toUnixTimestamp(start), {span.tick_s}) * {span.tick_s})"


def _id_list(ids: Ids) -> str:
    return f"({', '.join(map(str, ids.tolist())) or '0'})"


def _series_condition(series: Iterable[Series]) -> str:
    """For the index alone; which of them are meant, their ids say."""
    places = sorted({(one.app, one.environment, one.metric) for one in series})
    listed = ", ".join(f"({', '.join(map(sql.text, place))})" for place in places)
    return f"(app, environment, metric) IN ({listed})"
