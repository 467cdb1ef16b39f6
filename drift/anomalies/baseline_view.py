"""A baseline for people's eyes: what is usual by hour of the day, how far windows stray, and how the last day was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ragtide.drift.anomalies import dispatch, queries, state_store
from ragtide.drift.anomalies.batch import Batch, RolloutPair
from ragtide.drift.anomalies.learner import FULL_WEEK_S, matching_version
from ragtide.drift.anomalies.metrics import MonitoredMetric, SignalKind
from ragtide.drift.anomalies.queries import TickRange
from ragtide.drift.anomalies.references import FROM_HISTORY
from ragtide.drift.anomalies.rollouts import COMPARED_S
from ragtide.drift.detectors import proportions, scores, serialization
from ragtide.drift.detectors.arrays import Categories, Floats, HeavyTailed, Rates, Scores, level_values
from ragtide.drift.detectors.baseline import Baseline, WarmUp
from ragtide.drift.detectors.season import HOURS, WEEKDAYS
from ragtide.drift.detectors.time_of_day import TICK_S, TICKS_PER_DAY, RecurringTicks
from ragtide.drift.rules.model import Series
from ragtide.drift.settings import DriftSettings, WindowSettings
from ragtide.drift.stats import calendar
from ragtide.drift.text import number
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database

_OTHER_RELEASE = "what is stored is of another release; the next run of the job drift learns the baseline again"
_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_GROUPS = ("Mon-Fri", "Sat-Sun", *_NAMES)  # of days that moments are of


@dataclass(frozen=True, slots=True)
class DayProfile:
    """Days of the week, one after the other, that are alike ("Mon-Fri"), and what is usual on them by hour in UTC."""

    days: str
    level: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TimeSlot:
    """Minutes of some days ("Mon-Fri", "Sun") that are unlike the rest of their hour, and what is usual in them.

    `since` and `until` are times of the day in UTC, such as 02:15.
    """

    days: str
    since: str
    until: str
    level: float


@dataclass(frozen=True, slots=True)
class ChannelView:
    """One figure of a series: what is usual in the week from Monday on, and how it was in the last day by hour in UTC.

    What is usual has `time_slots` of its own. `spread`: standard deviation of a usual tick's figure around it. None: no
    records in that hour.
    """

    name: str
    usual: tuple[DayProfile, ...]
    spread: float
    last_day: tuple[float | None, ...]
    moments: tuple[TimeSlot, ...] = ()


@dataclass(frozen=True, slots=True)
class BaselineView:
    """The baseline of one series, and another one where it is compared with another model's. `describe_source`:
    history, what was pinned or accepted, or that model. `warming`: why it is not watched yet, and when it will be
    looked whether it can (None: that depends on how many records come). `not_judged`: which days of a watched one are
    not. `learned_at` None: what is stored is of another release, and nothing of it can be told.
    """

    series: Series
    rests_on: str
    learned_at: datetime | None
    warming: str
    warm_at: datetime | None
    not_judged: str
    records: float | None  # of a usual tick
    in_alarm: bool
    channels: tuple[ChannelView, ...]


def baseline_views(
    database: Database,
    monitored: Mapping[str, MonitoredMetric],
    windows: WindowSettings,
    settings: DriftSettings,
    wanted: Mapping[str, str],
) -> list[BaselineView]:
    """Baselines of the series whose fields are those `wanted`; raises `ConfigError` where there is none."""
    matching = [
        (batch, place)
        for batch in state_store.load_batches(database, monitored)
        for place, series in enumerate(batch.series)
        if all(getattr(series, name) == value for name, value in wanted.items())
    ]
    if not matching:
        asked = ", ".join(f"{name} {value!r}" for name, value in wanted.items() if value)
        raise ConfigError(
            f"no series of {asked} is watched: `ragtide jobs` learns baselines of primary metrics, latency, cost and "
            "inputs once a day's windows are closed; `ragtide baseline learn` does it now"
        )
    return [_view(database, monitored, windows, settings, batch, place) for batch, place in matching]


def _view(
    database: Database,
    monitored: Mapping[str, MonitoredMetric],
    windows: WindowSettings,
    settings: DriftSettings,
    batch: Batch,
    place: int,
) -> BaselineView:
    series, metric = batch.series[place], monitored[batch.series[place].metric]
    in_alarm = bool(batch.rows.state.alarms.on[place])
    versions = state_store.load_baselines(database, batch.key, batch.processed_until)
    if not versions:
        source = describe_source(int(batch.rows.basis[place]), is_used=True)
        return BaselineView(series, source, None, _OTHER_RELEASE, None, "", None, in_alarm, ())
    held = versions[-1]
    one = serialization.take(batch.rows, np.array([place]))
    used = int(held.baselines.baseline_sources_for(one)[0])
    baseline = serialization.take(held.baselines.baselines_for(batch.rows, batch.key.kind), np.array([place]))
    tick_s = calendar.tick_size(windows.base_s)
    kind, labels = batch.key.kind, batch.rows.labels[[place]]
    levels = labels if kind == "category" else baseline.bins

    def hours(days: int) -> dispatch.Windows:
        span = TickRange(windows.base_s, tick_s, batch.processed_until - days * calendar.DAY_S, batch.processed_until)
        found = queries.window_cells(database, kind, monitored, [series], one.ids, levels, span)
        found, places = matching_version(found, one)
        scale = dispatch.Scale(np.array([metric.low]), np.array([metric.span]))
        return dispatch.to_windows(kind, found, places, 1, span.ticks, labels, scale)

    last, before = hours(1), batch.rollout_of(int(one.ids[0]))
    warming, warm_at = WarmUp(int(baseline.warming[0])).reason, None
    basis = (
        _describe_rollout_source(before) if before else describe_source(int(one.basis[0]), is_used=used == one.basis[0])
    )
    accepted = (
        _AcceptedChange.of(hours(settings.history_days), int(one.basis[0])) if one.basis[0] > FROM_HISTORY else None
    )
    if accepted is not None and accepted.uses_old_hours(held.effective_from):
        basis += "; its hours and its noise are those of the days before"
        if warming:
            warming = f"{accepted.since} windows with records since the accepted change are too few to know its level"
            warm_at = calendar.utc(calendar.ceil(batch.processed_until + 1, calendar.HOUR_S))
    elif warming == WarmUp.LESS_THAN_A_DAY.reason:
        warm_at = _ready_at(batch, hours(settings.history_days), windows)
    return BaselineView(
        series=series,
        rests_on=basis,
        learned_at=calendar.utc(before.since if before else held.effective_from),
        warming=warming,
        warm_at=warm_at,
        not_judged="" if warming else baseline.days_not_judged()[0],
        records=float(baseline.records[0].max()),
        in_alarm=in_alarm,
        channels=tuple(
            channel_views(
                _channel_names(metric, batch.labels[place], baseline),
                baseline,
                last,
                low=metric.low,
                span=metric.span,
                kind=kind,
            )
        ),
    )


class _AcceptedChange(NamedTuple):
    """An accepted change: when, how long there were records before it, and how many windows have some since."""

    at: int
    before_s: int
    since: int

    @classmethod
    def of(cls, some: dispatch.Windows, at: int) -> "_AcceptedChange":
        starts = some.start[dispatch.has_records(some)[0]]
        return cls(at, at - int(starts.min(initial=at)), int((starts >= at).sum()))

    def uses_old_hours(self, holds_from: int) -> bool:
        """Whether a baseline that holds from then on is that of before at another level."""
        return self.before_s >= calendar.DAY_S and holds_from - self.at < FULL_WEEK_S


def describe_source(basis: int, *, is_used: bool) -> str:
    """In words; `is_used`: what was pinned is enough to judge by."""
    if basis < FROM_HISTORY:
        return "what was pinned" if is_used else "history, since what was pinned has too little of it"
    return f"history since {calendar.utc(basis):%Y-%m-%d %H:%M} UTC, which was accepted" if basis else "history"


def _describe_rollout_source(before: RolloutPair) -> str:
    until = calendar.utc(before.since + COMPARED_S)
    return f"what model {before.model or 'without a name'} did, with which it is compared until {until:%Y-%m-%d}"


def _ready_at(batch: Batch, some: dispatch.Windows, windows: WindowSettings) -> datetime | None:
    """The first time that baselines are learned a day after the first record."""
    n, _ = _channel_sums(some)
    seen = np.flatnonzero(n)
    if not len(seen):
        return None
    earliest = int(some.start[seen[0]]) + calendar.DAY_S + calendar.checkpoint_interval(windows.allowed_lateness_s)
    return calendar.utc(
        calendar.next_fit(batch.key.number, max(earliest, batch.processed_until), calendar.tick_size(windows.base_s))
    )


def channel_views(
    names: Sequence[str],
    baseline: Baseline,
    last: dispatch.Windows,
    *,
    low: float = 0.0,
    span: float = 1.0,
    kind: SignalKind = "category",
) -> list[ChannelView]:
    """The first channels of one series, by their names; `low` and `span` are those of a score's range."""
    n, sums = _channel_sums(last)
    hour = last.start // calendar.HOUR_S % HOURS
    records = np.bincount(hour, n, HOURS)
    found = []
    for channel, name in enumerate(names):
        level = low + span * baseline.level[0, channel]
        a, b = baseline.a[0, channel], baseline.b[0, channel]
        usual = float(baseline.level[0, channel].mean())
        unit = span if kind == "score" else np.sqrt(usual * (1 - usual))
        total = np.bincount(hour, sums[channel], HOURS)
        day = [
            float(low + span * of_hour / seen) if seen else None for of_hour, seen in zip(total, records, strict=True)
        ]
        spread = float(unit * np.sqrt(a / max(baseline.records[0, channel], 1.0) + b))
        own_times = time_slots(baseline.recurring, channel, low, span)
        found.append(ChannelView(name, day_groups(level), spread, tuple(day), own_times))
    return found


