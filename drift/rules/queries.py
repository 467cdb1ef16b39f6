"""Query what rules read: changed windows, intervals with verdicts, score rows, and stale series.

The cursor is the version of windows up to which rules have been evaluated."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from ragtide.drift import cursors, sql
from ragtide.drift.rules.model import Rule, Series, Window
from ragtide.drift.rules.pooling import JudgedInterval
from ragtide.drift.windows import MINUTE_S, OTHER_VALUES, WHOLE_MINUTES, MetricRef, SegmentValues
from ragtide.sinks.clickhouse.database import Database


def stale_series(
    database: Database,
    reported_until: Mapping[Series, datetime],
    closed: datetime,
    stale_after: Callable[[str], timedelta],
    horizon: timedelta,
    known_until: datetime | None = None,
) -> set[Series]:
    """Find series without data for `stale_after(app)` while their app had the metric, or for `horizon` in any case.

    `reported_until` is the end of the last report on each series; only series without one for `stale_after` are read.
    `closed` is the watermark, so that nothing is stale while workers stand still. Windows from `known_until` on are
    not read.
    """
    candidates = {
        series: until for series, until in reported_until.items() if closed - until >= stale_after(series.app)
    }
    if not candidates:
        return set()
    of_series = last_seen(database, candidates, closed - horizon, known_until)
    of_app: dict[tuple[str, str], datetime] = {}
    for series, at in of_series.items():
        of_app[series.app, series.metric] = max(at, of_app.get((series.app, series.metric), at))
    found = set()
    for series, until in candidates.items():
        series_last_seen = max(of_series.get(series, until), until)
        app_last_seen = of_app.get((series.app, series.metric), series_last_seen)
        if is_stale(series_last_seen, app_last_seen, closed, stale_after(series.app), horizon):
            found.add(series)
    return found


def is_stale(
    series_last_seen: datetime, app_last_seen: datetime, closed: datetime, stale_after: timedelta, horizon: timedelta
) -> bool:
    """Whether a series with its last record at `series_last_seen` is stale.

    `app_last_seen` is the last record of its application on the same metric.
    """
    return app_last_seen - series_last_seen >= stale_after or closed - series_last_seen >= horizon


def last_seen(
    database: Database, some: Iterable[Series], since: datetime, until: datetime | None = None
) -> dict[Series, datetime]:
    """Return the start of the last window with records in [since, until), for all series of these apps' metrics."""
    pairs = sorted({(series.app, series.metric) for series in some})
    listed = ", ".join(f"({sql.text(app)}, {sql.text(metric)})" for app, metric in pairs)
    before = "" if until is None else " AND start < {until:DateTime64(3, 'UTC')}"
    rows = database.rows(
        f"SELECT {', '.join(Series._fields)}, max(start) AS newest FROM windows "
        f"WHERE run_id = 'live' AND (app, metric) IN ({listed}) AND applicable > 0 "
        f"AND start >= {{since:DateTime64(3, 'UTC')}}{before} "
        f"GROUP BY {', '.join(Series._fields)}",
        {"since": since, "until": until},
    )
    return {Series.of_row(row): row["newest"] for row in rows}


_CURSOR = "rules"
_SERIES = ", ".join(Series._fields)
_SUMS = (
    "sum(seen) AS n_seen, sum(applicable) AS n_applicable, sum(scored) AS n_scored, sum(failed) AS n_failed, "
    "sum(windows.sum) AS total, sumMap(windows.bins) AS all_bins, sumMap(windows.parts) AS all_parts"
)


@dataclass(frozen=True, slots=True)
class ChangedSeries:
    """A series under one fingerprint with windows that closed or changed since the rules ran last."""

    series: Series
    fingerprint: str
    changed_from: int
    windows: int = 0  # that closed or changed


def rule_cursor(database: Database) -> int:
    """Return the version of windows up to which rules have been evaluated."""
    return cursors.load(database, _CURSOR)


class Changes(NamedTuple):
    """The series that changed, and the cursor after them."""

    series: list[ChangedSeries]
    cursor: int


def changes_since(database: Database, base_s: int, since: int) -> Changes:
    """Find series with windows newer than `since` that are not frozen."""
    rows = database.rows(
        f"""
        SELECT {_SERIES}, fingerprint,
            minIf(toUnixTimestamp(start), state != 'frozen') AS changed_from,
            countIf(state != 'frozen') AS fresh, count() AS n, max(version) AS newest
        FROM windows
        WHERE run_id = 'live' AND size_s = {{base_s:UInt32}} AND version > {{since:UInt64}}
        GROUP BY {_SERIES}, fingerprint
        """,
        {"base_s": base_s, "since": since},
    )
    changed = [
        ChangedSeries(Series.of_row(row), row["fingerprint"], row["changed_from"], row["n"])
        for row in rows
        if row["fresh"]
    ]
    return Changes(changed, max((row["newest"] for row in rows), default=since))


