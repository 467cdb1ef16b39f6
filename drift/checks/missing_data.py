"""Detect applications that stopped sending traces in hours in which they usually send.

The activity profile distinguishes weekdays from weekends and knows the pauses an application usually makes within its
active hours."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from ragtide.drift.checks.engine import Check, CheckContext, Observation
from ragtide.drift.problems import Detection, ProblemKey, build_details
from ragtide.drift.settings import RuleSettings
from ragtide.drift.stats import calendar
from ragtide.drift.text import scope_label, timestamp
from ragtide.drift.windows import FAST_LANE, apps_condition, live_windows, select_traffic, traffic_metrics
from ragtide.sinks.clickhouse.database import Database

_MIN_DAY_SHARE = 0.75  # of the days observed
_MIN_HOUR_SHARE = 0.5  # of the hours in which it sent
_WIDTHS = (1, 4, 24)  # hours in a part of the day, more if it sends seldom
_MIN_WINDOWS = 3  # with fewer windows of traffic there is no pattern
_PATIENCE = 2  # times the typical pause
_HISTORY = timedelta(days=14)  # two weekends; an application that sent nothing for longer is stale
_HISTORY_S = int(_HISTORY.total_seconds())
_UPDATE_LOOKBACK = timedelta(days=1)  # for windows that closed late
_Traffic = Sequence[tuple[int, int]]  # start of a window with traffic and its traces, in order of time


class _Slot(NamedTuple):
    weekend: bool
    part: int  # of the day, UTC


@dataclass(frozen=True, slots=True)
class ActiveHours:
    """The parts of a day in which an application sends; `width` hours are a part.

    An hour is active if the application sent in three of four such parts, and neither the hour before nor the one after
    is known to be inactive: the end of a day's work shifts, and clocks change in spring.
    """

    width: int
    active: frozenset[_Slot]
    observed: frozenset[_Slot]

    @classmethod
    def of(cls, hours: Sequence[int]) -> "ActiveHours":
        """Learn from the hours in which it sent, since 1970; at least one. Takes the smallest width that fits."""
        for width in _WIDTHS:
            found = cls._of_width(width, hours)
            if sum(_slot(hour, width) in found.active for hour in hours) > _MIN_HOUR_SHARE * len(hours):
                break
        return found

    @classmethod
    def _of_width(cls, width: int, hours: Sequence[int]) -> "ActiveHours":
        parts = {hour // width * width for hour in hours}
        sent = Counter(_slot(part, width) for part in parts)
        known = Counter(_slot(part, width) for part in range(min(parts), max(parts) + 1, width))
        usual = frozenset(slot for slot, count in sent.items() if count >= _MIN_DAY_SHARE * known[slot])
        return cls(width, usual, frozenset(known))

    def seconds(self, since: float, until: float) -> float:
        """Return how many seconds of [since, until) lie in active hours."""
        first, last = int(since // calendar.HOUR_S), int(until // calendar.HOUR_S)
        return sum(
            min(until, (hour + 1) * calendar.HOUR_S) - max(since, hour * calendar.HOUR_S)
            for hour in range(first, last + 1)
            if self._is_active(hour)
        )

    def _is_active(self, hour: int) -> bool:
        own, *beside = (_slot(one, self.width) for one in (hour, hour - 1, hour + 1))
        return own in self.active and all(slot in self.active or slot not in self.observed for slot in beside)


@dataclass(frozen=True, slots=True)
class ActivityProfile:
    """How an application sent before it stopped; `since` is the end of its last window with traffic.

    `traces` of the day before; `windows` with traffic in all. Times in seconds since 1970.
    """

    app: str
    environment: str
    since: int
    traces: int
    windows: int
    hours: ActiveHours
    pause_s: float

    def is_overdue(self, until: float, after_s: float) -> bool:
        """Tell whether nothing came for `after_s` in active hours, and for much longer than the typical pause."""
        if self.windows < _MIN_WINDOWS:
            return False
        return self.hours.seconds(self.since, until) >= max(after_s, _PATIENCE * self.pause_s)


def typical_pause(hours: ActiveHours, pauses: Iterable[tuple[float, float]]) -> float:
    """Return the second longest pause in active hours, 0 without two: a single long one is no pattern."""
    return next(iter(sorted((hours.seconds(*pause) for pause in pauses), reverse=True)[1:2]), 0.0)


def _slot(hour: int, width: int) -> _Slot:
    return _Slot(calendar.is_weekend(hour * calendar.HOUR_S), hour % calendar.HOURS // width)


@dataclass(slots=True)
class LastTraffic:
    """When each application last sent, and the profiles of those that stopped; one per leader's term.

    The windows of two weeks are read only once, and again for an application that stopped.
    """

    metrics: Sequence[str] = ()
    apps: dict[tuple[str, str], int] = field(default_factory=dict)  # start of the last window with traffic
    _profiles: dict[tuple[str, str], ActivityProfile] = field(default_factory=dict)
    _position: int = 0

    def update(self, ctx: CheckContext, closed_until: datetime) -> None:
        """Add applications with traffic up to then; a window that lost its traces again does no harm."""
        until = int(closed_until.timestamp())
        horizon = until - _HISTORY_S
        since = until - int(_UPDATE_LOOKBACK.total_seconds()) if self.apps else horizon
        for metrics in [self.metrics] if self.apps else traffic_metrics(ctx.evaluators.values()):
            rows = ctx.database.rows(
                "SELECT app, environment, toUnixTimestamp(max(start)) AS at, max(version) AS newest FROM windows "
                f"WHERE {live_windows(ctx.windows.base_s, metrics, since, until)} AND seen > 0 "
                f"AND version > {self._position} GROUP BY app, environment"
            )
            for row in rows:
                key = (row["app"], row["environment"])
                self.apps[key] = max(row["at"], self.apps.get(key, 0))
                self._position = max(row["newest"], self._position)
            if rows:
                self.metrics = metrics
                break
        self.apps = {app: at for app, at in self.apps.items() if at >= horizon}

    def profiles(self, ctx: CheckContext, silent_before: float, after_s: float) -> list[ActivityProfile]:
        """Return the profiles of applications whose last window with traffic ended by then."""
        base_s = ctx.windows.base_s
        silent = {app: at + base_s for app, at in self.apps.items() if at + base_s <= silent_before}
        self._profiles = {app: profile for app, profile in self._profiles.items() if silent.get(app) == profile.since}
        for profile in _load_profiles(
            ctx.database, self.metrics, silent.keys() - self._profiles.keys(), silent, base_s, after_s
        ):
            self._profiles[profile.app, profile.environment] = profile
        return list(self._profiles.values())


@dataclass(slots=True)
class MissingData(Check):
    """An application stopped sending in hours in which it usually sends."""

    last_traffic: LastTraffic = field(default_factory=LastTraffic)

    kind = "missing_data"

    def judged_until(self, ctx: CheckContext, key: ProblemKey, now: datetime) -> datetime | None:
        """Return now, if the settings ask for missing data and lane `fast` has a watermark."""
        return now if _shortest_s(ctx.rules) is not None and FAST_LANE in ctx.watermarks else None

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Observe applications that stopped, by lane `fast`'s watermark: if workers stop, no application seems to."""
        shortest_s, closed_until = _shortest_s(ctx.rules), ctx.watermarks.get(FAST_LANE)
        if shortest_s is None or closed_until is None:
            return
        until = closed_until.timestamp()
        self.last_traffic.update(ctx, closed_until)
        for profile in self.last_traffic.profiles(ctx, until - shortest_s, shortest_s):
            after_s = ctx.rules.of(profile.app).missing_after_s
            if after_s is not None and profile.is_overdue(until, after_s) and not _has_traces_since(ctx, profile):
                yield _observation(ctx, profile, closed_until)

    def history(self, ctx: CheckContext, first: int, until: int) -> Iterator[tuple[int, Observation]]:
        """Observe at each end of a base window; profiles are those of the two weeks before."""
        base_s = ctx.windows.base_s
        for (app, environment), sent in _read_traffic(ctx, first - _HISTORY_S, until).items():
            after_s = ctx.rules.of(app).missing_after_s
            if after_s is None:
                continue
            for nth, (start, back) in enumerate(pairwise([*(at for at, _ in sent), until])):
                silent = range(max(start + base_s, first) + base_s, min(back, start + _HISTORY_S) + 1, base_s)
                if back - start - base_s < after_s or not silent:
                    continue
                known = sent[bisect_left(sent, (start - _HISTORY_S, 0)) : nth + 1]
                profile = _activity_profile(app, environment, known, base_s, after_s)
                overdue = silent[bisect_left(silent, True, key=partial(profile.is_overdue, after_s=after_s)) :]
                for at in overdue:
                    yield at, _observation(ctx, profile, calendar.utc(at))
                end = min(back, start + _HISTORY_S) + base_s  # it is back, or stale
                if overdue and end <= until:
                    yield end, Observation(_key(app, environment), "good")


