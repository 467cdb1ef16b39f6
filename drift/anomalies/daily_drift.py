"""Compare the last complete day with the days before, and report differences as problems of kind `drift`.

Compared are shares of records above the usual 10th, 50th and 90th percentile, day by day: weekdays with weekdays,
Saturdays and Sundays with such. The variation between days decides, not the number of records. t = (share - mean) /
(s sqrt(1 + 1 / days)) with days - 1 degrees of freedom, the least p of three times three (Bonferroni); over all series
Benjamini and Hochberg. It is drift where that is significant and the share moved by a tenth of the records at least.

Where a reference is pinned, percentiles and mean are those of its days, however many they are; s is of the days before,
or of the reference's own days where there are too few of these."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ragtide.drift import cursors
from ragtide.drift.anomalies import queries
from ragtide.drift.anomalies.batch import Batch, BatchSnapshot
from ragtide.drift.anomalies.change_messages import Change, examples
from ragtide.drift.anomalies.change_points import change_severity
from ragtide.drift.anomalies.learner import matching_version
from ragtide.drift.anomalies.metrics import MonitoredMetric
from ragtide.drift.anomalies.queries import BIN_OFFSET, TickRange, WindowCells
from ragtide.drift.anomalies.references import BaselinePin, ReferenceOverrides
from ragtide.drift.anomalies.scanner import ScanResult
from ragtide.drift.detectors.arrays import Flags, Floats, Integers, level_values
from ragtide.drift.detectors.outlier_hours import MAX_OUTLIERS
from ragtide.drift.detectors.season import SATURDAY, SEASONAL_DAYS, weekday_of
from ragtide.drift.leadership import Term
from ragtide.drift.problems.kinds import Kind
from ragtide.drift.problems.model import EventRow
from ragtide.drift.problems.report import Clear, Details, Detection, ProblemKey, build_details, open_detections, report
from ragtide.drift.rules.model import Series
from ragtide.drift.settings import DriftSettings, RuleSettings, WindowSettings
from ragtide.drift.stats import calendar
from ragtide.drift.stats.means import benjamini_hochberg
from ragtide.drift.text import number, percent
from ragtide.drift.windows.segments import SegmentValues
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE

ALPHA = 0.05
MIN_EFFECT = 0.1  # of the records
_QUANTILES = np.array([0.1, 0.5, 0.9])
_MIN_DAYS = 4  # of its kind: the weekends of two weeks
_MIN_RECORDS = 100  # of a day
_MIN_SPREAD = 1e-3  # of a share: days that are all alike are not told apart by a rounding
_MIN_EXCLUDED_S = MIN_EFFECT * calendar.DAY_S  # of a day: a shorter one moves no share of it by as much as is told
_MAX_EXCLUDED = 1 - MAX_OUTLIERS  # of the days: then it is how the series is
_NEARLY_ALL = 0.9  # of a pinned time: in whole windows of a size


class DriftResult(NamedTuple):
    """A series whose last day is unlike those of its kind before, or what was pinned: `share` of the records above the
    bin `level`, `usual` before.

    `p_adjusted` is over all series of the run.
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
    p_adjusted: float


@dataclass(frozen=True, slots=True)
class DriftResults:
    """Series whose last day is unlike the others, and those whose day is like them. Of all others nobody can tell."""

    drifted: tuple[DriftResult, ...]
    stable: frozenset[Series]


class _DayCounts(NamedTuple):
    """The starts of days, and how many records of each [D, B] lie in some bins."""

    at: Integers
    counts: Floats

    def select(self, kept: Flags) -> "_DayCounts":
        return _DayCounts(self.at[kept], self.counts[kept])

    def same_kind(self, day: int) -> "_DayCounts":
        """Those of the same kind."""
        return self.select(_is_weekend(self.at) == _is_weekend(np.array([day])))

    def above(self, levels: Integers) -> Floats:
        """Of each day, the share of its records above these of the bins."""
        shares: Floats = 1 - self.counts.cumsum(axis=1)[:, levels] / self.counts.sum(axis=1)[:, None]
        return shares


