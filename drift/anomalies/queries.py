"""Read windows as arrays for many series at once, pooled to ticks.

A 64-bit hash stands for a series and another for an evaluator version. Names are read once, when a series is new."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragtide.drift import sql
from ragtide.drift.anomalies.metrics import MonitoredMetric, SignalKind
from ragtide.drift.array_types import Integers
from ragtide.drift.rules import Series
from ragtide.drift.stats import DAY_S
from ragtide.drift.windows import FAR_BIN, bin_bounds, count_out_of_bounds
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE

Ids = npt.NDArray[np.uint64]
WindowCells = npt.NDArray[np.void]  # one row per series, evaluator version and tick (and label or bin) with records
OTHER_LABEL = 0
BIN_OFFSET = 1 << 30  # makes bins positive
_FIELDS = ", ".join(Series._fields)
_ID = f"cityHash64({_FIELDS})"
_VERSION = "cityHash64(fingerprint) AS mark"
_CELL = [("series", "<u8"), ("fingerprint", "<u8"), ("at", "<u4"), ("n", "<u8"), ("x", "<f8"), ("y", "<f8")]
_LABEL_CELL = [("series", "<u8"), ("fingerprint", "<u8"), ("at", "<u4"), ("label", "<u8"), ("n", "<u8")]
_DAY = [("series", "<u8"), ("day", "<u4"), ("first", "<u4"), ("n", "<u8")]
_CHANGED_TICK = [("series", "<u8"), ("at", "<u4"), ("alive", "<u1"), ("version", "<u8")]
_MAX_IDS = 5_000  # ids in a statement
_SETTINGS = {"do_not_merge_across_partitions_select_final": 1}  # all versions of a window are in one partition


@dataclass(frozen=True, slots=True)
class TickRange:
    """Windows of one size and run (live, or a replay) that start in [first, end), pooled to ticks."""

    size_s: int
    tick_s: int
    first: int
    end: int
    run_id: str = LIVE

    @property
    def ticks(self) -> Integers:
        """Starts of all ticks."""
        return np.arange(self.first, self.end, self.tick_s, dtype=np.int64)

    @property
    def as_one_tick(self) -> "TickRange":
        """The same windows in a single tick."""
        return replace(self, tick_s=self.end)

    @property
    def condition(self) -> str:
        """SQL condition on rows of `windows`."""
        return (
            f"run_id = {sql.text(self.run_id)} AND size_s = {self.size_s} "
            f"AND start >= toDateTime({self.first}, 'UTC') AND start < toDateTime({self.end}, 'UTC')"
        )

    @property
    def tick(self) -> str:
        """SQL expression for the start of a window's tick."""
        return _start_of(self.tick_s)


class NewSeries(NamedTuple):
    """A series that no batch has yet, and the hash of its last evaluator version."""

    series: Series
    fingerprint: int


def newest_version(database: Database, base_s: int, since: int) -> int:
    """Return the newest version of live base windows, at least `since`."""
    rows = database.rows(
        f"SELECT max(version) AS newest FROM windows WHERE run_id = 'live' AND size_s = {base_s} AND version >= {since}"
    )
    return max(since, int(rows[0]["newest"]))


def changed_ticks(database: Database, ticks: TickRange, metrics: Iterable[str], since: int) -> WindowCells:
    """Find series and ticks with windows newer than version `since`; `alive`: some of them are not frozen."""
    return database.numbers(
        f"""
        SELECT {_ID} AS series, {ticks.tick} AS at, toUInt8(max(state != 'frozen')) AS alive, max(version) AS newest
        FROM windows WHERE {ticks.condition} AND version > {since} AND metric IN {sql.texts(metrics)}
        GROUP BY series, at""",
        _CHANGED_TICK,
    )


def series_ids(database: Database, ticks: TickRange, metrics: Iterable[str]) -> Ids:
    """List the series of these metrics that have windows, in ascending order."""
    found = database.numbers(
        f"SELECT DISTINCT {_ID} AS series FROM windows WHERE {ticks.condition} AND metric IN {sql.texts(metrics)} "
        "ORDER BY series",
        [("series", "<u8")],
    )
    return np.ascontiguousarray(found["series"])


def load_series(database: Database, ticks: TickRange, metrics: Iterable[str], ids: Ids) -> dict[int, NewSeries]:
    """Load series by id, in the order in which windows are stored."""
    found: dict[int, NewSeries] = {}
    for first in range(0, len(ids), _MAX_IDS):
        rows = database.rows(
            f"SELECT {_FIELDS}, {_ID} AS id, argMaxIf(cityHash64(fingerprint), start, scored > 0) AS mark FROM windows "
            f"WHERE {ticks.condition} AND metric IN {sql.texts(metrics)} "
            f"AND id IN {_id_list(ids[first : first + _MAX_IDS])} GROUP BY {_FIELDS}"
        )
        found |= {row["id"]: NewSeries(Series(*(row[name] for name in Series._fields)), row["mark"]) for row in rows}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def record_days(database: Database, series: Sequence[Series], ids: Ids, ticks: TickRange) -> WindowCells:
    """Count records per series and day (its start); `first` is the start of the day's first window with records."""
    start = "toUInt32(toUnixTimestamp(start)) AS at"
    values = f"{_start_of(DAY_S)} AS day, {start}, scored AS records"
    select = "series, day, min(at), sum(records)"
    statement = _per_series(series, ids, ticks, values, select, "series, day", condition="scored > 0")
    return database.numbers(statement, _DAY, _SETTINGS)


