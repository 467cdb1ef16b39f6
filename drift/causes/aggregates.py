"""What windows tell of a move: the metric by each dimension that they are cut by, through time."""

from drift.causes.cells import WHOLE, read_splits
from drift.causes.frame import Frame
from drift.causes.measure import Measure
from drift.causes.splits import Split
from drift.windows import sql
from drift.windows.contents import OTHER
from sinks.clickhouse.database import Database


def splits_of_windows(database: Database, frame: Frame, measure: Measure) -> dict[str, Split]:
    """By dimension, `WHOLE` among them; segments where windows are cut by them and the question names none."""
    n, total, squares = measure.windows
    dimensions = ", ".join([f"('{WHOLE}', '')", *(f"('{name}', toString({name}))" for name in frame.columns)])
    read, value = _cut(frame), "segment_value"
    if not frame.question.segment and (steady := frame.steady()):
        read = f"segment IN {sql.texts(['', *steady])}"
        known = ", ".join(f"({sql.text(name)}, {sql.text(one)})" for name, some in steady.items() for one in some)
        value = (
            f"if((toString(segment), segment_value) IN ({known}), segment_value, '{OTHER}')" if known else f"'{OTHER}'"
        )
    cells = f"""
        SELECT {frame.time.step_of("at")} AS step, one.1 AS dimension, one.2 AS value,
            toFloat64(sum(records)) AS n, toFloat64(sum(amount)) AS total,
            toFloat64(sum(amount_squares)) AS squares
        FROM (
            SELECT toInt64(toUnixTimestamp(start)) AS at, {n} AS records, {total} AS amount,
                {squares} AS amount_squares, app, model, prompt_version,
                segment, {value} AS value_of, segment = {sql.text(frame.question.segment)} AS uncut
            FROM windows FINAL WHERE {frame.place} AND {frame.windows(measure.watched.name)} AND {read}
        ) AS windows
        ARRAY JOIN if(uncut, [{dimensions}], [(toString(segment), value_of)]) AS one
        GROUP BY step, dimension, value"""
    return read_splits(database, frame, cells)


def bins_before(database: Database, frame: Frame) -> dict[int, int]:
    """The histogram of the question's series before the onset."""
    rows = database.rows(
        f"SELECT sumMap(windows.bins) AS all_bins FROM windows FINAL WHERE {of_series(frame)} "
        f"AND start < toDateTime({frame.time.since}, 'UTC')"
    )
    return dict(rows[0]["all_bins"]) if rows else {}


def of_series(frame: Frame) -> str:
    """Condition on the base windows of the question's series, all the time."""
    return f"{frame.place} AND {frame.windows(frame.question.watched.name)} AND {_cut(frame)}"


def _cut(frame: Frame) -> str:
    question = frame.question
    return f"segment = {sql.text(question.segment)} AND segment_value = {sql.text(question.segment_value)}"
