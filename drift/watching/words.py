"""An alarm in the metric's own unit: what moved, from what to what, how far, and the sentence that says so."""

import math
from dataclasses import dataclass
from typing import Literal

from drift.detectors import positives, scores
from drift.detectors.baseline import FALSE_ALARMS_A_DAY
from drift.detectors.series import LEVELS, level_values
from drift.phrases import number, percent
from drift.rules.series import Series
from drift.watching import grid
from drift.watching.batch import Succession
from drift.watching.kinds import Watch
from drift.watching.seen import Alarm, Seen

_AT_ONCE_S = grid.HOUR_S  # after a model came: what moved then came with it
_UNNAMED = "traces that name no model"

Worst = Literal["high", "low", "far", "wrong", "right", "label"]


@dataclass(frozen=True, slots=True)
class Moved:
    """What an alarm is about. `baseline` and `value` in the metric's unit, or as shares; `overlap_lost`: the share of
    records that lie where none lay before (total variation), of either kind of change; `worst`: which records show it,
    `line` being the value that they lie beyond or far from; `bad`: for the worse, as far as that can be said.
    """

    what: str
    baseline: float
    value: float
    effect_size: float
    overlap_lost: float
    margin: float
    channel: str
    worst: Worst
    line: float
    bad: bool


def moved(watch: Watch, seen: Seen, alarm: Alarm) -> Moved:
    """The alarm of one series."""
    if watch.kind == "score":
        return _score(watch, seen, alarm)
    return _share(watch, seen, alarm)


def describe(series: Series, watch: Watch, found: Moved, alarm: Alarm) -> str:
    """The sentence. It quotes no trace; a label's name is what an evaluator gave it."""
    before, went_to = _from_and_to(watch, found)
    return f"{series.whereabouts}: {found.what} {before} (usual at this hour) {went_to} {_when(alarm)}, {_on(alarm)}."


def describe_successor(
    series: Series, watch: Watch, found: Moved, alarm: Alarm, before: Succession, took_over: bool
) -> str:
    """The sentence of a model that is judged by the days of another one, whose place it took, or beside which it is."""
    model, other = series.model or _UNNAMED, before.model or _UNNAMED
    came = f"{model} {'took over from' if took_over else 'came beside'} {other} on {_minute(before.since)}"
    usual, went_to = _from_and_to(watch, found)
    what = f"{found.what} {usual} (with {other} at this hour) {went_to}"
    if alarm.onset - before.since < _AT_ONCE_S:
        return f"{series.whereabouts}: since {came}, {what}, {_on(alarm)}."
    return f"{series.whereabouts}: {what} {_when(alarm)}, after {came}; {_on(alarm)}."


def _from_and_to(watch: Watch, found: Moved) -> tuple[str, str]:
    went = "fell" if found.value < found.baseline else "rose"
    unit = "" if watch.kind != "score" or watch.metric is None else watch.metric.metric.unit or ""
    told = (found.baseline, found.value)
    before, now = (number(x, unit) if watch.kind == "score" else percent(x) for x in told)
    return f"{went} from {before}", f"to {now}"


def _when(alarm: Alarm) -> str:
    return f"since {_minute(alarm.onset)}"


def _minute(at: int) -> str:
    return f"{grid.time(at):%Y-%m-%d %H:%M} UTC"


def _on(alarm: Alarm) -> str:
    return f"on {alarm.records:,} trace{'' if alarm.records == 1 else 's'}"


def attributes(watch: Watch, found: Moved, alarm: Alarm) -> dict[str, object]:
    """What is told beside the sentence and the place."""
    return {
        "evaluator": watch.evaluator.id,
        "detector": watch.kind,
        "channel": found.channel,
        "level": found.line if watch.kind == "positive" else None,
        "value": found.value,
        "baseline": found.baseline,
        "margin": found.margin,
        "effect_size": found.effect_size,
        "moved_share": found.overlap_lost,
        "sample_size": alarm.records,
        "log10_e_value": alarm.log_e / math.log(10),
        "days_to_a_false_alarm": 1 / FALSE_ALARMS_A_DAY,
    }


