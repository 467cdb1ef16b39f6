"""The score rows that a series is made of, for the few questions that windows cannot answer."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from drift.rules.series import Rule, Series
from drift.windows.contents import OTHER
from drift.windows.scope import MINUTE
from drift.windows.segments import SegmentValues

_FAR = 1e308


@dataclass(frozen=True, slots=True)
class Records:
    """`rows` follows FROM and goes on with AND; `parameters` are bound with it."""

    rows: str
    parameters: dict[str, Any]


def records_of(series: Series, segments: SegmentValues, start: int, end: int) -> Records:
    """De-duplicated scored rows of a live series in [start, end), seconds since 1970.

    The index sees whole minutes only (see `Scope.minutes`).
    """
    evaluator, _, key = series.metric.partition(".")
    segment = "segments[{segment:String}] = {segment_value:String}"
    if not series.segment:
        segment = "1"
    elif series.segment_value == OTHER:
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
        "from_minute": datetime.fromtimestamp(start // MINUTE * MINUTE, UTC),
        "to_minute": datetime.fromtimestamp(-(-end // MINUTE) * MINUTE, UTC),
        "start_ms": start * 1000,
        "end_ms": end * 1000,
    }
    if series.segment:
        parameters |= {"segment": series.segment, "segment_value": series.segment_value}
        if series.segment_value == OTHER:
            parameters["known"] = list(segments.at(start, series.app).get(series.segment, ()))
    return Records(rows, parameters)


def beyond() -> str:
    """Condition: the record is on the wrong side of the rule's lines, snapped as the windows' bins are."""
    return "(metrics[{key:String}] < {least:Float64} OR metrics[{key:String}] > {greatest:Float64})"


def of_class() -> str:
    """Condition: a part of the record has the label that parameter `class` begins with, see `segment_value_of`."""
    fits = "arrayExists(label -> startsWith(concat({class:String}, '/'), concat(label, '/')), arraySlice(key, 2))"
    keys = r"arrayMap(key -> splitByChar('\t', key), mapKeys(parts))"
    return f"({{class:String}} = '' OR arrayExists(key -> {fits}, {keys}))"


def lines(rule: Rule) -> dict[str, float]:
    """Parameters of `beyond`."""
    scale = rule.watched.scale
    return {
        "least": -_FAR if rule.least is None else scale.snap(rule.least),
        "greatest": _FAR if rule.greatest is None else scale.snap(rule.greatest),
    }
