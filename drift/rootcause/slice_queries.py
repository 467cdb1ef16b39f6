"""Read a metric through time by dimension, from windows or from score rows.

Groups with little traffic are read as one. Reads of rows are bounded: of more rows than `MOST_ROWS` a random sample by
the hash of the trace id is read, and its share is returned."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ragtide.drift import sql
from ragtide.drift.rootcause.attribution import MIN_TRAFFIC
from ragtide.drift.rootcause.measure import MeasuredQuantity
from ragtide.drift.rootcause.query import RcaScope
from ragtide.drift.rootcause.slices import Split, Sums, split_of
from ragtide.drift.stats.sampling import in_sample
from ragtide.drift.windows.contents import OTHER
from ragtide.drift.windows.scope import WHOLE_MINUTES
from ragtide.sinks.clickhouse.database import Database

WHOLE = ""  # the dimension that does not split


def read_splits(
    database: Database,
    scope: RcaScope,
    cells: str,
    parameters: Mapping[str, Any] | None = None,
    sample_share: float = 1.0,
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
        ) WHERE before >= {MIN_TRAFFIC} * all_before OR after >= {MIN_TRAFFIC} * all_after
        ORDER BY dimension, value
        """,
        parameters,
        WHOLE_MINUTES,
    )
    found: dict[str, dict[str, Sums]] = {}
    for row in rows:
        found.setdefault(row["dimension"], {})[row["value"]] = _time_series(scope, row)
    if WHOLE not in found:
        return {}
    whole = found.pop(WHOLE)[""]
    made = {name: split_of(name, groups, whole, scope.after, sample_share) for name, groups in found.items()}
    return {WHOLE: split_of(WHOLE, {}, whole, scope.after, sample_share), **made}


def _time_series(scope: RcaScope, row: Mapping[str, Any]) -> Sums:
    """Its sums of each kept step."""
    at = np.array(row["steps"], dtype=int) + scope.timeline.before
    sums = np.zeros((3, len(scope.step_mask)))
    sums[:, at] = row["ns"], row["totals"], row["all_squares"]
    return Sums(*sums[:, scope.step_mask])


def splits_of_windows(database: Database, scope: RcaScope, quantity: MeasuredQuantity) -> dict[str, Split]:
    """By dimension, `WHOLE` among them; segments where windows are cut by them and the question names none."""
    n, total, squares = quantity.windows
    dimensions = ", ".join([f"('{WHOLE}', '')", *(f"('{name}', toString({name}))" for name in scope.columns)])
    read, value = _segment_condition(scope), "segment_value"
    if not scope.query.segment and (steady := scope.stable_segments()):
        read = f"segment IN {sql.texts(['', *steady])}"
        known = ", ".join(f"({sql.text(name)}, {sql.text(one)})" for name, some in steady.items() for one in some)
        value = (
            f"if((toString(segment), segment_value) IN ({known}), segment_value, '{OTHER}')" if known else f"'{OTHER}'"
        )
    cells = f"""
        SELECT {scope.timeline.step_of("at")} AS step, one.1 AS dimension, one.2 AS value,
            toFloat64(sum(records)) AS n, toFloat64(sum(amount)) AS total,
            toFloat64(sum(amount_squares)) AS squares
        FROM (
            SELECT toInt64(toUnixTimestamp(start)) AS at, {n} AS records, {total} AS amount,
                {squares} AS amount_squares, app, model, prompt_version,
                segment, {value} AS value_of, segment = {sql.text(scope.query.segment)} AS uncut
            FROM windows FINAL WHERE {scope.condition} AND {scope.windows_condition(quantity.metric_ref.name)}
            AND {read}
        ) AS windows
        ARRAY JOIN if(uncut, [{dimensions}], [(toString(segment), value_of)]) AS one
        GROUP BY step, dimension, value"""
    return read_splits(database, scope, cells)