@dataclass(frozen=True, slots=True)
class DailyDriftTest:
    """Compares days, made of the largest windows that there are. `left_out` as in `Fitter`."""

    database: Database
    excluded_intervals: Mapping[Series, Sequence[tuple[int, int]]]
    overrides: ReferenceOverrides
    windows: WindowSettings
    settings: DriftSettings

    def compare(self, snapshots: Sequence[BatchSnapshot], day: int) -> DriftResults:
        """How the day that began then, seconds since 1970, was."""
        found = [
            one
            for some in snapshots
            if some.batch.key.kind != "category"
            for one in self._compare_batch(some.batch, day)
        ]
        corrected = benjamini_hochberg([one.p for one in found])
        judged = [one._replace(p_adjusted=p) for one, p in zip(found, corrected, strict=True)]
        unlike = tuple(one for one in judged if self._is_drifted(one))
        return DriftResults(unlike, frozenset(one.series for one in judged) - {one.series for one in unlike})

    def _is_drifted(self, one: DriftResult) -> bool:
        least = MIN_EFFECT * self.settings.of(one.series.app).margin
        return one.p_adjusted <= ALPHA and abs(one.share - one.usual) >= least

    def _compare_batch(self, batch: Batch, day: int) -> Iterator[DriftResult]:
        """Each series that can be compared."""
        first = day - self.settings.history_days * calendar.DAY_S
        live = self._daily_cells(
            batch, TickRange(self.windows.all_sizes_s[-1], calendar.DAY_S, first, day + calendar.DAY_S)
        )
        pinned = self._pinned_cells(batch)
        for at, series in enumerate(batch.series):
            id_ = int(batch.rows.ids[at])
            bad = [(one.since, one.until or day) for one in batch.alarm_intervals if one.series == id_]
            bad += self.excluded_intervals.get(series, ())
            pin, cells = pinned.get(at, (None, live[at][:0]))
            seasonal = pin is not None and _is_seasonal(pin)
            found = _compare_series(series, live[at], day, cells, seasonal, (bad, int(batch.rows.basis[at])))
            if found is not None:
                yield found

    def _pinned_cells(self, batch: Batch) -> dict[int, tuple[BaselinePin, WindowCells]]:
        """Of the series for which a pin holds, by their place, what it has of them."""
        found: dict[int, tuple[BaselinePin, WindowCells]] = {}
        for pin in {pin for series in batch.series if (pin := self.overrides.pin_of(series)) is not None}:
            cells = self._daily_cells(batch, self._tick_range(pin))
            places = [at for at, series in enumerate(batch.series) if self.overrides.pin_of(series) == pin]
            found |= {at: (pin, cells[at]) for at in places}
        return found

    def _tick_range(self, pin: BaselinePin) -> TickRange:
        """In the largest windows that make nearly all of the pinned time: they are kept for longest."""
        since, until = pin.since.timestamp(), pin.until.timestamp()
        for size_s in reversed(self.windows.all_sizes_s):
            first, end = calendar.ceil(int(since), size_s), calendar.floor(until, size_s)
            if end - first >= _NEARLY_ALL * (until - since):
                break
        return TickRange(size_s, calendar.DAY_S, first, end, pin.run_id)

    def _daily_cells(self, batch: Batch, span: TickRange) -> list[WindowCells]:
        """Histograms by day of each of the batch's series, of their own fingerprints."""
        cells, place = matching_version(
            queries.daily_bins(self.database, batch.series, batch.rows.ids, span), batch.rows
        )
        order = np.argsort(place, kind="stable")
        borders = np.searchsorted(place[order], np.arange(len(batch.series) + 1))
        return [cells[order[first:last]] for first, last in pairwise(borders)]


def _is_seasonal(pin: BaselinePin) -> bool:
    """Whether what is pinned has weekdays and weekends as they come."""
    return pin.run_id == LIVE and (pin.until - pin.since).days >= SEASONAL_DAYS


