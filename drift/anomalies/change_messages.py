"""Describe an alarm in the metric's own unit: what changed, from what to what, and its message."""

import math
from dataclasses import dataclass
from typing import Literal

from ragtide.drift.anomalies.batch import BatchSnapshot, RolloutPair, SeriesAlarm
from ragtide.drift.anomalies.metrics import MonitoredMetric
from ragtide.drift.detectors import HEAVY_TAILED_CHANNELS, LEVELS, SCORE_CHANNELS, SPREAD_MARGIN, level_values
from ragtide.drift.rules import Series
from ragtide.drift.stats import calendar
from ragtide.drift.text import number, percent

_SIMULTANEOUS_S = calendar.HOUR_S  # after the start of a rollout: a change then is due to it
_NO_MODEL = "traces without a model"
_MAX_EFFECT = 99.0


@dataclass(frozen=True, slots=True)
class Change:
    """A change of `what` from `baseline` to `value`, in the metric's unit or as shares.

    `total_variation` is the share of records that it moved. Examples are the highest or lowest records, those far from
    `line`, or those with the label `channel`.
    """

    what: str
    baseline: float
    value: float
    effect_size: float
    total_variation: float
    channel: str
    examples_order: Literal["high", "low", "far", "label"]
    line: float
    is_regression: bool
    margin: float = 0.0


def change_of(metric: MonitoredMetric, snapshot: BatchSnapshot, alarm: SeriesAlarm) -> Change:
    """Describe the alarm of one series."""
    if metric.kind == "score":
        if SCORE_CHANNELS[alarm.channel] == "mean":
            return _mean_change(metric, snapshot, alarm)
        return _spread_change(metric, snapshot, alarm)
    return _share_change(metric, snapshot, alarm)


def describe(
    series: Series,
    metric: MonitoredMetric,
    change: Change,
    alarm: SeriesAlarm,
    rollout: RolloutPair | None = None,
    *,
    took_over: bool = False,
) -> str:
    """Return the message. It quotes no trace; a label's name is what an evaluator gave it.

    In a `rollout` the model took over from the other one, or runs beside it.
    """
    before, after = (
        number(value, metric.unit) if metric.kind == "score" else percent(value)
        for value in (change.baseline, change.value)
    )
    moved = "fell" if change.value < change.baseline else "rose"
    what, onset = f"{series.label}: {change.what} {moved} from {before} to {after}", _minute(alarm.onset)
    sample = f"Measured on {alarm.records:,} trace{'' if alarm.records == 1 else 's'}"
    level = ""
    if metric.kind == "positive":
        quantile = "median" if LEVELS[alarm.channel] == 0.5 else "95th percentile"
        level = f", {number(change.line, metric.unit)} is the usual {quantile}"
    if rollout is None:
        return f"{what} at {onset}. {sample}; {before} is usual at this hour{level}."
    model, other = series.model or _NO_MODEL, rollout.model or _NO_MODEL
    came = f"{model} {'took over from' if took_over else 'started beside'} {other}"
    sample = f"{sample}; {before} is usual with {other} at this hour{level}."
    if alarm.onset - rollout.since < _SIMULTANEOUS_S:
        return f"{what} when {came}. That was at {_minute(rollout.since)}. {sample}"
    return f"{what} at {onset}. Before that, {came} at {_minute(rollout.since)}. {sample}"


def _minute(at: int) -> str:
    return f"{calendar.utc(at):%Y-%m-%d %H:%M} UTC"


def _mean_change(metric: MonitoredMetric, snapshot: BatchSnapshot, alarm: SeriesAlarm) -> Change:
    baseline, place, down = snapshot.baseline, alarm.place, alarm.direction < 0
    sd = math.sqrt(max(float(baseline.level[place, 1].mean()), 0.0))
    shift = alarm.observed - alarm.expected
    effect = min(abs(shift) / sd, _MAX_EFFECT) if sd else _MAX_EFFECT
    return Change(
        what=f"the mean of {metric.name}",
        baseline=metric.low + metric.width * alarm.expected,
        value=metric.low + metric.width * alarm.observed,
        effect_size=math.copysign(effect, shift),
        total_variation=math.erf(effect / 2 / math.sqrt(2)),
        channel="mean",
        examples_order="low" if down else "high",
        line=0.0,
        is_regression=metric.better is None or (metric.better == "higher") == down,
        margin=metric.width * float(baseline.tolerance[place, 0]),
    )


def _spread_change(metric: MonitoredMetric, snapshot: BatchSnapshot, alarm: SeriesAlarm) -> Change:
    baseline, place = snapshot.baseline, alarm.place
    before, now = (math.sqrt(max(value, 0.0)) for value in (alarm.expected, alarm.observed))
    return Change(
        what=f"the standard deviation of {metric.name}",
        baseline=metric.width * before,
        value=metric.width * now,
        effect_size=math.log(now / before) if before and now else 0.0,
        total_variation=_spread_total_variation(before, now),
        channel="spread",
        examples_order="far",
        line=metric.low + metric.width * float(baseline.level[place, 0].mean()),
        is_regression=alarm.direction > 0,
        margin=float(baseline.tolerance[place, 1]) / alarm.expected if alarm.expected else SPREAD_MARGIN,
    )


def _share_change(metric: MonitoredMetric, snapshot: BatchSnapshot, alarm: SeriesAlarm) -> Change:
    """Describe a share of records: of bad ones, of those above a level of the history, or of those with a label."""
    up, line = alarm.direction > 0, 0.0
    order: Literal["high", "low", "label"]
    if metric.kind == "rate":
        what, channel = f"the share of traces that failed {metric.name}", "rate"
        order, is_regression = "low" if (metric.better == "higher") == up else "high", up
    elif metric.kind == "positive":
        line = float(level_values(snapshot.baseline.level_bins[alarm.place, alarm.channel]))
        channel = HEAVY_TAILED_CHANNELS[alarm.channel]
        what = f"the share of traces with {metric.name} above {number(line, metric.unit)}"
        order = "high" if up else "low"
        is_regression = metric.aspect != "level" or (metric.better == "lower") == up
    else:
        labels = snapshot.batch.labels[alarm.place]
        channel = labels[alarm.channel] if alarm.channel < len(labels) else "other labels"
        what, order, is_regression = f"the share of {channel} in {metric.name}", "label", True
    before, now = (2 * math.asin(math.sqrt(min(max(x, 0.0), 1.0))) for x in (alarm.expected, alarm.observed))
    return Change(
        what=what,
        baseline=alarm.expected,
        value=alarm.observed,
        effect_size=now - before,
        total_variation=abs(alarm.observed - alarm.expected),
        channel=channel,
        examples_order=order,
        line=line,
        is_regression=is_regression,
        margin=float(snapshot.baseline.tolerance[alarm.place, alarm.channel]),
    )


def _spread_total_variation(before: float, now: float) -> float:
    """Total variation between normal distributions of these standard deviations and the same mean."""
    narrow, wide = sorted((before, now))
    if not narrow or wide == narrow:
        return float(wide > narrow)
    ratio = wide / narrow
    cross = math.sqrt(2 * math.log(ratio) / (1 - 1 / ratio**2))
    return math.erf(cross / math.sqrt(2)) - math.erf(cross / ratio / math.sqrt(2))
