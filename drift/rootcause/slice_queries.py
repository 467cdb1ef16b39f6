"""Read a metric through time by dimension, from windows or from score rows.

Groups with little traffic are read as one. Reads of rows are bounded: of more rows than `MOST_ROWS` a random sample by
the hash of the trace id is read, and its share is returned."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ragtide.drift import sql
from ragtide.drift.rootcause.attribution import MIN_TRAFFIC
from ragtide.drift.rootcause.measure import MeasuredQuantity
from ragtide.drift.rootcause.query import COLUMNS, RcaScope
from ragtide.drift.rootcause.slices import Split, Sums, split_of
from ragtide.drift.stats import in_sample
from ragtide.drift.windows import OTHER_VALUES, WHOLE_MINUTES
from ragtide.sinks.clickhouse.database import Database

MOST_ROWS = 200_000
MOST_SCANNED = 4_000_000  # of one evaluator; to look whether a row is sampled takes about a second a million
WHOLE = ""  # the dimension that does not split


def read_splits(
    database: Database,
    scope: RcaScope,
    records: str,
    groups: str,
    parameters: Mapping[str, Any] | None = None,
    sample_share: float = 1.0,
) -> dict[str, Split]:
    """Splits by dimension, `WHOLE` among them; empty if there are no records.

    `records` is a SELECT of step, records, amount and amount_squares, `groups` an expression on its rows: the array of
    the (dimension, value) that each is in besides the whole.
    """
    rows = database.rows(
        f"""
        SELECT dimension, value, steps, ns, totals, all_squares FROM (
            SELECT dimension, value, groupArray(step) AS steps, groupArray(n) AS ns, groupArray(total) AS totals,
                groupArray(squares) AS all_squares,
                sumIf(n, step < 0) AS before, sumIf(n, step >= 0) AS after,
                sum(before) OVER (PARTITION BY dimension) AS all_before,
                sum(after) OVER (PARTITION BY dimension) AS all_after
            FROM (
                SELECT step, one.1 AS dimension, one.2 AS value, toFloat64(sum(records)) AS n,
                    toFloat64(sum(amount)) AS total, toFloat64(sum(amount_squares)) AS squares
                FROM ({records}) ARRAY JOIN {groups} AS one GROUP BY step, dimension, value
            ) GROUP BY dimension, value
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
    return {name: split_of(name, sums, whole, scope.after, sample_share) for name, sums in {WHOLE: {}, **found}.items()}


def _time_series(scope: RcaScope, row: Mapping[str, Any]) -> Sums:
    """Sum each step that is compared."""
    at = np.array(row["steps"], dtype=int) + scope.timeline.before
    sums = np.zeros((3, len(scope.step_mask)))
    sums[:, at] = row["ns"], row["totals"], row["all_squares"]
    return Sums(*sums[:, scope.step_mask])


def _groups(values: Mapping[str, str]) -> str:
    """Array of `WHOLE` and of each dimension with the expression of its value."""
    pairs = (f"({sql.text(name)}, {value})" for name, value in {WHOLE: "''", **values}.items())
    return f"[{', '.join(pairs)}]"


def splits_of_windows(database: Database, scope: RcaScope, quantity: MeasuredQuantity) -> dict[str, Split]:
    """Splits by column, and by segment if windows are cut by them and the query names none."""
    n, total, squares = quantity.windows
    condition, value = scope.segment_condition, "segment_value"
    if not scope.query.segment and (stable := scope.stable_segments()):
        condition = f"segment IN {sql.texts(['', *stable])}"
        known = ", ".join(f"({sql.text(name)}, {sql.text(one)})" for name, some in stable.items() for one in some)
        value = (
            f"if((toString(segment), segment_value) IN ({known}), segment_value, '{OTHER_VALUES}')"
            if known
            else f"'{OTHER_VALUES}'"
        )
    records = f"""
        SELECT {scope.timeline.step_of_window} AS step, {n} AS records, {total} AS amount, {squares} AS amount_squares,
            app, model, prompt_version, segment, {value} AS value_of, segment = {sql.text(scope.query.segment)} AS uncut
        FROM windows FINAL WHERE {scope.windows_condition} AND {condition}"""
    columns = _groups({name: f"toString({name})" for name in scope.columns})
    return read_splits(database, scope, records, f"if(uncut, {columns}, [(toString(segment), value_of)])")


def bins_before(database: Database, scope: RcaScope) -> dict[int, int]:
    """Return the histogram of the query's series before the onset."""
    rows = database.rows(
        f"SELECT sumMap(windows.bins) AS all_bins FROM windows FINAL WHERE {scope.series_condition} "
        f"AND start < toDateTime({scope.timeline.since}, 'UTC')"
    )
    return dict(rows[0]["all_bins"]) if rows else {}


def splits_of_rows(
    database: Database,
    scope: RcaScope,
    quantity: MeasuredQuantity,
    within: Mapping[str, str],
    dimensions: Sequence[str],
    expected: float,
) -> dict[str, Split]:
    """Splits by dimension of the rows that have the values `within`, about `expected` of them; without `WHOLE`."""
    if not dimensions:
        return {}
    share = share_to_read(expected)
    records, groups = select_rows(scope, quantity, within, share), _groups({name: _value(name) for name in dimensions})
    found = read_splits(database, scope, records, groups, quantity.parameters, share)
    return {name: split for name, split in found.items() if name != WHOLE}


def share_to_read(expected: float) -> float:
    """Return the share of the rows to read."""
    return min(1.0, MOST_ROWS / max(expected, 1.0))


def select_rows(scope: RcaScope, quantity: MeasuredQuantity, within: Mapping[str, str], share: float = 1.0) -> str:
    """SELECT of the query's rows that have these values, for `read_splits`, with trace_id, columns and segments."""
    condition, number = quantity.rows
    seconds, columns = "toUnixTimestamp64Milli(time) / 1000", ", ".join(COLUMNS)
    values = ({scope.query.segment: scope.query.segment_value} if scope.query.segment else {}) | {**within}
    conditions = [scope.timeline.contains(seconds), condition, *(_equals(scope, *value) for value in values.items())]
    return f"""
        SELECT trace_id, {scope.timeline.step_of(seconds)} AS step, 1 AS records, {number} AS amount,
            amount * amount AS amount_squares, {columns}, segments
        FROM (
            SELECT trace_id, time, status, metrics, {columns}, segments FROM scores FINAL
            WHERE {scope.condition} AND evaluator = {{evaluator:String}} AND {in_sample(share)}
                AND {scope.timeline.in_minutes}
        ) WHERE {" AND ".join(conditions)}"""


def _equals(scope: RcaScope, name: str, value: str) -> str:
    if name not in COLUMNS and value == OTHER_VALUES:
        return (
            f"mapContains(segments, {sql.text(name)}) AND {_value(name)} NOT IN {sql.texts(scope.named_values(name))}"
        )
    return f"{_value(name)} = {sql.text(value)}"


def _value(name: str) -> str:
    return f"toString({name})" if name in COLUMNS else f"segments[{sql.text(name)}]"
