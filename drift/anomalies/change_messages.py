"""Describe an alarm in the metric's own unit: the change, its message, and example traces.

Examples are ids of traces, the worst first: no text of theirs is read."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ragtide.drift.anomalies.batch import BatchSnapshot, RolloutPair, SeriesAlarm
from ragtide.drift.anomalies.metrics import MonitoredMetric
from ragtide.drift.detectors import proportions, scores
from ragtide.drift.detectors.arrays import LEVELS, level_values
from ragtide.drift.detectors.baseline import FALSE_ALARMS_A_DAY
from ragtide.drift.rules.model import Series
from ragtide.drift.rules.queries import RecordQuery, record_query
from ragtide.drift.stats import calendar
from ragtide.drift.text import number, percent
from ragtide.drift.windows.segments import SegmentValues
from ragtide.sinks.clickhouse.database import Database

_SIMULTANEOUS_S = calendar.HOUR_S  # after a model came: what moved then came with it
_NO_MODEL = "traces that name no model"

ExamplesOrder = Literal["high", "low", "far", "wrong", "right", "label"]


@dataclass(frozen=True, slots=True)
class Change:
    """What an alarm is about. `baseline` and `value` in the metric's unit, or as shares; `overlap_lost`: the share of
    records that lie where none lay before (total variation), of either kind of change; `worst`: which records show it,
    `line` being the value that they lie beyond or far from; `bad`: for the worse, as far as that can be said.
    """

    what: str
    baseline: float
    value: float
    effect_size: float
    total_variation: float
    margin: float
    channel: str
    examples_order: ExamplesOrder
    line: float
    is_regression: bool


def change_of(metric: MonitoredMetric, snapshot: BatchSnapshot, alarm: SeriesAlarm) -> Change:
    """The alarm of one series."""
    if metric.kind == "score":
        return _score_change(metric, snapshot, alarm)
    return _share_change(metric, snapshot, alarm)


def describe(series: Series, metric: MonitoredMetric, change: Change, alarm: SeriesAlarm) -> str:
    """The sentence. It quotes no trace; a label's name is what an evaluator gave it."""
    before, went_to = _before_after(metric, change)
    return f"{series.label}: {change.what} {before} (usual at this hour) {went_to} {_when(alarm)}, {_sample(alarm)}."


def describe_rollout(
    series: Series, metric: MonitoredMetric, change: Change, alarm: SeriesAlarm, before: RolloutPair, took_over: bool
) -> str:
    """The sentence of a model that is judged by the days of another one, whose place it took, or beside which it is."""
    model, other = series.model or _NO_MODEL, before.model or _NO_MODEL
    came = f"{model} {'took over from' if took_over else 'came beside'} {other} on {_minute(before.since)}"
    usual, went_to = _before_after(metric, change)
    what = f"{change.what} {usual} (with {other} at this hour) {went_to}"
    if alarm.onset - before.since < _SIMULTANEOUS_S:
        return f"{series.label}: since {came}, {what}, {_sample(alarm)}."
    return f"{series.label}: {what} {_when(alarm)}, after {came}; {_sample(alarm)}."


def _before_after(metric: MonitoredMetric, change: Change) -> tuple[str, str]:
    went = "fell" if change.value < change.baseline else "rose"
    unit = "" if metric.kind != "score" or metric.ref is None else metric.ref.metric.unit or ""
    told = (change.baseline, change.value)
    before, now = (number(x, unit) if metric.kind == "score" else percent(x) for x in told)
    return f"{went} from {before}", f"to {now}"


def _when(alarm: SeriesAlarm) -> str:
    return f"since {_minute(alarm.onset)}"


def _minute(at: int) -> str:
    return f"{calendar.utc(at):%Y-%m-%d %H:%M} UTC"


def _sample(alarm: SeriesAlarm) -> str:
    return f"on {alarm.records:,} trace{'' if alarm.records == 1 else 's'}"


def change_attributes(metric: MonitoredMetric, change: Change, alarm: SeriesAlarm) -> dict[str, object]:
    """What is told beside the sentence and the place."""
    return {
        "evaluator": metric.evaluator.id,
        "detector": metric.kind,
        "channel": change.channel,
        "level": change.line if metric.kind == "positive" else None,
        "value": change.value,
        "baseline": change.baseline,
        "margin": change.margin,
        "effect_size": change.effect_size,
        "moved_share": change.total_variation,
        "sample_size": alarm.records,
        "log10_e_value": alarm.log_e / math.log(10),
        "days_to_a_false_alarm": 1 / FALSE_ALARMS_A_DAY,
    }


def rollout_attributes(before: RolloutPair) -> dict[str, object]:
    """Attributes of a model that is judged by the days of another one."""
    return {"model_before": before.model, "model_since": calendar.utc(before.since).isoformat()}


