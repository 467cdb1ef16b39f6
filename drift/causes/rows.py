"""What score rows tell of a move where windows are not cut so: within a group, or by a segment that they lack.

Bounded: where more rows are expected than are to be read, those whose trace id hashes low are, and the share is told.
"""

from collections.abc import Mapping, Sequence

from drift.causes.cells import WHOLE, read_splits
from drift.causes.frame import Frame
from drift.causes.measure import Measure
from drift.causes.splits import Split
from drift.windows import sql
from drift.windows.contents import OTHER
from sinks.clickhouse.database import Database

MOST_ROWS = 200_000
MOST_SCANNED = 4_000_000  # of one evaluator; to look whether a row is sampled takes about a second a million
COLUMNS = ("app", "model", "prompt_version")
_PARTS = 1 << 20


def splits_of_rows(
    database: Database,
    frame: Frame,
    measure: Measure,
    within: Mapping[str, str],
    dimensions: Sequence[str],
    expected: float,
) -> dict[str, Split]:
    """By dimension, `WHOLE` among them, of the rows that have these values; `expected` is about how many there are."""
    share = sampled(expected)
    listed = ", ".join([f"('{WHOLE}', '')", *(f"({sql.text(name)}, {_value(name)})" for name in dimensions)])
    cells = f"""
        SELECT step, one.1 AS dimension, one.2 AS value, toFloat64(count()) AS n, sum(number) AS total,
            sum(number * number) AS squares
        FROM ({selected(frame, measure, within, share)})
        ARRAY JOIN [{listed}] AS one
        GROUP BY step, dimension, value"""
    return read_splits(database, frame, cells, measure.parameters, share)


def sampled(expected: float) -> float:
    """The share of so many rows that is read."""
    return min(1.0, MOST_ROWS / max(expected, 1.0))


def kept(share: float) -> str:
    """Condition on rows of any table that has traces: the same traces are kept in all."""
    return "1" if share >= 1 else f"cityHash64(trace_id) % {_PARTS} < {int(share * _PARTS)}"


def selected(frame: Frame, measure: Measure, within: Mapping[str, str], share: float = 1.0) -> str:
    """SELECT of the rows that are the question's and have these values: trace_id, step, number, columns, segments."""
    condition, number = measure.rows
    first, last = (int(at.timestamp()) for at in frame.time.minutes)
    seconds = "toUnixTimestamp64Milli(time) / 1000"
    place = [_is(frame, name, value) for name, value in _within(frame, within).items()]
    return (
        f"""
        SELECT trace_id, {frame.time.step_of(seconds)} AS step, {number} AS number, {", ".join(COLUMNS)}, segments
        FROM (
            SELECT trace_id, time, status, metrics, {", ".join(COLUMNS)}, segments FROM scores FINAL
            WHERE {frame.place} AND evaluator = {{evaluator:String}} AND {kept(share)}
                AND time >= toDateTime64({first}, 3, 'UTC') AND time < toDateTime64({last}, 3, 'UTC')
        ) AS records
        WHERE {" AND ".join([frame.time.within(seconds), condition, *place])}"""
        ""
    )


def _within(frame: Frame, within: Mapping[str, str]) -> dict[str, str]:
    question = frame.question
    own = {question.segment: question.segment_value} if question.segment else {}
    return {**own, **within}


def _is(frame: Frame, name: str, value: str) -> str:
    if name not in COLUMNS and value == OTHER:
        return f"mapContains(segments, {sql.text(name)}) AND {_value(name)} NOT IN {sql.texts(frame.named(name))}"
    return f"{_value(name)} = {sql.text(value)}"


def _value(name: str) -> str:
    return f"toString({name})" if name in COLUMNS else f"segments[{sql.text(name)}]"
