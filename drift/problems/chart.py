"""Chart the evaluated value of a problem around its onset, with its reference line."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.drift.attributes import Evidence
from ragtide.drift.detectors import HEAVY_TAILED_CHANNELS, SCORE_CHANNELS, level_bin
from ragtide.drift.problems.model import Problem
from ragtide.drift.rules import (
    RULE_KINDS,
    ChartSeries,
    ReferenceLine,
    bad_share_series,
    mean_series,
    reference_line,
    share_series,
)
from ragtide.drift.windows import FAR_BIN, HISTOGRAM_BINS, MetricRef, bin_bounds, count_out_of_bounds
from ragtide.sinks.clickhouse.database import Database

_ASPECTS = ("level", "inputs", "coverage")  # windows do not have the values of the others


def chart_series(problem: Problem, metric: MetricRef | None) -> ChartSeries | None:
    """Choose the value that the problem's newest kind evaluated; None where windows do not have it.

    `metric` is None where the evaluator is not installed: then its bins cannot be read.
    """
    evidence = problem.evidence
    if problem.aspect not in _ASPECTS:
        return None
    if evidence.detector:
        return _detector_series(evidence, metric)
    kind = RULE_KINDS.get(evidence.rule)
    if kind is not None:
        return kind.chart_series(evidence, metric)
    bad_share = bad_share_series(evidence, metric)
    if bad_share is not None:
        return bad_share._replace(unsegmented=bool(evidence.objective))
    return None if metric is None else _day_series(evidence, metric)


def _detector_series(evidence: Evidence, metric: MetricRef | None) -> ChartSeries | None:
    kind, channel, baseline = evidence.detector, evidence.channel, reference_line("usual", evidence.baseline)
    if kind == "category":
        # Only the detector knew which labels are the other ones.
        labelled = f"category_counts[{sql.text(channel)}]"
        every = "arraySum(mapValues(category_counts))"
        return None if channel == "other labels" else share_series(f"share of {channel}", labelled, every, baseline)
    if kind == "score" and channel == SCORE_CHANNELS[0]:
        return mean_series(baseline)
    if kind == "score":
        scatter, freedom = "windows.sum_squares - windows.sum * windows.sum / scored", "sumIf(scored - 1, scored > 1)"
        value = f"sqrt(greatest(sumIf({scatter}, scored > 1), 0) / {freedom})"
        return ChartSeries("standard deviation", value, freedom, baseline)
    if kind == "rate" and metric is not None:
        bad = count_out_of_bounds(*bin_bounds(metric.scale, *metric.bounds))
        return share_series("share that failed", bad, "scored", baseline)
    if kind == "positive" and channel in HEAVY_TAILED_CHANNELS and evidence.level is not None:
        return _share_above(evidence.level, level_bin(evidence.level), baseline)
    return None


def _day_series(evidence: Evidence, metric: MetricRef) -> ChartSeries | None:
    """Chart the share above a level, which the daily drift test compares between days."""
    level, baseline = evidence.level, reference_line("usual", evidence.baseline)
    if level is None:
        return None
    scale = metric.scale
    if not scale.bounded:
        return _share_above(level, level_bin(level), baseline)
    edge = round((level - scale.low) / (scale.high - scale.low) * HISTOGRAM_BINS)
    return _share_above(level, edge - (scale.better == "higher"), baseline)


def _share_above(level: float, bin_: int, baseline: ReferenceLine | None) -> ChartSeries:
    return share_series(f"share above {level:.3g}", count_out_of_bounds(-FAR_BIN, bin_), "scored", baseline)


MAX_POINTS = 60
_BEFORE = timedelta(minutes=30)  # at least, and as long as the problem lasts
_AFTER = timedelta(minutes=15)
_MAX_DURATION = timedelta(days=7)


class ChartPoint(NamedTuple):
    """The value over a number of records from `start` on."""

    start: datetime
    value: float
    records: int


def chart_points(database: Database, problem: Problem, series: ChartSeries, base_s: int) -> list[ChartPoint]:
    """Load at most `MAX_POINTS` points in order of time, from windows of `base_s`."""
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


def _chart_interval(problem: Problem) -> tuple[datetime, datetime]:
    onset = problem.onset
    end = problem.resolved_at or problem.last_seen_at
    duration = min(max(end - onset, timedelta()), _MAX_DURATION)
    return onset - max(_BEFORE, duration), onset + duration + _AFTER