def judged_intervals(
    database: Database, rule_ids: set[str], changed: Sequence[ChangedSeries]
) -> dict[tuple[str, Series, str], list[JudgedInterval]]:
    """Return the last interval with a verdict, and those with changes, by rule, series and fingerprint."""
    if not rule_ids:
        return {}
    changed_from = min(one.changed_from for one in changed)
    among = _metric_filter([one.series for one in changed])
    key = f"rule_id, {_SERIES}, fingerprint"
    rows = database.rows(
        f"""
        SELECT {key}, toUnixTimestamp(start) AS first, toUnixTimestamp(end) AS last, revision
        FROM verdicts FINAL
        WHERE run_id = 'live' AND rule_id IN {sql.texts(sorted(rule_ids))} AND {among}
        ORDER BY end DESC
        LIMIT 1 BY {key}
        UNION ALL
        SELECT {key}, toUnixTimestamp(start) AS first, toUnixTimestamp(end) AS last, revision
        FROM verdicts FINAL
        WHERE run_id = 'live' AND rule_id IN {sql.texts(sorted(rule_ids))} AND {among}
            AND end > toDateTime({changed_from}, 'UTC')
        """
    )
    found: dict[tuple[str, Series, str], set[JudgedInterval]] = {}
    for row in rows:
        key_ = (row["rule_id"], Series.of_row(row), row["fingerprint"])
        found.setdefault(key_, set()).add(JudgedInterval(row["first"], row["last"], row["revision"]))
    return {key_: sorted(intervals) for key_, intervals in found.items()}


def series_in_interval(
    database: Database, metrics: Iterable[str], base_s: int, first: int, until: int
) -> list[ChangedSeries]:
    """Return each series of these metrics with windows that start in [first, until), and its first start, in order."""
    rows = database.rows(
        f"""
        SELECT {_SERIES}, fingerprint, min(toUnixTimestamp(start)) AS changed_from FROM windows
        WHERE run_id = 'live' AND size_s = {base_s} AND start >= toDateTime({first}, 'UTC')
            AND start < toDateTime({until}, 'UTC') AND metric IN {sql.texts(metrics)}
        GROUP BY {_SERIES}, fingerprint ORDER BY {_SERIES}, fingerprint
        """
    )
    return [ChangedSeries(Series.of_row(row), row["fingerprint"], row["changed_from"]) for row in rows]


def load_windows(
    database: Database,
    metrics: Mapping[str, MetricRef],
    base_s: int,
    first: int,
    changed: Sequence[ChangedSeries],
    since: int,
    until: int | None = None,
) -> dict[tuple[Series, str], list[Window]]:
    """Load base windows that start in [first, until), prompt versions added up.

    Windows of window metrics have their carriers' parts.
    """
    before = "" if until is None else f" AND start < toDateTime({until}, 'UTC')"
    carriers = {one.series: _carrier(one.series, metrics) for one in changed}
    rows = database.rows(
        f"""
        SELECT {_SERIES}, fingerprint, toUnixTimestamp(start) AS at, {_SUMS},
            sum(windows.revision) AS revisions, min(state = 'frozen') AS all_frozen,
            maxIf(version, state != 'frozen') > {since} AS some_changed, max(incomplete) AS some_incomplete
        FROM windows FINAL
        WHERE run_id = 'live' AND size_s = {base_s} AND start >= toDateTime({first}, 'UTC')
            AND {_metric_filter([*carriers, *carriers.values()])}{before}
        GROUP BY {_SERIES}, fingerprint, start
        """
    )
    found = _by_series(rows, base_s)
    carried = {(key, window.start): window for key in found for window in found[key]}
    for one in changed:
        if carriers[one.series] != one.series:
            own, key = (one.series, one.fingerprint), (carriers[one.series], one.fingerprint)
            found[own] = [_with_parts(window, carried.get((key, window.start))) for window in found.get(own, ())]
    return found


def _carrier(series: Series, metrics: Mapping[str, MetricRef]) -> Series:
    """Return the series whose windows have the parts and bins of this one: the carrier's for a window metric."""
    metric = metrics.get(series.metric)
    if metric is None or metric.counts_metric is None:
        return series
    cut = ("", "") if metric.metric.per else (series.segment, series.segment_value)
    return series._replace(metric=metric.counts_metric.name, segment=cut[0], segment_value=cut[1])


def _with_parts(window: Window, carrier: Window | None) -> Window:
    return window if carrier is None else replace(window, parts=carrier.parts, bins=carrier.bins)


def load_open_windows(
    database: Database, contents: str, metrics: Iterable[str], base_s: int
) -> dict[tuple[Series, str], list[Window]]:
    """Load windows that are not stored yet; `contents` is a SELECT as the roll-up stores it."""
    rows = database.rows(
        f"""
        SELECT {_SERIES}, fingerprint, windows.start AS at, {_SUMS},
            0 AS revisions, 0 AS all_frozen, 1 AS some_changed, 0 AS some_incomplete
        FROM ({contents}) AS windows WHERE metric IN {sql.texts(metrics)}
        GROUP BY {_SERIES}, fingerprint, at
        """,
        settings=WHOLE_MINUTES,
    )
    return _by_series(rows, base_s)


