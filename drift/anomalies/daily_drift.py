"""Compare the last complete day with the days before, and report differences as problems of kind `drift`.

Compared are shares of records above the usual 10th, 50th and 90th percentile, day by day: weekdays with weekdays,
Saturdays and Sundays with such. The variation between days decides, not the number of records. t = (share - mean) /
(s sqrt(1 + 1 / days)) with days - 1 degrees of freedom; the lowest p counts three times (Bonferroni), and over all
series Benjamini and Hochberg. It is drift if that is significant and the share moved by a tenth of the records.

If a reference is pinned, percentiles and mean are those of its days, however many they are; s is of the days before,
or of the reference's own days if there are too few of these."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np

from ragtide.drift import cursors
from ragtide.drift.anomalies import queries
from ragtide.drift.anomalies.batch import Batch, BatchSnapshot
from ragtide.drift.anomalies.change_messages import Change
from ragtide.drift.anomalies.exclusions import MAX_EXCLUDED
from ragtide.drift.anomalies.metrics import MonitoredMetric
from ragtide.drift.anomalies.queries import BIN_OFFSET, TickRange, WindowCells
from ragtide.drift.anomalies.references import BaselinePin, ReferenceOverrides, series_of
from ragtide.drift.anomalies.reporter import AnomalyReporter
from ragtide.drift.anomalies.scanner import ScanResult
from ragtide.drift.array_types import Flags, Floats, Integers
from ragtide.drift.detectors import SEASONAL_DAYS, level_values
from ragtide.drift.problems import Clear, Detection, EventRow, Kind, ProblemKey, open_detections, report_detections
from ragtide.drift.rules import Series
from ragtide.drift.settings import DriftSettings, WindowSettings
from ragtide.drift.stats import benjamini_hochberg, calendar
from ragtide.drift.text import number, percent
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE

ALPHA = 0.05
MIN_EFFECT = 0.1  # of the records
_QUANTILES = np.array([0.1, 0.5, 0.9])
_MIN_DAYS = 4  # of its kind: the weekends of two weeks
_MIN_RECORDS = 100  # of a day
_MIN_SPREAD = 1e-3  # of a share: else a rounding error would tell days apart that are all alike
_MIN_EXCLUDED_S = MIN_EFFECT * calendar.DAY_S  # of a day: a shorter anomaly moves no share by a reportable effect
_NEARLY_ALL = 0.9  # of a pinned reference, in whole windows of a size


class DriftResult(NamedTuple):
    """A series' day against the days of its kind before, or a pinned reference: `share` of records above bin `level`.

    `usual`, `low` and `high` are the mean, lowest and highest share before. `p_adjusted` is over all series of the run.
    """

    series: Series
    level: int
    share: float
    usual: float
    low: float
    high: float
    days: int
    pinned: bool
    records: int
    p: float
    p_adjusted: float = math.nan


@dataclass(frozen=True, slots=True)
class DriftResults:
    """Series whose day differs, and series whose day does not. All others could not be tested."""

    drifted: tuple[DriftResult, ...]
    stable: frozenset[Series]


class _DayCounts(NamedTuple):
    """Starts of days [D], and each day's records by bin [D, B]."""

    at: Integers
    counts: Floats

    @classmethod
    def of(cls, cells: WindowCells, bins: Integers) -> "_DayCounts":
        """Count the records of days with enough of them."""
        days, at = np.unique(cells["at"].astype(np.int64), return_inverse=True)
        counts = np.zeros((len(days), len(bins)))
        np.add.at(counts, (at, np.searchsorted(bins, cells["label"].astype(np.int64))), cells["n"])
        return cls(days, counts).select(counts.sum(axis=1) >= _MIN_RECORDS)

    def select(self, chosen: Flags) -> "_DayCounts":
        return _DayCounts(self.at[chosen], self.counts[chosen])

    def same_kind(self, day: int) -> "_DayCounts":
        """Select weekdays or weekend days, whichever that day is."""
        return self.select(calendar.is_weekend(self.at) == calendar.is_weekend(day))

    def above(self, levels: Integers) -> Floats:
        """Return each day's share of records above these bins."""
        shares: Floats = 1 - self.counts.cumsum(axis=1)[:, levels] / self.counts.sum(axis=1)[:, None]
        return shares