def _score_change(metric: MonitoredMetric, snapshot: BatchSnapshot, alarm: SeriesAlarm) -> Change:
    baseline, place = snapshot.baseline, alarm.place
    better = None if metric.ref is None else metric.ref.metric.better
    spread = max(float(baseline.level[place, 1].mean()), 0.0)
    if scores.CHANNELS[alarm.channel] == "mean":
        sd = math.sqrt(spread)
        effect = (alarm.observed - alarm.expected) / sd if sd else math.inf
        return Change(
            what=f"the mean of {metric.name}",
            baseline=metric.low + metric.span * alarm.expected,
            value=metric.low + metric.span * alarm.observed,
            effect_size=math.copysign(min(abs(effect), 99.0), alarm.observed - alarm.expected),
            total_variation=math.erf(min(abs(effect), 99.0) / 2 / math.sqrt(2)),
            margin=metric.span * float(baseline.near[place, 0]),
            channel="mean",
            examples_order="low" if alarm.direction < 0 else "high",
            line=0.0,
            is_regression=better is None or (better == "higher") == (alarm.direction < 0),
        )
    before, now = (math.sqrt(max(value, 0.0)) for value in (alarm.expected, alarm.observed))
    return Change(
        what=f"the standard deviation of {metric.name}",
        baseline=metric.span * before,
        value=metric.span * now,
        effect_size=math.log(now / before) if before and now else 0.0,
        total_variation=_spread_total_variation(before, now),
        margin=float(baseline.near[place, 1]) / alarm.expected if alarm.expected else scores.SPREAD_MARGIN,
        channel="spread",
        examples_order="far",
        line=metric.low + metric.span * float(baseline.level[place, 0].mean()),
        is_regression=alarm.direction > 0,
    )


def _share_change(metric: MonitoredMetric, snapshot: BatchSnapshot, alarm: SeriesAlarm) -> Change:
    """A share of records: those on the wrong side, above a level of the history, or with a label."""
    up = alarm.direction > 0
    better = None if metric.ref is None else metric.ref.metric.better
    worst: ExamplesOrder
    if metric.kind == "rate":
        what, channel, line = f"the share of traces that did not pass {metric.name}", "rate", 0.0
        worst, bad = "wrong" if up else "right", up
    elif metric.kind == "positive":
        line = float(level_values(snapshot.baseline.bins[alarm.place, alarm.channel]))
        channel = proportions.HEAVY_TAILED_CHANNELS[alarm.channel]
        unit = "" if metric.ref is None else metric.ref.metric.unit or ""
        name = "median" if LEVELS[alarm.channel] == 0.5 else "95th percentile"
        what = f"the share of traces with {metric.name} above {number(line, unit)}, the usual {name},"
        worst, bad = "high" if up else "low", metric.aspect != "level" or (better == "lower") == up
    else:
        labels = snapshot.batch.labels[alarm.place]
        channel = labels[alarm.channel] if alarm.channel < len(labels) else "other labels"
        what, line = f"the share of {channel} in {metric.name}", 0.0
        worst, bad = "label", True
    effect = 2 * (math.asin(math.sqrt(_clip_share(alarm.observed))) - math.asin(math.sqrt(_clip_share(alarm.expected))))
    return Change(
        what=what,
        baseline=alarm.expected,
        value=alarm.observed,
        effect_size=effect,
        total_variation=abs(alarm.observed - alarm.expected),
        margin=float(snapshot.baseline.near[alarm.place, alarm.channel]),
        channel=channel,
        examples_order=worst,
        line=line,
        is_regression=bad,
    )


def _spread_total_variation(before: float, now: float) -> float:
    """How much of a normal distribution lies elsewhere once its standard deviation is another."""
    narrow, wide = sorted((before, now))
    if not narrow or wide == narrow:
        return float(wide > narrow)
    ratio = wide / narrow
    cross = math.sqrt(2 * math.log(ratio) / (1 - 1 / ratio**2))
    return math.erf(cross / math.sqrt(2)) - math.erf(cross / ratio / math.sqrt(2))


def _clip_share(value: float) -> float:
    return min(max(value, 0.0), 1.0)


_MAX_EXAMPLES = 10
_LABEL_ROWS = """
    scores FINAL WHERE run_id = 'live' AND app = {app:String} AND environment = {environment:String}
        AND evaluator = {evaluator:String} AND status = 'scored' AND model = {model:String}
        AND time >= {since:DateTime64(3, 'UTC')} AND time < {until:DateTime64(3, 'UTC')}
        AND categories[{key:String}] = {label:String}"""


def examples(
    database: Database,
    metric: MonitoredMetric,
    series: Series,
    change: Change,
    segments: SegmentValues,
    since: datetime,
    until: datetime,
) -> tuple[str, ...]:
    """Ten at most; of labels the latest that have it."""
    records, worst_first = _example_records(metric, series, change, segments, since, until)
    rows = database.rows(
        f"SELECT trace_id FROM {records.rows} ORDER BY {worst_first}time DESC, trace_id LIMIT {_MAX_EXAMPLES}",
        records.parameters,
    )
    return tuple(row["trace_id"] for row in rows)


def _example_records(
    metric: MonitoredMetric, series: Series, change: Change, segments: SegmentValues, since: datetime, until: datetime
) -> tuple[RecordQuery, str]:
    evaluator, _, key = series.metric.partition(".")
    if change.examples_order == "label":
        asked = {"app": series.app, "environment": series.environment, "model": series.model, "evaluator": evaluator}
        return RecordQuery(
            _LABEL_ROWS, asked | {"key": key, "label": change.channel, "since": since, "until": until}
        ), ""
    records = record_query(series, segments, int(since.timestamp()), math.ceil(until.timestamp()))
    value = "metrics[{key:String}]"
    if change.examples_order == "far":
        return RecordQuery(
            records.rows, records.parameters | {"line": change.line}
        ), f"-abs({value} - {{line:Float64}}), "
    higher_is_better = metric.ref is None or metric.ref.metric.better == "higher"
    lowest_first = change.examples_order == "low" or (
        change.examples_order in ("wrong", "right") and higher_is_better == (change.examples_order == "wrong")
    )
    return records, f"{value}, " if lowest_first else f"-{value}, "
