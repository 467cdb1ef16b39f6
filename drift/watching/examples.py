"""Ids of traces that show a change, the worst first: no text of theirs is read."""

import math
from datetime import datetime

from drift.rules.records import Records, records_of
from drift.rules.series import Series
from drift.watching.kinds import Watch
from drift.watching.words import Moved
from drift.windows.segments import SegmentValues
from sinks.clickhouse.database import Database

_EXAMPLES = 10
_LABELLED = """
    scores FINAL WHERE run_id = 'live' AND app = {app:String} AND environment = {environment:String}
        AND evaluator = {evaluator:String} AND status = 'scored' AND model = {model:String}
        AND time >= {since:DateTime64(3, 'UTC')} AND time < {until:DateTime64(3, 'UTC')}
        AND categories[{key:String}] = {label:String}"""


def examples(
    database: Database,
    watch: Watch,
    series: Series,
    found: Moved,
    segments: SegmentValues,
    since: datetime,
    until: datetime,
) -> tuple[str, ...]:
    """Ten at most; of labels the latest that have it."""
    records, worst_first = _records(watch, series, found, segments, since, until)
    rows = database.rows(
        f"SELECT trace_id FROM {records.rows} ORDER BY {worst_first}time DESC, trace_id LIMIT {_EXAMPLES}",
        records.parameters,
    )
    return tuple(row["trace_id"] for row in rows)


def _records(
    watch: Watch, series: Series, found: Moved, segments: SegmentValues, since: datetime, until: datetime
) -> tuple[Records, str]:
    evaluator, _, key = series.metric.partition(".")
    if found.worst == "label":
        asked = {"app": series.app, "environment": series.environment, "model": series.model, "evaluator": evaluator}
        return Records(_LABELLED, asked | {"key": key, "label": found.channel, "since": since, "until": until}), ""
    records = records_of(series, segments, int(since.timestamp()), math.ceil(until.timestamp()))
    value = "metrics[{key:String}]"
    if found.worst == "far":
        return Records(records.rows, records.parameters | {"line": found.line}), f"-abs({value} - {{line:Float64}}), "
    higher_is_better = watch.metric is None or watch.metric.metric.better == "higher"
    lowest_first = found.worst == "low" or (
        found.worst in ("wrong", "right") and higher_is_better == (found.worst == "wrong")
    )
    return records, f"{value}, " if lowest_first else f"-{value}, "
