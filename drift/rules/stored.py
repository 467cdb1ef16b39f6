"""What the rules read: windows that changed, the stretches that have verdicts, and how far they looked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from drift import cursors
from drift.rules.series import Series, Window
from drift.rules.stretches import JudgedStretch
from drift.windows import sql
from drift.windows.metrics import WatchedMetric
from drift.windows.scope import WHOLE_MINUTES
from sinks.clickhouse.database import Database

_CURSOR = "rules"
_SERIES = ", ".join(Series._fields)
_SUMS = (
    "sum(seen) AS n_seen, sum(applicable) AS n_applicable, sum(scored) AS n_scored, sum(failed) AS n_failed, "
    "sum(windows.sum) AS total, sumMap(windows.bins) AS all_bins, sumMap(windows.parts) AS all_parts"
)


@dataclass(frozen=True, slots=True)
class Touched:
    """A series under one fingerprint with windows that closed or changed since the rules looked last."""

    series: Series
    fingerprint: str
    changed_from: int


def position(database: Database) -> int:
    """Up to which version of windows the rules looked."""
    return cursors.position(database, _CURSOR)


class News(NamedTuple):
    """What changed, and up to which version that is."""

    touched: list[Touched]
    position: int


def news(database: Database, base_s: int, since: int) -> News:
    """Series with windows that are newer than `since` and may still page."""
    rows = database.rows(
        f"""
        SELECT {_SERIES}, fingerprint,
            minIf(toUnixTimestamp(start), state != 'frozen') AS changed_from,
            countIf(state != 'frozen') AS fresh, max(version) AS newest
        FROM windows
        WHERE run_id = 'live' AND size_s = {{base_s:UInt32}} AND version > {{since:UInt64}}
        GROUP BY {_SERIES}, fingerprint
        """,
        {"base_s": base_s, "since": since},
    )
    touched = [
        Touched(Series(*(row[name] for name in Series._fields)), row["fingerprint"], row["changed_from"])
        for row in rows
        if row["fresh"]
    ]
    return News(touched, max((row["newest"] for row in rows), default=since))


def judged_stretches(
    database: Database, rule_ids: set[str], touched: Sequence[Touched]
) -> dict[tuple[str, Series, str], list[JudgedStretch]]:
    """Per rule, series and fingerprint the last stretch that has a verdict, and those in which something changed."""
    if not rule_ids:
        return {}
    changed_from = min(one.changed_from for one in touched)
    among = _among([one.series for one in touched])
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
    found: dict[tuple[str, Series, str], set[JudgedStretch]] = {}
    for row in rows:
        series = Series(*(row[name] for name in Series._fields))
        found.setdefault((row["rule_id"], series, row["fingerprint"]), set()).add(
            JudgedStretch(row["first"], row["last"], row["revision"])
        )
    return {key_: sorted(stretches) for key_, stretches in found.items()}


def series_in(database: Database, metrics: Iterable[str], base_s: int, first: int, until: int) -> list[Touched]:
    """Every series of these metrics with windows that start in [first, until), in order, and where the first starts."""
    rows = database.rows(
        f"""
        SELECT {_SERIES}, fingerprint, min(toUnixTimestamp(start)) AS changed_from FROM windows
        WHERE run_id = 'live' AND size_s = {base_s} AND start >= toDateTime({first}, 'UTC')
            AND start < toDateTime({until}, 'UTC') AND metric IN {sql.texts(metrics)}
        GROUP BY {_SERIES}, fingerprint ORDER BY {_SERIES}, fingerprint
        """
    )
    series = [Series(*(row[name] for name in Series._fields)) for row in rows]
    return [Touched(one, row["fingerprint"], row["changed_from"]) for one, row in zip(series, rows, strict=True)]


def windows(
    database: Database,
    metrics: Mapping[str, WatchedMetric],
    base_s: int,
    first: int,
    touched: Sequence[Touched],
    since: int,
    until: int | None = None,
) -> dict[tuple[Series, str], list[Window]]:
    """Base windows that start from `first` on and before `until`, prompt versions together.

    Those of window metrics have their carriers' parts.
    """
    before = "" if until is None else f" AND start < toDateTime({until}, 'UTC')"
    carriers = {one.series: _carrier(one.series, metrics) for one in touched}
    rows = database.rows(
        f"""
        SELECT {_SERIES}, fingerprint, toUnixTimestamp(start) AS at, {_SUMS},
            sum(windows.revision) AS revisions, min(state = 'frozen') AS all_frozen,
            maxIf(version, state != 'frozen') > {since} AS some_changed, max(incomplete) AS some_incomplete
        FROM windows FINAL
        WHERE run_id = 'live' AND size_s = {base_s} AND start >= toDateTime({first}, 'UTC')
            AND {_among([*carriers, *carriers.values()])}{before}
        GROUP BY {_SERIES}, fingerprint, start
        """
    )
    found = _by_series(rows, base_s)
    carried = {(key, window.start): window for key in found for window in found[key]}
    for one in touched:
        if carriers[one.series] != one.series:
            own, key = (one.series, one.fingerprint), (carriers[one.series], one.fingerprint)
            found[own] = [_with_parts(window, carried.get((key, window.start))) for window in found.get(own, ())]
    return found


def _carrier(series: Series, metrics: Mapping[str, WatchedMetric]) -> Series:
    """The series whose windows have the parts, and how each record did, of this one: itself unless it is a window's."""
    metric = metrics.get(series.metric)
    if metric is None or metric.carrier is None:
        return series
    cut = ("", "") if metric.metric.per else (series.segment, series.segment_value)
    return series._replace(metric=metric.carrier.name, segment=cut[0], segment_value=cut[1])


def _with_parts(window: Window, carrier: Window | None) -> Window:
    return window if carrier is None else replace(window, parts=carrier.parts, bins=carrier.bins)


def open_windows(
    database: Database, contents: str, metrics: Iterable[str], base_s: int
) -> dict[tuple[Series, str], list[Window]]:
    """The same of windows that are not stored yet: `contents` is a SELECT as the roll-up stores it."""
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
        series = Series(*(row[name] for name in Series._fields))
        found.setdefault((series, row["fingerprint"]), []).append(
            Window(
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
        )
    return found


def _among(some: Iterable[Series]) -> str:
    tuples = sorted({(series.app, series.environment, series.metric) for series in some})
    listed = ", ".join(f"({', '.join(sql.text(part) for part in key)})" for key in tuples)
    return f"(app, environment, metric) IN ({listed})"


def finish(database: Database, position: int) -> None:
    """All that follows from windows up to this version is stored."""
    cursors.keep(database, _CURSOR, position)