def day_groups(level: Floats) -> tuple[DayProfile, ...]:
    """The days of the level [SLOTS] of a week; those with the same level are together."""
    of_day = level.reshape(WEEKDAYS, HOURS)
    others = np.flatnonzero((np.diff(of_day, axis=0) != 0).any(axis=1)) + 1
    return tuple(
        DayProfile("-".join(dict.fromkeys((_NAMES[first], _NAMES[last - 1]))), tuple(of_day[first].tolist()))
        for first, last in pairwise([0, *others.tolist(), WEEKDAYS])
    )


def time_slots(recurring: RecurringTicks, channel: int, low: float, span: float) -> tuple[TimeSlot, ...]:
    """Those of the first series' channel, by the days that they are of; one after the other they are one."""
    present = recurring.moment[0, channel] >= 0
    at = recurring.moment[0, channel][present].astype(np.int64)
    level = low + span * recurring.level[0, channel][present].astype(np.float64)
    begins = np.flatnonzero((np.diff(at, prepend=-2) != 1) | (at % TICKS_PER_DAY == 0)).tolist()
    return tuple(
        TimeSlot(
            days=_GROUPS[at[first] // TICKS_PER_DAY],
            since=_time_of_day(at[first] % TICKS_PER_DAY),
            until=_time_of_day(at[last - 1] % TICKS_PER_DAY + 1),
            level=float(level[first:last].mean()),
        )
        for first, last in pairwise([*begins, len(at)])
    )


def _time_of_day(moment: int) -> str:
    minutes = int(moment) * TICK_S // 60
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _channel_names(metric: MonitoredMetric, labels: Sequence[str], baseline: Baseline) -> Sequence[str]:
    match metric.kind:
        case "score":
            return scores.CHANNELS[:1]
        case "rate":
            return ("share that did not pass",)
        case "positive":
            unit = "" if metric.ref is None else metric.ref.metric.unit or ""
            values = level_values(baseline.bins[0])
            names = zip(proportions.HEAVY_TAILED_CHANNELS, values, strict=True)
            return [f"share above the usual {name}, {number(value, unit)}" for name, value in names]
        case _:
            return [f"share of {label}" for label in labels]


def _channel_sums(some: dispatch.Windows) -> tuple[Floats, Floats]:
    """Records [T] of one series, and the sums of its channels [C, T]."""
    match some:
        case Scores():
            return some.n[0], some.total
        case Rates():
            return some.n[0], some.hits
        case HeavyTailed():
            return some.n[0], some.above[0].T
        case Categories():
            return some.counts[0].sum(axis=1), some.counts[0].T