def bins_before(database: Database, scope: RcaScope) -> dict[int, int]:
    """The histogram of the question's series before the onset."""
    rows = database.rows(
        f"SELECT sumMap(windows.bins) AS all_bins FROM windows FINAL WHERE {series_condition(scope)} "
        f"AND start < toDateTime({scope.timeline.since}, 'UTC')"
    )
    return dict(rows[0]["all_bins"]) if rows else {}


def series_condition(scope: RcaScope) -> str:
    """Condition on the base windows of the question's series, all the time."""
    return (
        f"{scope.condition} AND {scope.windows_condition(scope.query.metric_ref.name)} AND {_segment_condition(scope)}"
    )


def _segment_condition(scope: RcaScope) -> str:
    query = scope.query
    return f"segment = {sql.text(query.segment)} AND segment_value = {sql.text(query.segment_value)}"


MOST_ROWS = 200_000
MOST_SCANNED = 4_000_000  # of one evaluator; to look whether a row is sampled takes about a second a million
COLUMNS = ("app", "model", "prompt_version")


def splits_of_rows(
    database: Database,
    scope: RcaScope,
    quantity: MeasuredQuantity,
    within: Mapping[str, str],
    dimensions: Sequence[str],
    expected: float,
) -> dict[str, Split]:
    """By dimension, `WHOLE` among them, of the rows that have these values; `expected` is about how many there are."""
    share = share_to_read(expected)
    listed = ", ".join([f"('{WHOLE}', '')", *(f"({sql.text(name)}, {_value(name)})" for name in dimensions)])
    cells = f"""
        SELECT step, one.1 AS dimension, one.2 AS value, toFloat64(count()) AS n, sum(number) AS total,
            sum(number * number) AS squares
        FROM ({select_rows(scope, quantity, within, share)})
        ARRAY JOIN [{listed}] AS one
        GROUP BY step, dimension, value"""
    return read_splits(database, scope, cells, quantity.parameters, share)


def share_to_read(expected: float) -> float:
    """The share of so many rows that is read."""
    return min(1.0, MOST_ROWS / max(expected, 1.0))


def select_rows(scope: RcaScope, quantity: MeasuredQuantity, within: Mapping[str, str], share: float = 1.0) -> str:
    """SELECT of the rows that are the question's and have these values: trace_id, step, number, columns, segments."""
    condition, number = quantity.rows
    first, last = (int(at.timestamp()) for at in scope.timeline.minutes)
    seconds = "toUnixTimestamp64Milli(time) / 1000"
    place = [_equals(scope, name, value) for name, value in _filters(scope, within).items()]
    return (
        f"""
        SELECT trace_id, {scope.timeline.step_of(seconds)} AS step, {number} AS number, {", ".join(COLUMNS)}, segments
        FROM (
            SELECT trace_id, time, status, metrics, {", ".join(COLUMNS)}, segments FROM scores FINAL
            WHERE {scope.condition} AND evaluator = {{evaluator:String}} AND {in_sample(share)}
                AND time >= toDateTime64({first}, 3, 'UTC') AND time < toDateTime64({last}, 3, 'UTC')
        ) AS records
        WHERE {" AND ".join([scope.timeline.within(seconds), condition, *place])}"""
        ""
    )


def _filters(scope: RcaScope, within: Mapping[str, str]) -> dict[str, str]:
    query = scope.query
    own = {query.segment: query.segment_value} if query.segment else {}
    return {**own, **within}


def _equals(scope: RcaScope, name: str, value: str) -> str:
    if name not in COLUMNS and value == OTHER:
        return (
            f"mapContains(segments, {sql.text(name)}) AND {_value(name)} NOT IN {sql.texts(scope.named_values(name))}"
        )
    return f"{_value(name)} = {sql.text(value)}"


def _value(name: str) -> str:
    return f"toString({name})" if name in COLUMNS else f"segments[{sql.text(name)}]"
