"""Chart the evaluated value of a problem around its onset, with its reference line."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from ragtide.drift import sql
from ragtide.drift.detectors.arrays import level_bin
from ragtide.drift.detectors.proportions import HEAVY_TAILED_CHANNELS as POSITIVE
from ragtide.drift.detectors.scores import CHANNELS as SCORE
from ragtide.drift.problems.model import Problem
from ragtide.drift.windows.histogram import BINS, FAR, bin_bounds, count_out_of_bounds
from ragtide.drift.windows.metrics import MetricRef
from ragtide.sinks.clickhouse.database import Database

_ASPECTS = ("level", "inputs", "coverage")  # of the others no window has the figure


class ReferenceLine(NamedTuple):
    """A value on the chart, and what it is."""

    name: str
    value: float


class ChartSeries(NamedTuple):
    """Expressions on rows of `windows` in groups: the figure under its name, and how many records it rests on.

    `unsegmented`: the problem's segment is none that windows are cut by.
    """

    name: str
    value: str
    records: str
    line: ReferenceLine | None
    unsegmented: bool = False


def chart_series(problem: Problem, metric: MetricRef | None) -> ChartSeries | None:
    """The figure that those moved who tell the problem now; None where windows do not have it.

    `metric` is the problem's, None where nobody knows it: then its bins cannot be read.
    """
    attributes = problem.attributes
    if problem.aspect not in _ASPECTS:
        return None
    if problem.aspect == "coverage":
        return _share_series(
            "share without a score", "failed", "applicable", _reference_line("limit", attributes.get("limit"))
        )
    if "detector" in attributes:
        return _detector_series(attributes, metric)
    rule = attributes.get("rule")
    if rule == "mean":
        return _mean_series(_reference_line("threshold", attributes.get("threshold")))
    if rule == "value":
        number, scored = "argMaxIf(value, scored, value IS NOT NULL)", "sumIf(scored, value IS NOT NULL)"
        return ChartSeries(
            "value of the largest window", number, scored, _reference_line("threshold", attributes.get("threshold"))
        )
    if metric is None:
        return None
    if attributes.get("min") is not None or attributes.get("max") is not None:
        bad = count_out_of_bounds(*bin_bounds(metric.scale, attributes.get("min"), attributes.get("max")))
        series = _share_series("share that fails", bad, "scored", _reference_line("limit", attributes.get("limit")))
        return series._replace(unsegmented="objective" in attributes)
    return _day_series(attributes, metric)


def _detector_series(attributes: Mapping[str, Any], metric: MetricRef | None) -> ChartSeries | None:
    channel, baseline = attributes["channel"], _reference_line("usual", attributes["baseline"])
    kind = attributes["detector"]
    if kind == "category":
        # Which labels are the others was known only while the detector looked.
        labelled = f"category_counts[{sql.text(channel)}]"
        every = "arraySum(mapValues(category_counts))"
        return None if channel == "other labels" else _share_series(f"share of {channel}", labelled, every, baseline)
    if kind == "score" and channel == SCORE[0]:
        return _mean_series(baseline)
    if kind == "score":
        scatter, freedom = "windows.sum_squares - windows.sum * windows.sum / scored", "sumIf(scored - 1, scored > 1)"
        value = f"sqrt(greatest(sumIf({scatter}, scored > 1), 0) / {freedom})"
        return ChartSeries("standard deviation", value, freedom, baseline)
    if kind == "rate" and metric is not None:
        threshold, higher = metric.metric.threshold, metric.metric.better == "higher"
        bad = count_out_of_bounds(
            *bin_bounds(metric.scale, threshold if higher else None, None if higher else threshold)
        )
        return _share_series("share that did not pass", bad, "scored", baseline)
    if kind == "positive" and channel in POSITIVE and attributes.get("level") is not None:
        return _share_above(attributes["level"], level_bin(attributes["level"]), baseline)
    return None


def _day_series(attributes: Mapping[str, Any], metric: MetricRef) -> ChartSeries | None:
    """The share above a level, as a whole day is compared with the days before."""
    level, baseline = attributes.get("level"), _reference_line("usual", attributes.get("baseline"))
    if level is None:
        return None
    scale = metric.scale
    if not scale.bounded:
        return _share_above(level, level_bin(level), baseline)
    edge = round((level - scale.low) / (scale.high - scale.low) * BINS)
    return _share_above(level, edge - (scale.better == "higher"), baseline)


def _share_above(level: float, bin_: int, baseline: ReferenceLine | None) -> ChartSeries:
    return _share_series(f"share above {level:.3g}", count_out_of_bounds(-FAR, bin_), "scored", baseline)


def _mean_series(reference: ReferenceLine | None) -> ChartSeries:
    return _share_series("mean", "windows.sum", "scored", reference)


def _share_series(name: str, part: str, of: str, reference: ReferenceLine | None) -> ChartSeries:
    return ChartSeries(name, f"sum({part}) / sum({of})", f"sum({of})", reference)


def _reference_line(name: str, value: object) -> ReferenceLine | None:
    return ReferenceLine(name, float(value)) if isinstance(value, int | float) else None


MAX_POINTS = 60
_BEFORE = timedelta(minutes=30)  # at least, and as long as the trouble lasts
_AFTER = timedelta(minutes=15)
_MAX_DURATION = timedelta(days=7)


class ChartPoint(NamedTuple):
    """The figure over so many records from `start` on."""

    start: datetime
    value: float
    records: int


def chart_points(database: Database, problem: Problem, series: ChartSeries, base_s: int) -> list[ChartPoint]:
    """At most `MAX_POINTS`, in order of time; none where windows have no such figure. `base_s` sizes the windows."""
    since, until = _chart_interval(problem)
    step_s = max(base_s, -(-int((until - since).total_seconds()) // MAX_POINTS // base_s) * base_s)
    rows = database.rows(
        f"SELECT intDiv(toUnixTimestamp(start), {step_s}) * {step_s} AS at, {series.value} AS figure, "
        f"{series.records} AS records "
        "FROM windows FINAL WHERE run_id = 'live' AND size_s = {base_s:UInt32} AND app = {app:String} "
        "AND environment = {environment:String} AND metric = {metric:String} "
        "AND ({model:String} = '' OR model = {model:String}) AND segment = {segment:String} "
        "AND segment_value = {segment_value:String} "
        "AND start >= {since:DateTime64(3, 'UTC')} AND start < {until:DateTime64(3, 'UTC')} "
        "GROUP BY at HAVING records > 0 ORDER BY at",
        {
            **{name: getattr(problem, name) for name in ("app", "environment", "metric", "model")},
            "segment": "" if series.unsegmented else problem.segment,
            "segment_value": "" if series.unsegmented else problem.segment_value,
            "base_s": base_s,
            "since": since,
            "until": until,
        },
    )
    return [ChartPoint(datetime.fromtimestamp(row["at"], UTC), row["figure"], row["records"]) for row in rows]


def onset_of(problem: Problem) -> datetime:
    """When the trouble began, in event time as far as it is known."""
    since = problem.attributes.get("since")
    return datetime.fromisoformat(since) if since else problem.opened_at or problem.first_seen_at


def _chart_interval(problem: Problem) -> tuple[datetime, datetime]:
    onset = onset_of(problem)
    end = problem.resolved_at or problem.last_seen_at
    duration = min(max(end - onset, timedelta()), _MAX_DURATION)
    return onset - max(_BEFORE, duration), onset + duration + _AFTER
