"""A baseline for people's eyes: what is usual by hour of the day, how far windows stray, and how the last day was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from drift.detectors import positives, scores, stored
from drift.detectors.baseline import Baseline, Warming
from drift.detectors.recurring import A_DAY, MOMENT_S, Recurring
from drift.detectors.season import HOURS, WEEKDAYS
from drift.detectors.series import Categories, Floats, Positives, Rates, Scores, level_values
from drift.phrases import number
from drift.rules.series import Series
from drift.settings import DriftSettings, WindowSettings
from drift.watching import detecting, grid, kept, reading
from drift.watching.batch import Batch, Succession
from drift.watching.fitting import WHOLE_S, own
from drift.watching.kinds import Kind, Watch
from drift.watching.reading import Span
from drift.watching.reference import HISTORY
from drift.watching.successors import COMPARED_S
from evaluators.errors import ConfigError
from sinks.clickhouse.database import Database

_OF_ANOTHER_RELEASE = "what is stored is of another release; the next run of the job drift learns the baseline again"
_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_GROUPS = ("Mon-Fri", "Sat-Sun", *_NAMES)  # of days that moments are of


@dataclass(frozen=True, slots=True)
class Days:
    """Days of the week, one after the other, that are alike ("Mon-Fri"), and what is usual on them by hour in UTC."""

    days: str
    level: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """Minutes of some days ("Mon-Fri", "Sun") that are unlike the rest of their hour, and what is usual in them.

    `since` and `until` are times of the day in UTC, such as 02:15.
    """

    days: str
    since: str
    until: str
    level: float


@dataclass(frozen=True, slots=True)
class Channel:
    """One figure of a series: what is usual in the week from Monday on, and how it was in the last day by hour in UTC.

    What is usual has `moments` of its own. `spread`: standard deviation of a usual tick's figure around it. None: no
    records in that hour.
    """

    name: str
    usual: tuple[Days, ...]
    spread: float
    last_day: tuple[float | None, ...]
    moments: tuple[Moment, ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """The baseline of one series, and another one where it is compared with another model's. `rests_on`: history, what
    was pinned or accepted, or that model. `warming`: why it is not watched yet, and when it will be looked whether it
    can (None: that depends on how many records come). `not_judged`: which days of a watched one are not. `learned_at`
    None: what is stored is of another release, and nothing of it can be told.
    """

    series: Series
    rests_on: str
    learned_at: datetime | None
    warming: str
    warm_at: datetime | None
    not_judged: str
    records: float | None  # of a usual tick
    in_alarm: bool
    channels: tuple[Channel, ...]


def shown(
    database: Database,
    watched: Mapping[str, Watch],
    windows: WindowSettings,
    settings: DriftSettings,
    wanted: Mapping[str, str],
) -> list[Shown]:
    """Baselines of the series whose fields are those `wanted`; raises `ConfigError` where there is none."""
    fits = [
        (batch, place)
        for batch in kept.batches(database, watched)
        for place, series in enumerate(batch.series)
        if all(getattr(series, name) == value for name, value in wanted.items())
    ]
    if not fits:
        asked = ", ".join(f"{name} {value!r}" for name, value in wanted.items() if value)
        raise ConfigError(
            f"no series of {asked} is watched: `ragwatch jobs` learns baselines of primary metrics, latency, cost and "
            "inputs once a day's windows are closed; `ragwatch baseline learn` does it now"
        )
    return [_shown(database, watched, windows, settings, batch, place) for batch, place in fits]


def _shown(
    database: Database,
    watched: Mapping[str, Watch],
    windows: WindowSettings,
    settings: DriftSettings,
    batch: Batch,
    place: int,
) -> Shown:
    series, watch = batch.series[place], watched[batch.series[place].metric]
    in_alarm = bool(batch.rows.state.alarms.on[place])
    readable = kept.baselines(database, batch.key, batch.until)
    if not readable:
        told = rests_on(int(batch.rows.basis[place]), is_used=True)
        return Shown(series, told, None, _OF_ANOTHER_RELEASE, None, "", None, in_alarm, ())
    held = readable[-1]
    one = stored.take(batch.rows, np.array([place]))
    used = int(held.fitted.basis_of(one)[0])
    baseline = stored.take(held.fitted.matched(batch.rows, batch.key.kind), np.array([place]))
    tick_s = grid.tick_s(windows.base_s)
    kind, labels = batch.key.kind, batch.rows.labels[[place]]
    levels = labels if kind == "category" else baseline.bins

    def hours(days: int) -> detecting.Windows:
        span = Span(windows.base_s, tick_s, batch.until - days * grid.DAY_S, batch.until)
        found = reading.cells(database, kind, watched, [series], one.ids, levels, span)
        found, places = own(found, one)
        scale = detecting.Scale(np.array([watch.low]), np.array([watch.span]))
        return detecting.windows(kind, found, places, 1, span.ticks, labels, scale)

    last, before = hours(1), batch.succession(int(one.ids[0]))
    warming, warm_at = Warming(int(baseline.warming[0])).why, None
    basis = _of_another(before) if before else rests_on(int(one.basis[0]), is_used=used == one.basis[0])
    accepted = _Accepted.of(hours(settings.history_days), int(one.basis[0])) if one.basis[0] > HISTORY else None
    if accepted is not None and accepted.leans(held.holds_from):
        basis += "; its hours and its noise are those of the days before"
        if warming:
            warming = f"{accepted.since} windows with records since the accepted change are too few to know its level"
            warm_at = grid.time(grid.ceiling(batch.until + 1, grid.HOUR_S))
    elif warming == Warming.LESS_THAN_A_DAY.why:
        warm_at = _warm_at(batch, hours(settings.history_days), windows)
    return Shown(
        series=series,
        rests_on=basis,
        learned_at=grid.time(before.since if before else held.holds_from),
        warming=warming,
        warm_at=warm_at,
        not_judged="" if warming else baseline.not_judged()[0],
        records=float(baseline.records[0].max()),
        in_alarm=in_alarm,
        channels=tuple(
            drawn(
                _names(watch, batch.labels[place], baseline), baseline, last, low=watch.low, span=watch.span, kind=kind
            )
        ),
    )


class _Accepted(NamedTuple):
    """An accepted change: when, how long there were records before it, and how many windows have some since."""

    at: int
    before_s: int
    since: int

    @classmethod
    def of(cls, some: detecting.Windows, at: int) -> "_Accepted":
        starts = some.start[detecting.seen(some)[0]]
        return cls(at, at - int(starts.min(initial=at)), int((starts >= at).sum()))

    def leans(self, holds_from: int) -> bool:
        """Whether a baseline that holds from then on is that of before at another level."""
        return self.before_s >= grid.DAY_S and holds_from - self.at < WHOLE_S


def rests_on(basis: int, *, is_used: bool) -> str:
    """In words; `is_used`: what was pinned is enough to judge by."""
    if basis < HISTORY:
        return "what was pinned" if is_used else "history, since what was pinned has too little of it"
    return f"history since {grid.time(basis):%Y-%m-%d %H:%M} UTC, which was accepted" if basis else "history"


def _of_another(before: Succession) -> str:
    until = grid.time(before.since + COMPARED_S)
    return f"what model {before.model or 'without a name'} did, with which it is compared until {until:%Y-%m-%d}"


def _warm_at(batch: Batch, some: detecting.Windows, windows: WindowSettings) -> datetime | None:
    """The first time that baselines are learned a day after the first record."""
    n, _ = _figures(some)
    seen = np.flatnonzero(n)
    if not len(seen):
        return None
    earliest = int(some.start[seen[0]]) + grid.DAY_S + grid.span_s(windows.allowed_lateness_s)
    return grid.time(grid.learning(batch.key.number, max(earliest, batch.until), grid.tick_s(windows.base_s)))


def drawn(
    names: Sequence[str],
    baseline: Baseline,
    last: detecting.Windows,
    *,
    low: float = 0.0,
    span: float = 1.0,
    kind: Kind = "category",
) -> list[Channel]:
    """The first channels of one series, by their names; `low` and `span` are those of a score's range."""
    n, sums = _figures(last)
    hour = last.start // grid.HOUR_S % HOURS
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
        own_times = moments(baseline.recurring, channel, low, span)
        found.append(Channel(name, alike(level), spread, tuple(day), own_times))
    return found