def _by_series(rows: Iterable[Mapping[str, Any]], base_s: int) -> dict[tuple[Series, str], list[Window]]:
    found: dict[tuple[Series, str], list[Window]] = {}
    for row in rows:
        window = Window(
            start=row["at"],
            end=row["at"] + base_s,
            seen=row["n_seen"],
            applicable=row["n_applicable"],
            scored=row["n_scored"],
            failed=row["n_failed"],
            sum=row["total"],
            bins=row["all_bins"],
            parts=row["all_parts"],
            revision=row["revisions"],
            frozen=bool(row["all_frozen"]),
            changed=bool(row["some_changed"]),
            incomplete=bool(row["some_incomplete"]),
        )
        found.setdefault((Series.of_row(row), row["fingerprint"]), []).append(window)
    return found


def _metric_filter(some: Iterable[Series]) -> str:
    tuples = sorted({(series.app, series.environment, series.metric) for series in some})
    listed = ", ".join(f"({', '.join(sql.text(part) for part in key)})" for key in tuples)
    return f"(app, environment, metric) IN ({listed})"


def commit_rule_cursor(database: Database, version: int) -> None:
    """Store the cursor: everything that follows from windows up to this version is stored."""
    cursors.save(database, _CURSOR, version)


_UNBOUNDED = 1e308


@dataclass(frozen=True, slots=True)
class RecordQuery:
    """SQL after FROM, to be continued with AND, and its parameters."""

    rows: str
    parameters: dict[str, Any]


def record_query(series: Series, segments: SegmentValues, start: int, end: int) -> RecordQuery:
    """Select de-duplicated scored rows of a live series in [start, end), seconds since 1970.

    The index sees whole minutes only (see `Scope.minutes`).
    """
    evaluator, _, key = series.metric.partition(".")
    segment = "segments[{segment:String}] = {segment_value:String}"
    if not series.segment:
        segment = "1"
    elif series.segment_value == OTHER_VALUES:
        segment = (
            "mapContains(segments, {segment:String}) AND NOT has({known:Array(String)}, segments[{segment:String}])"
        )
    rows = f"""
        (
            SELECT trace_id, time, metrics, evidence, parts, segments, model FROM scores FINAL
            WHERE run_id = 'live' AND app = {{app:String}} AND environment = {{environment:String}}
                AND evaluator = {{evaluator:String}} AND status = 'scored'
                AND time >= {{from_minute:DateTime64(3, 'UTC')}} AND time < {{to_minute:DateTime64(3, 'UTC')}}
        ) AS records
        WHERE toUnixTimestamp64Milli(time) >= {{start_ms:Int64}} AND toUnixTimestamp64Milli(time) < {{end_ms:Int64}}
            AND model = {{model:String}} AND {segment} AND mapContains(metrics, {{key:String}})"""
    parameters = {
        "app": series.app,
        "environment": series.environment,
        "evaluator": evaluator,
        "key": key,
        "model": series.model,
        "from_minute": datetime.fromtimestamp(start // MINUTE_S * MINUTE_S, UTC),
        "to_minute": datetime.fromtimestamp(-(-end // MINUTE_S) * MINUTE_S, UTC),
        "start_ms": start * 1000,
        "end_ms": end * 1000,
    }
    if series.segment:
        parameters |= {"segment": series.segment, "segment_value": series.segment_value}
        if series.segment_value == OTHER_VALUES:
            parameters["known"] = list(segments.at(start, series.app).get(series.segment, ()))
    return RecordQuery(rows, parameters)


def out_of_bounds() -> str:
    """Condition: the record is beyond the rule's bounds, snapped as the windows' bins are."""
    return "(metrics[{key:String}] < {least:Float64} OR metrics[{key:String}] > {greatest:Float64})"


def has_class() -> str:
    """Condition: a part of the record has the label with which parameter `class` begins (see `segment_value_of`)."""
    fits = "arrayExists(label -> startsWith(concat({class:String}, '/'), concat(label, '/')), arraySlice(key, 2))"
    keys = r"arrayMap(key -> splitByChar('\t', key), mapKeys(parts))"
    return f"({{class:String}} = '' OR arrayExists(key -> {fits}, {keys}))"


def bound_parameters(rule: Rule) -> dict[str, float]:
    """Return the parameters of `out_of_bounds`."""
    scale = rule.metric_ref.scale
    return {
        "least": -_UNBOUNDED if rule.min is None else scale.snap(rule.min),
        "greatest": _UNBOUNDED if rule.max is None else scale.snap(rule.max),
    }