def _is_weekend(days: Integers) -> Flags:
    return weekday_of(days // calendar.DAY_S) >= SATURDAY


def _compare_series(
    series: Series,
    live: WindowCells,
    day: int,
    pinned: WindowCells,
    seasonal: bool,
    trouble: tuple[Sequence[tuple[int, int]], int],
) -> DriftResult | None:
    """`pinned` may be empty; `trouble`: when there was some, and since when history counts."""
    bins = np.unique(np.concatenate([live["label"], pinned["label"]]).astype(np.int64))
    days = _day_counts(live, bins)
    today, before = days.select(days.at == day), days.select(days.at < day).same_kind(day)
    before = before.select(_included(before.at, *trouble))
    reference = _day_counts(pinned, bins).same_kind(day) if seasonal else _day_counts(pinned, bins)
    usual = reference if len(reference.at) else before
    varied = before if len(before.at) >= _MIN_DAYS else reference
    if not len(today.at) or len(varied.at) < _MIN_DAYS:
        return None
    in_all = usual.counts.sum(axis=0).cumsum()
    levels = np.searchsorted(in_all, _QUANTILES * in_all[-1])
    (share,), expected = today.above(levels), usual.above(levels)
    p = _p_values(share, expected, varied.above(levels))
    worst = int(p.argmin())
    return DriftResult(
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
        p_adjusted=math.nan,
    )


def _day_counts(cells: WindowCells, bins: Integers) -> _DayCounts:
    """Those with enough records."""
    days, at = np.unique(cells["at"].astype(np.int64), return_inverse=True)
    counts = np.zeros((len(days), len(bins)))
    np.add.at(counts, (at, np.searchsorted(bins, cells["label"].astype(np.int64))), cells["n"])
    return _DayCounts(days, counts).select(counts.sum(axis=1) >= _MIN_RECORDS)


def _included(days: Integers, bad: Sequence[tuple[int, int]], since: int) -> Flags:
    """Neither before a change that was accepted nor in trouble for as long as matters.

    Trouble on nearly all days since then is how the series is: nobody could tell of it otherwise.
    """
    ours = days >= since
    excluded_s, told = np.zeros(len(days)), 0
    for begin, end in sorted(one for one in bad if one[0] > since):  # what was accepted is an example again
        begin, told = max(begin, told), max(end, told)  # several may tell of the same hours
        excluded_s += np.maximum(np.minimum(days + calendar.DAY_S, end) - np.maximum(days, begin), 0)
    excluded = ours & (excluded_s > _MIN_EXCLUDED_S)
    stands = excluded.sum() > _MAX_EXCLUDED * ours.sum()
    return ours if stands else ours & ~excluded


def _p_values(share: Floats, expected: Floats, varied: Floats) -> Floats:
    """Two-sided, of a day's shares [levels] among `expected` [days, levels], if days differ as in `varied`."""
    from scipy.special import stdtr

    spread = np.maximum(varied.std(axis=0, ddof=1), _MIN_SPREAD)
    t = (share - expected.mean(axis=0)) / (spread * math.sqrt(1 + 1 / len(expected)))
    found: Floats = 2 * stdtr(len(varied) - 1, -np.abs(t))
    return found


KIND: Kind = "drift"
_CURSOR = "drift_daily"
_RULE = "daily"


@dataclass(frozen=True, slots=True)
class DailyDriftReporter:
    """Tells for one leader's term. `lateness_s`: until a day's windows change no more (to speak of)."""

    database: Database
    test: DailyDriftTest
    rules: RuleSettings
    monitored: Mapping[str, MonitoredMetric]
    segments: SegmentValues
    term: Term
    lateness_s: int

    def report(self, scan: ScanResult, now: datetime) -> list[EventRow]:
        """The events that follow from the last whole day, once a day; stored when this returns."""
        day = self.last_complete_day(scan)
        if day <= cursors.load(self.database, _CURSOR):
            return []
        found = self.test.compare(scan.snapshots, day)
        drifted = self.drifted_by_key(found)
        clears = [
            Clear(key, KIND, calendar.utc(day + calendar.DAY_S))
            for key in open_detections(self.database, KIND)
            if key not in drifted and self.is_clear(key, scan, found)
        ]
        detections = [self.detection(key, one, day) for key, one in drifted.items()]
        events = report(self.database, [*detections, *clears], self.rules, self.term, now)
        cursors.save(self.database, _CURSOR, day)
        return events

    def last_complete_day(self, scan: ScanResult) -> int:
        """The start of the last whole day of everything that was looked at; before 1970 where nothing was."""
        closed = min((one.batch.processed_until for one in scan.snapshots), default=0) - self.lateness_s
        return calendar.floor(closed, calendar.DAY_S) - calendar.DAY_S

    def drifted_by_key(self, found: DriftResults) -> dict[ProblemKey, DriftResult]:
        """Where a day is told that is unlike the others: what users ask is watched window by window, labels and all."""
        return {
            ProblemKey(aspect="level", **one.series._asdict()): one
            for one in found.drifted
            if self.monitored[one.series.metric].aspect == "level"
        }

    def detection(self, key: ProblemKey, one: DriftResult, day: int) -> Detection:
        """What is said of that day."""
        details = self._details(key, self.monitored[one.series.metric], one, day)
        return Detection(key, details, calendar.utc(day), calendar.utc(day + calendar.DAY_S))

    def is_clear(self, key: ProblemKey, scan: ScanResult, found: DriftResults) -> bool:
        """Whether its day is like the others again, or nobody watches it any more; not where nobody can tell."""
        series = Series(*(getattr(key, name) for name in Series._fields))
        if series in found.stable or key.metric not in self.monitored:
            return True
        lane = self.monitored[key.metric].lane
        mine = [one for one in scan.snapshots if one.batch.key.lane == lane]
        return bool(mine) and all(series not in one.batch.series for one in mine)

    def _details(self, key: ProblemKey, metric: MonitoredMetric, one: DriftResult, day: int) -> Details:
        found, span = _change(metric, one), (calendar.utc(day), calendar.utc(day + calendar.DAY_S))
        return build_details(
            KIND,
            key,
            metric.ref,
            _describe(metric, one, found, span[0]),
            {
                "level": found.line,
                "value": one.share,
                "baseline": one.usual,
                "usual_low": one.low,
                "usual_high": one.high,
                "days": one.days,
                "effect_size": one.share - one.usual,
                "p_value": one.p,
                "p_adjusted": one.p_adjusted,
                "sample_size": one.records,
            },
            self.rules,
            severity=change_severity(self.database, self.rules, one.series, one.records, found, span),
            examples=examples(self.database, metric, one.series, found, self.segments, *span),
            rule_id=_RULE,
        )


def _change(watch: MonitoredMetric, one: DriftResult) -> Change:
    assert watch.ref is not None
    metric, scale, up = watch.ref.metric, watch.ref.scale, one.share > one.usual
    edge = min(one.level + (metric.better == "higher"), 100)
    return Change(
        what=f"the distribution of {watch.name}",
        baseline=one.usual,
        value=one.share,
        effect_size=one.share - one.usual,
        total_variation=abs(one.share - one.usual),
        margin=0.0,
        channel="distribution",
        examples_order="high" if up else "low",
        line=scale.edge(edge) if scale.bounded else float(level_values(np.array(one.level))),
        is_regression=(metric.better == "lower") == up,
    )


def _describe(metric: MonitoredMetric, one: DriftResult, found: Change, day: datetime) -> str:
    assert metric.ref is not None
    unit = metric.ref.metric.unit or ""
    kind = "weekend days" if day.weekday() >= SATURDAY else "weekdays"
    before = "what was pinned" if one.pinned else f"that of the {one.days} {kind} before"
    usual = f"{percent(one.usual)} were in what was pinned"
    if not one.pinned:
        usual = f"{percent(one.usual)} are usual ({percent(one.low)} to {percent(one.high)})"
    return (
        f"{one.series.label}: {found.what} on {day:%Y-%m-%d} was unlike {before}: "
        f"{percent(one.share)} of the traces were above {number(found.line, unit)}, {usual}; on {one.records:,} traces."
    )