def alike(level: Floats) -> tuple[Days, ...]:
    """The days of the level [SLOTS] of a week; those with the same level are together."""
    of_day = level.reshape(WEEKDAYS, HOURS)
    others = np.flatnonzero((np.diff(of_day, axis=0) != 0).any(axis=1)) + 1
    return tuple(
        Days("-".join(dict.fromkeys((_NAMES[first], _NAMES[last - 1]))), tuple(of_day[first].tolist()))
        for first, last in pairwise([0, *others.tolist(), WEEKDAYS])
    )


def moments(recurring: Recurring, channel: int, low: float, span: float) -> tuple[Moment, ...]:
    """Those of the first series' channel, by the days that they are of; one after the other they are one."""
    kept = recurring.moment[0, channel] >= 0
    at = recurring.moment[0, channel][kept].astype(np.int64)
    level = low + span * recurring.level[0, channel][kept].astype(np.float64)
    begins = np.flatnonzero((np.diff(at, prepend=-2) != 1) | (at % A_DAY == 0)).tolist()
    return tuple(
        Moment(
            days=_GROUPS[at[first] // A_DAY],
            since=_of_day(at[first] % A_DAY),
            until=_of_day(at[last - 1] % A_DAY + 1),
            level=float(level[first:last].mean()),
        )
        for first, last in pairwise([*begins, len(at)])
    )


def _of_day(moment: int) -> str:
    minutes = int(moment) * MOMENT_S // 60
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _names(watch: Watch, labels: Sequence[str], baseline: Baseline) -> Sequence[str]:
    match watch.kind:
        case "score":
            return scores.CHANNELS[:1]
        case "rate":
            return ("share that did not pass",)
        case "positive":
            unit = "" if watch.metric is None else watch.metric.metric.unit or ""
            values = level_values(baseline.bins[0])
            names = zip(positives.CHANNELS, values, strict=True)
            return [f"share above the usual {name}, {number(value, unit)}" for name, value in names]
        case _:
            return [f"share of {label}" for label in labels]


def _figures(some: detecting.Windows) -> tuple[Floats, Floats]:
    """Records [T] of one series, and the sums of its channels [C, T]."""
    match some:
        case Scores():
            return some.n[0], some.total
        case Rates():
            return some.n[0], some.hits
        case Positives():
            return some.n[0], some.above[0].T
        case Categories():
            return some.counts[0].sum(axis=1), some.counts[0].T