def succeeds(before: Succession) -> dict[str, object]:
    """Attributes of a model that is judged by the days of another one."""
    return {"model_before": before.model, "model_since": grid.time(before.since).isoformat()}


def _score(watch: Watch, seen: Seen, alarm: Alarm) -> Moved:
    baseline, place = seen.baseline, alarm.place
    better = None if watch.metric is None else watch.metric.metric.better
    spread = max(float(baseline.level[place, 1].mean()), 0.0)
    if scores.CHANNELS[alarm.channel] == "mean":
        sd = math.sqrt(spread)
        effect = (alarm.observed - alarm.expected) / sd if sd else math.inf
        return Moved(
            what=f"the mean of {watch.name}",
            baseline=watch.low + watch.span * alarm.expected,
            value=watch.low + watch.span * alarm.observed,
            effect_size=math.copysign(min(abs(effect), 99.0), alarm.observed - alarm.expected),
            overlap_lost=math.erf(min(abs(effect), 99.0) / 2 / math.sqrt(2)),
            margin=watch.span * float(baseline.near[place, 0]),
            channel="mean",
            worst="low" if alarm.direction < 0 else "high",
            line=0.0,
            bad=better is None or (better == "higher") == (alarm.direction < 0),
        )
    before, now = (math.sqrt(max(value, 0.0)) for value in (alarm.expected, alarm.observed))
    return Moved(
        what=f"the standard deviation of {watch.name}",
        baseline=watch.span * before,
        value=watch.span * now,
        effect_size=math.log(now / before) if before and now else 0.0,
        overlap_lost=_wider(before, now),
        margin=float(baseline.near[place, 1]) / alarm.expected if alarm.expected else scores.SPREAD_MARGIN,
        channel="spread",
        worst="far",
        line=watch.low + watch.span * float(baseline.level[place, 0].mean()),
        bad=alarm.direction > 0,
    )


def _share(watch: Watch, seen: Seen, alarm: Alarm) -> Moved:
    """A share of records: those on the wrong side, above a level of the history, or with a label."""
    up = alarm.direction > 0
    better = None if watch.metric is None else watch.metric.metric.better
    worst: Worst
    if watch.kind == "rate":
        what, channel, line = f"the share of traces that did not pass {watch.name}", "rate", 0.0
        worst, bad = "wrong" if up else "right", up
    elif watch.kind == "positive":
        line = float(level_values(seen.baseline.bins[alarm.place, alarm.channel]))
        channel = positives.CHANNELS[alarm.channel]
        unit = "" if watch.metric is None else watch.metric.metric.unit or ""
        name = "median" if LEVELS[alarm.channel] == 0.5 else "95th percentile"
        what = f"the share of traces with {watch.name} above {number(line, unit)}, the usual {name},"
        worst, bad = "high" if up else "low", watch.aspect != "level" or (better == "lower") == up
    else:
        labels = seen.batch.labels[alarm.place]
        channel = labels[alarm.channel] if alarm.channel < len(labels) else "other labels"
        what, line = f"the share of {channel} in {watch.name}", 0.0
        worst, bad = "label", True
    effect = 2 * (math.asin(math.sqrt(_share_of(alarm.observed))) - math.asin(math.sqrt(_share_of(alarm.expected))))
    return Moved(
        what=what,
        baseline=alarm.expected,
        value=alarm.observed,
        effect_size=effect,
        overlap_lost=abs(alarm.observed - alarm.expected),
        margin=float(seen.baseline.near[alarm.place, alarm.channel]),
        channel=channel,
        worst=worst,
        line=line,
        bad=bad,
    )


def _wider(before: float, now: float) -> float:
    """How much of a normal distribution lies elsewhere once its standard deviation is another."""
    narrow, wide = sorted((before, now))
    if not narrow or wide == narrow:
        return float(wide > narrow)
    ratio = wide / narrow
    cross = math.sqrt(2 * math.log(ratio) / (1 - 1 / ratio**2))
    return math.erf(cross / math.sqrt(2)) - math.erf(cross / ratio / math.sqrt(2))


def _share_of(value: float) -> float:
    return min(max(value, 0.0), 1.0)