def window_cells(
    database: Database,
    kind: SignalKind,
    monitored: Mapping[str, MonitoredMetric],
    series: Sequence[Series],
    ids: Ids,
    levels: npt.NDArray[Any],
    ticks: TickRange,
) -> WindowCells:
    """Read the ticks of these series with their records `n`.

    `x`, `y` are the sum and the sum of squares of scores, the bad records of rates, and for positives the records above
    each of `levels` [S, 2] (bins). Categories have `label` instead, a hash, and `OTHER_LABEL` if not in `levels`.
    """
    if not len(ids) or ticks.first >= ticks.end:
        return np.empty(0, np.dtype(_LABEL_CELL if kind == "category" else _CELL))
    if kind == "category":
        values = f"{_VERSION}, {ticks.tick} AS at, cityHash64(entry.1) AS hash, entry.2 AS records"
        label = f"if(hash IN {_id_list(np.unique(levels))}, hash, {OTHER_LABEL}) AS label"
        select, groups = f"series, mark, at, {label}, sum(records)", "series, mark, at, label"
        statement = _per_series(series, ids, ticks, values, select, groups, array="category_counts")
        return database.numbers(statement, _LABEL_CELL, _SETTINGS)
    x, y = _sums(kind, monitored, sorted({one.metric for one in series}), ids, levels)
    values = f"{_VERSION}, {ticks.tick} AS at, scored AS records, toFloat64({x}) AS first, toFloat64({y}) AS second"
    select = "series, mark, at, sum(records), sum(first), sum(second)"
    statement = _per_series(series, ids, ticks, values, select, "series, mark, at", condition="scored > 0")
    return database.numbers(statement, _CELL, _SETTINGS)


def histograms(database: Database, series: Sequence[Series], ids: Ids, ticks: TickRange) -> WindowCells:
    """Read histograms by tick and evaluator version: `label` is the bin plus `BIN_OFFSET`, `n` its records."""
    values = f"{_VERSION}, {ticks.tick} AS at, toUInt64(entry.1 + {BIN_OFFSET}) AS bin, entry.2 AS records"
    select, groups = "series, mark, at, bin, sum(records)", "series, mark, at, bin"
    return database.numbers(
        _per_series(series, ids, ticks, values, select, groups, array="bins"), _LABEL_CELL, _SETTINGS
    )


def frequent_labels(
    database: Database, series: Sequence[Series], ids: Ids, ticks: TickRange, limit: int
) -> list[dict[str, Any]]:
    """List the most frequent labels of each series: `series`, `label` (text), `hash`."""
    select = "series, label, cityHash64(label) AS hash, sum(records) AS n"
    statement = _per_series(
        series, ids, ticks, "entry.1 AS label, entry.2 AS records", select, "series, label", array="category_counts"
    )
    return database.rows(f"{statement} ORDER BY series, n DESC, label LIMIT {limit} BY series", settings=_SETTINGS)


def _per_series(
    series: Iterable[Series],
    ids: Ids,
    ticks: TickRange,
    values: str,
    select: str,
    groups: str,
    *,
    array: str = "",
    condition: str = "1",
) -> str:
    """Return SQL that takes `values` of each window (or entry of its `array`) and selects their sums by group."""
    # The places are for the primary index alone: ids decide which series are meant.
    places = sorted({(one.app, one.environment, one.metric) for one in series})
    listed = ", ".join(f"({', '.join(map(sql.text, place))})" for place in places)
    return f"""
        SELECT {select} FROM (
            SELECT {_ID} AS series, {values} FROM windows FINAL {f"ARRAY JOIN {array} AS entry" if array else ""}
            WHERE {ticks.condition} AND {condition} AND (app, environment, metric) IN ({listed})
        ) WHERE series IN {_id_list(ids)}
        GROUP BY {groups}"""


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
    keys = f"CAST([{', '.join(map(str, ids.tolist()))}], 'Array(UInt64)')"
    bins = (f"CAST([{', '.join(map(str, levels[:, column].tolist()))}], 'Array(Int32)')" for column in (0, 1))
    low, high = (count_out_of_bounds(-FAR_BIN, f"transform({_ID}, {keys}, {one}, 0)") for one in bins)
    return low, high


def _bad_records(monitored: Mapping[str, MonitoredMetric], metrics: Sequence[str]) -> str:
    """Return SQL that counts records on the bad side of their own metric's threshold."""
    good = []
    for name in metrics:
        ref = monitored[name].ref
        assert ref is not None
        threshold, higher = ref.metric.threshold, ref.metric.better == "higher"
        assert threshold is not None
        good.append(bin_bounds(ref.scale, threshold if higher else None, None if higher else threshold))
    names = f"[{', '.join(sql.text(name) for name in metrics)}]"
    min_bins, max_bins = [one.min_bin for one in good], [one.max_bin for one in good]
    return count_out_of_bounds(*(f"transform(toString(metric), {names}, {bins}, 0)" for bins in (min_bins, max_bins)))


def _start_of(size_s: int) -> str:
    return f"toUInt32(intDiv(toUnixTimestamp(start), {size_s}) * {size_s})"


def _id_list(ids: Ids) -> str:
    return f"({', '.join(map(str, ids.tolist())) or '0'})"