def _shortest_s(rules: RuleSettings) -> float | None:
    lengths = [one.missing_after_s for one in (rules, *map(rules.of, rules.apps))]
    return min((after_s for after_s in lengths if after_s is not None), default=None)


def _key(app: str, environment: str) -> ProblemKey:
    return ProblemKey(app, environment, "", "missing", "")


def _observation(ctx: CheckContext, profile: ActivityProfile, until: datetime) -> Observation:
    return Observation(_key(profile.app, profile.environment), "bad", partial(_detection, ctx.rules, profile, until))


def _detection(rules: RuleSettings, profile: ActivityProfile, until: datetime) -> Detection:
    key, since = _key(profile.app, profile.environment), calendar.utc(profile.since)
    label = scope_label(profile.app, profile.environment)
    message = f"{label}: no traces since {timestamp(since)}. It sent {profile.traces} in the day before."
    attributes = {"sample_size": profile.traces}
    details = build_details(
        MissingData.kind, key, None, message, attributes, rules, severity="critical", rule_id="silence"
    )
    return Detection(key, details, since, until)


def _read_traffic(ctx: CheckContext, since: int, until: int) -> dict[tuple[str, str], _Traffic]:
    for metrics in traffic_metrics(ctx.evaluators.values()):
        rows = ctx.database.rows(
            "SELECT app, environment, arraySort(groupArray((at, traces))) AS sent FROM ("
            "SELECT app, environment, at, sum(n) AS traces "
            f"FROM ({select_traffic(live_windows(ctx.windows.base_s, metrics, since, until))}) "
            "GROUP BY app, environment, at) GROUP BY app, environment ORDER BY app, environment"
        )
        if rows:
            return {(row["app"], row["environment"]): row["sent"] for row in rows}
    return {}


