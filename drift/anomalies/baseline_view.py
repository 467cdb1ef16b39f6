"""Show a baseline to operators: usual levels by hour of the day, the spread of windows, and the last day."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import numpy as np

from ragtide.drift.anomalies.batch import Batch
from ragtide.drift.anomalies.learner import FULL_WEEK_S, load_windows
from ragtide.drift.anomalies.metrics import MonitoredMetric
from ragtide.drift.anomalies.queries import TickRange
from ragtide.drift.anomalies.references import FROM_HISTORY
from ragtide.drift.anomalies.rollouts import COMPARED_S
from ragtide.drift.anomalies.state_store import ClickHouseStateStore
from ragtide.drift.array_types import Floats
from ragtide.drift.detectors import (
    HEAVY_TAILED_CHANNELS,
    SCORE_CHANNELS,
    TICK_S,
    TICKS_PER_DAY,
    Baseline,
    RecurringTicks,
    WarmUp,
    Windows,
    channel_sums,
    level_values,
    record_counts,
    serialization,
)
from ragtide.drift.rules import Series
from ragtide.drift.settings import DriftSettings, WindowSettings
from ragtide.drift.stats import HOURS, WEEKDAYS, calendar
from ragtide.drift.text import number
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database

_OTHER_RELEASE = "what is stored is of another release; the next run of the job drift learns the baseline again"
_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_GROUPS = ("Mon-Fri", "Sat-Sun", *_NAMES)  # the order of `RecurringTicks`


@dataclass(frozen=True, slots=True)
class DayProfile:
    """Days in a row with the same levels ("Mon-Fri"), and these levels by hour in UTC."""

    days: str
    level: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TimeSlot:
    """A time of day in UTC (02:15), on some days ("Mon-Fri", "Sun"), with a level unlike the rest of its hour."""

    days: str
    since: str
    until: str
    level: float


@dataclass(frozen=True, slots=True)
class ChannelView:
    """One figure of a series: usual levels of a week, their `moments`, and the last day by hour in UTC.

    `spread` is the standard deviation of a usual tick. An hour without records is None.
    """

    name: str
    usual: tuple[DayProfile, ...]
    spread: float
    last_day: tuple[float | None, ...]
    moments: tuple[TimeSlot, ...] = ()


@dataclass(frozen=True, slots=True)
class BaselineView:
    """The baseline of one series; a series in a rollout has two.

    `rests_on` is its source. `warming` says why it cannot alarm yet, and `warm_at` when that is next checked, if a time
    is known. `not_judged` names days that are not judged. `records` are those of a usual tick. `learned_at` is None if
    the stored baseline is of another release.
    """

    series: Series
    rests_on: str
    learned_at: datetime | None
    warming: str
    warm_at: datetime | None
    not_judged: str
    records: float | None
    in_alarm: bool
    channels: tuple[ChannelView, ...]


def baseline_views(
    database: Database,
    monitored: Mapping[str, MonitoredMetric],
    windows: WindowSettings,
    settings: DriftSettings,
    wanted: Mapping[str, str],
) -> list[BaselineView]:
    """Show the baselines of series with the `wanted` fields. Raises `ConfigError` if there is none."""
    store = ClickHouseStateStore(database)
    found = [
        _view(store, monitored, windows, settings, batch, place)
        for batch in store.load_batches(monitored)
        for place, series in enumerate(batch.series)
        if all(getattr(series, name) == value for name, value in wanted.items())
    ]
    if not found:
        fields = ", ".join(f"{name} {value!r}" for name, value in wanted.items() if value)
        raise ConfigError(
            f"no series of {fields} is monitored: `ragtide jobs` learns baselines of primary metrics, latency, cost "
            "and inputs after a day of windows; `ragtide baseline learn` learns them now"
        )
    return found


def _view(
    store: ClickHouseStateStore,
    monitored: Mapping[str, MonitoredMetric],
    windows: WindowSettings,
    settings: DriftSettings,
    batch: Batch,
    place: int,
) -> BaselineView:
    series, basis = batch.series[place], int(batch.rows.baseline_source[place])
    in_alarm = bool(batch.rows.state.alarms.on[place])
    versions = store.load_baselines(batch.key, batch.processed_until)
    if not versions:
        source = describe_source(basis, is_used=True)
        return BaselineView(series, source, None, _OTHER_RELEASE, None, "", None, in_alarm, ())
    effective_from, baselines = versions[-1]
    found = baselines.aligned_to(batch)
    baseline = serialization.take(found.baseline, np.array([place]))
    metric, tick_s = monitored[series.metric], calendar.tick_size(windows.base_s)

    def last_days(days: int) -> Windows:
        end = batch.processed_until
        ticks = TickRange(windows.base_s, tick_s, end - days * calendar.DAY_S, end)
        return load_windows(store.database, monitored, batch, np.array([place]), ticks, baseline.level_bins)

    rollout = batch.rollout_of(int(batch.rows.ids[place]))
    if rollout is None:
        source = describe_source(basis, is_used=int(found.baseline_source[place]) == basis)
    else:
        until = calendar.utc(rollout.since + COMPARED_S)
        source = f"model {rollout.model or 'without a name'}, compared with it until {until:%Y-%m-%d}"
    reason, ready_at = WarmUp(int(baseline.warming[0])), None
    warming = reason.reason
    if basis > FROM_HISTORY or reason == WarmUp.LESS_THAN_A_DAY:
        history = last_days(settings.history_days)
        starts = history.start[record_counts(history)[0] > 0]
        first = int(starts.min(initial=basis))
        if basis > FROM_HISTORY and first + calendar.DAY_S <= basis and effective_from < basis + FULL_WEEK_S:
            source += "; hours of the day and noise are those of the days before"
            if warming:
                since = int((starts >= basis).sum())
                warming = f"only {since} windows with records since the accepted change, too few for its level"
                ready_at = calendar.ceil(batch.processed_until + 1, calendar.HOUR_S)
        elif reason == WarmUp.LESS_THAN_A_DAY and len(starts):
            complete = int(starts[0]) + calendar.DAY_S + calendar.checkpoint_interval(windows.allowed_lateness_s)
            ready_at = calendar.next_fit(batch.key.number, max(complete, batch.processed_until), tick_s)
    return BaselineView(
        series=series,
        rests_on=source,
        learned_at=calendar.utc(effective_from if rollout is None else rollout.since),
        warming=warming,
        warm_at=None if ready_at is None else calendar.utc(ready_at),
        not_judged="" if warming else baseline.days_not_judged()[0],
        records=float(baseline.records[0].max()),
        in_alarm=in_alarm,
        channels=tuple(channel_views(_names(metric, batch.labels[place], baseline), baseline, last_days(1), metric)),
    )


def describe_source(basis: int, *, is_used: bool) -> str:
    """Describe the source of a baseline; not `is_used`: the pinned reference is too small."""
    if basis < FROM_HISTORY:
        return "the pinned reference" if is_used else "history, because the pinned reference has too few records of it"
    return f"history since the change accepted at {calendar.utc(basis):%Y-%m-%d %H:%M} UTC" if basis else "history"


def channel_views(
    names: Sequence[str], baseline: Baseline, last_day: Windows, metric: MonitoredMetric | None = None
) -> list[ChannelView]:
    """Show the first channels of one series, by their names; shares unless `metric` is a score."""
    low, width = (0.0, 1.0) if metric is None else (metric.low, metric.width)
    hour = last_day.start // calendar.HOUR_S % HOURS
    records = np.bincount(hour, record_counts(last_day)[0], HOURS)
    found = []
    for channel, (name, sums) in enumerate(zip(names, channel_sums(last_day)[0], strict=False)):
        usual = float(baseline.level[0, channel].mean())
        unit = width if metric is not None and metric.kind == "score" else np.sqrt(usual * (1 - usual))
        variance = (
            baseline.noise_per_record[0, channel] / max(baseline.records[0, channel], 1.0)
            + baseline.noise_floor[0, channel]
        )
        by_hour = zip(np.bincount(hour, sums, HOURS), records, strict=True)
        found.append(
            ChannelView(
                name,
                day_groups(low + width * baseline.level[0, channel]),
                float(unit * np.sqrt(variance)),
                tuple(float(low + width * total / n) if n else None for total, n in by_hour),
                time_slots(baseline.recurring, channel, low, width),
            )
        )
    return found


def day_groups(level: Floats) -> tuple[DayProfile, ...]:
    """Group days in a row with the same levels, of the levels [SLOTS] of a week."""
    of_day = level.reshape(WEEKDAYS, HOURS)
    others = np.flatnonzero((np.diff(of_day, axis=0) != 0).any(axis=1)) + 1
    return tuple(
        DayProfile("-".join(dict.fromkeys((_NAMES[first], _NAMES[last - 1]))), tuple(of_day[first].tolist()))
        for first, last in pairwise([0, *others.tolist(), WEEKDAYS])
    )


def time_slots(recurring: RecurringTicks, channel: int, low: float, width: float) -> tuple[TimeSlot, ...]:
    """Return the times of the first series' channel with a level of their own; adjacent ones are joined."""
    present = recurring.moment[0, channel] >= 0
    at = recurring.moment[0, channel][present].astype(np.int64)
    level = low + width * recurring.level[0, channel][present].astype(np.float64)
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


def _names(metric: MonitoredMetric, labels: Sequence[str], baseline: Baseline) -> Sequence[str]:
    """Name the channels of a series."""
    match metric.kind:
        case "score":
            return SCORE_CHANNELS[:1]
        case "rate":
            return ("share that failed",)
        case "positive":
            names = zip(HEAVY_TAILED_CHANNELS, level_values(baseline.level_bins[0]), strict=True)
            return [f"share above the usual {name}, {number(value, metric.unit)}" for name, value in names]
        case _:
            return [f"share of {label}" for label in labels]