@dataclass(frozen=True, slots=True)
class DailyDriftTest:
    """Compares days, made of the largest windows. `excluded_intervals` as in `BaselineLearner`."""

    database: Database
    excluded_intervals: Mapping[Series, Sequence[tuple[int, int]]]
    overrides: ReferenceOverrides
    windows: WindowSettings
    settings: DriftSettings

    def compare(self, snapshots: Sequence[BatchSnapshot], day: int) -> DriftResults:
        """Compare the day that starts then (seconds since 1970), for all series of numbers."""
        batches = [one.batch for one in snapshots if one.batch.key.kind != "category"]
        found = [one for batch in batches for one in self._compare_batch(batch, day)]
        adjusted = benjamini_hochberg([one.p for one in found])
        tested = [one._replace(p_adjusted=p) for one, p in zip(found, adjusted, strict=True)]
        drifted = tuple(one for one in tested if self._is_drifted(one))
        return DriftResults(drifted, frozenset(one.series for one in tested) - {one.series for one in drifted})

    def _is_drifted(self, one: DriftResult) -> bool:
        min_effect = MIN_EFFECT * self.settings.of(one.series.app).margin
        return one.p_adjusted <= ALPHA and abs(one.share - one.usual) >= min_effect

    def _compare_batch(self, batch: Batch, day: int) -> Iterator[DriftResult]:
        first, end = day - self.settings.history_days * calendar.DAY_S, day + calendar.DAY_S
        live = self._daily_cells(batch, TickRange(self.windows.all_sizes_s[-1], calendar.DAY_S, first, end))
        pinned: dict[int, tuple[WindowCells, bool]] = {}
        for pin, places in self.overrides.places_by_pin(batch.series).items():
            cells = self._daily_cells(batch, self._tick_range(pin))
            pinned |= {place: (cells[place], _is_seasonal(pin)) for place in places.tolist()}
        for place, series in enumerate(batch.series):
            reference_cells, seasonal = pinned.get(place, (live[place][:0], False))
            bins = np.unique(np.concatenate([live[place]["label"], reference_cells["label"]]).astype(np.int64))
            days, reference = (_DayCounts.of(some, bins) for some in (live[place], reference_cells))
            before, id_ = days.select(days.at < day).same_kind(day), int(batch.rows.ids[place])
            anomalies = [(one.since, one.until or day) for one in batch.alarm_intervals if one.series == id_]
            anomalies += self.excluded_intervals.get(series, ())
            before = before.select(_included(before.at, anomalies, int(batch.rows.baseline_source[place])))
            reference = reference.same_kind(day) if seasonal else reference
            yield from _compare_day(series, bins, days.select(days.at == day), before, reference)

    def _tick_range(self, pin: BaselinePin) -> TickRange:
        """Return the largest windows that make up nearly all of the reference: they are stored for longest."""
        since, until = pin.since.timestamp(), pin.until.timestamp()
        for size_s in reversed(self.windows.all_sizes_s):
            first, end = calendar.ceil(int(since), size_s), calendar.floor(until, size_s)
            if end - first >= _NEARLY_ALL * (until - since):
                break
        return TickRange(size_s, calendar.DAY_S, first, end, pin.run_id)

    def _daily_cells(self, batch: Batch, ticks: TickRange) -> list[WindowCells]:
        """Read the daily histograms of each series of the batch, of its own evaluator version."""
        found = queries.histograms(self.database, batch.series, batch.rows.ids, ticks)
        cells, place = batch.rows.matching_version(found)
        order = np.argsort(place, kind="stable")
        return np.split(cells[order], np.searchsorted(place[order], np.arange(1, len(batch.series))))


def _is_seasonal(pin: BaselinePin) -> bool:
    """Whether a reference has weekdays and weekends as they come."""
    return pin.run_id == LIVE and (pin.until - pin.since).days >= SEASONAL_DAYS


def _compare_day(
    series: Series, bins: Integers, today: _DayCounts, before: _DayCounts, reference: _DayCounts
) -> Iterator[DriftResult]:
    """Compare today with the reference, or with the days before if that is empty; nothing if days are too few."""
    usual = reference if len(reference.at) else before
    varied = before if len(before.at) >= _MIN_DAYS else reference
    if not len(today.at) or len(varied.at) < _MIN_DAYS:
        return
    cumulative = usual.counts.sum(axis=0).cumsum()
    levels = np.searchsorted(cumulative, _QUANTILES * cumulative[-1])
    (share,), expected = today.above(levels), usual.above(levels)
    p = _p_values(share, expected, varied.above(levels))
    worst = int(p.argmin())
    yield DriftResult(
        series=series,
        level=int(bins[levels[worst]]) - BIN_OFFSET,
        share=float(share[worst]),
        usual=float(expected[:, worst].mean()),
        low=float(expected[:, worst].min()),
        high=float(expected[:, worst].max()),
        days=len(expected),
        pinned=usual is reference,
        records=round(float(today.counts.sum())),
        p=min(1.0, float(p[worst]) * len(_QUANTILES)),
    )


def _included(days: Integers, anomalies: Sequence[tuple[int, int]], since: int) -> Flags:
    """Flag the days since an accepted change without long anomalies.

    Anomalies on nearly all of these days are how the series is: it could never be tested otherwise.
    """
    history = days >= since
    excluded_s, counted = np.zeros(len(days)), 0
    for begin, end in sorted(one for one in anomalies if one[0] > since):  # an accepted one counts as normal
        begin, counted = max(begin, counted), max(end, counted)  # several may cover the same hours
        excluded_s += np.maximum(np.minimum(days + calendar.DAY_S, end) - np.maximum(days, begin), 0)
    excluded = history & (excluded_s > _MIN_EXCLUDED_S)
    return history if excluded.sum() > MAX_EXCLUDED * history.sum() else history & ~excluded