def _activity_profile(app: str, environment: str, sent: _Traffic, base_s: int, after_s: float) -> ActivityProfile:
    """Make the profile that `_load_profiles` makes of the same windows."""
    starts = [at for at, _ in sent]
    hours = ActiveHours.of(sorted({at // calendar.HOUR_S for at in starts}))
    pauses = [(one + base_s, other) for one, other in pairwise(starts) if other - one - base_s >= after_s / 2]
    traces = sum(traces for at, traces in sent if at + calendar.DAY_S > starts[-1])
    return ActivityProfile(
        app, environment, starts[-1] + base_s, traces, len(sent), hours, typical_pause(hours, pauses)
    )


def _load_profiles(
    database: Database,
    metrics: Sequence[str],
    apps: Collection[tuple[str, str]],
    since: Mapping[tuple[str, str], int],
    base_s: int,
    after_s: float,
) -> Iterator[ActivityProfile]:
    """Load profiles of these applications. Pauses shorter than half of `after_s` decide nothing."""
    if not apps:
        return
    ends = [since[app] for app in apps]
    windows = live_windows(base_s, metrics, min(ends) - _HISTORY_S, max(ends))
    rows = database.rows(
        f"""
        SELECT app, environment, length(starts) AS windows,
            arraySum((at, n) -> if(at + {calendar.DAY_S} > starts[-1], n, 0), starts, counts) AS traces,
            arrayDistinct(arrayMap(at -> intDiv(at, {calendar.HOUR_S}), starts)) AS hours,
            arrayFilter(
                pause -> pause.2 - pause.1 >= {after_s / 2},
                arrayZip(arrayMap(at -> at + {base_s}, arrayPopBack(starts)), arrayPopFront(starts))
            ) AS pauses
        FROM (
            SELECT app, environment, arraySort(groupArray((at, traces))) AS sent, sent.1 AS starts, sent.2 AS counts
            FROM (
                SELECT app, environment, at, sum(n) AS traces
                FROM ({select_traffic(f"{windows} AND {apps_condition(apps)}")}) GROUP BY app, environment, at
            )
            GROUP BY app, environment
        )
        """
    )
    for row in rows:
        hours = ActiveHours.of(row["hours"])
        app = (row["app"], row["environment"])
        yield ActivityProfile(
            *app, since[app], row["traces"], row["windows"], hours, typical_pause(hours, row["pauses"])
        )


def _has_traces_since(ctx: CheckContext, profile: ActivityProfile) -> bool:
    """Tell whether there are traces after all: in an open window, or without an evaluator."""
    rows = ctx.database.rows(
        "SELECT 1 FROM traces WHERE run_id = 'live' AND is_deleted = 0 AND app = {app:String} "
        "AND environment = {environment:String} AND time >= {since:DateTime64(3, 'UTC')} LIMIT 1",
        {
            "app": profile.app,
            "environment": profile.environment,
            "since": calendar.utc(profile.since),
        },
    )
    return bool(rows)