def _p_values(share: Floats, expected: Floats, varied: Floats) -> Floats:
    """Return two-sided p-values of shares [levels] among `expected` [days, levels], if days differ as in `varied`."""
    from scipy.special import stdtr

    spread = np.maximum(varied.std(axis=0, ddof=1), _MIN_SPREAD)
    t = (share - expected.mean(axis=0)) / (spread * math.sqrt(1 + 1 / len(expected)))
    found: Floats = 2 * stdtr(len(varied) - 1, -np.abs(t))
    return found


DAILY_DRIFT: Kind = "drift"
_CURSOR = "drift_daily"
_RULE = "daily"


@dataclass(frozen=True, slots=True)
class DailyDriftReporter(AnomalyReporter):
    """Reports days that differ as kind `drift`."""

    test: DailyDriftTest

    def report(self, scan: ScanResult, now: datetime) -> list[EventRow]:
        """Store and return the events that follow from the last complete day, once a day."""
        day = self.last_complete_day(scan)
        if day <= cursors.load(self.database, _CURSOR):
            return []
        found = self.test.compare(scan.snapshots, day)
        drifted = self.drifted_by_key(found)
        clears = [
            Clear(key, DAILY_DRIFT, calendar.utc(day + calendar.DAY_S))
            for key in open_detections(self.database, DAILY_DRIFT)
            if key not in drifted and self.is_clear(key, scan, found)
        ]
        detections = [self.detection(one, day) for one in drifted.values()]
        events = report_detections(self.database, [*detections, *clears], self.rules, self.term, now)
        cursors.save(self.database, _CURSOR, day)
        return events

    def last_complete_day(self, scan: ScanResult) -> int:
        """Return the start of the last day that all scanned series have completed; before 1970 without any."""
        lateness_s = calendar.checkpoint_interval(self.test.windows.allowed_lateness_s)
        closed = min((one.batch.processed_until for one in scan.snapshots), default=0) - lateness_s
        return calendar.floor(closed, calendar.DAY_S) - calendar.DAY_S

    def drifted_by_key(self, found: DriftResults) -> dict[ProblemKey, DriftResult]:
        """Select drifted series to report. Inputs are left to detectors, which test every window, labels too."""
        keys = ((self.key_of(one.series), one) for one in found.drifted)
        return {key: one for key, one in keys if key.aspect == "level"}

    def is_clear(self, key: ProblemKey, scan: ScanResult, found: DriftResults) -> bool:
        """Whether the series' day is stable again, or the series is no longer monitored; not if the test cannot say."""
        series = series_of(key)
        if series in found.stable or key.metric not in self.monitored:
            return True
        lane = self.monitored[key.metric].lane
        own = [one for one in scan.snapshots if one.batch.key.lane == lane]
        return bool(own) and all(series not in one.batch.series for one in own)

    def detection(self, one: DriftResult, day: int) -> Detection:
        """Build the detection of a day that differs."""
        metric, change = self.monitored[one.series.metric], _change(self.monitored[one.series.metric], one)
        interval = calendar.utc(day), calendar.utc(day + calendar.DAY_S)
        attributes = {
            "level": change.line,
            "usual_low": one.low,
            "usual_high": one.high,
            "days": one.days,
            "p_value": one.p,
            "p_adjusted": one.p_adjusted,
        }
        message = _describe(metric, one, change, interval[0])
        return self.build(DAILY_DRIFT, one.series, change, one.records, interval, message, attributes, _RULE)


def _change(metric: MonitoredMetric, one: DriftResult) -> Change:
    assert metric.ref is not None
    scale, up = metric.ref.scale, one.share > one.usual
    edge = min(one.level + (metric.better == "higher"), 100)
    return Change(
        what=f"the distribution of {metric.name}",
        baseline=one.usual,
        value=one.share,
        effect_size=one.share - one.usual,
        total_variation=abs(one.share - one.usual),
        channel="distribution",
        examples_order="high" if up else "low",
        line=scale.edge(edge) if scale.bounded else float(level_values(np.array(one.level))),
        is_regression=(metric.better == "lower") == up,
    )


def _describe(metric: MonitoredMetric, one: DriftResult, change: Change, day: datetime) -> str:
    if one.pinned:
        usual = f"{percent(one.usual)} in the pinned reference"
    else:
        kind = "weekend days" if calendar.is_weekend(int(day.timestamp())) else "weekdays"
        usual = f"{percent(one.usual)} ({percent(one.low)} to {percent(one.high)}) on the {one.days} {kind} before"
    return (
        f"{one.series.label}: {change.what} changed on {day:%Y-%m-%d}. {percent(one.share)} of {one.records:,} traces "
        f"were above {number(change.line, metric.unit)}, against {usual}."
    )
