"""Detect applications that stopped sending traces in hours in which they usually send.

The activity profile distinguishes weekdays from weekends and knows the pauses an application usually makes within its
active hours."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ragtide.drift.leadership import Term
from ragtide.drift.problems.model import EventRow, Kind
from ragtide.drift.problems.report import Clear, Detection, ProblemKey, build_details, open_detections, report
from ragtide.drift.settings import RuleSettings
from ragtide.drift.text import scope_label, timestamp
from ragtide.drift.windows.traffic import apps_condition, live_windows, select_traffic, traffic_metrics
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database

HOUR_S = 3600
_THURSDAY = 3  # 1 January 1970, days of the week from 0
_WEEKEND = (5, 6)
_MIN_DAY_SHARE = 0.75  # of the days in which it was known
_MIN_HOUR_SHARE = 0.5  # of the hours in which it sent
_WIDTHS = (1, 4, 24)  # hours that are looked at together, more where it sends seldom
_MIN_WINDOWS = 3  # with fewer windows of traffic there is no habit to break
_PATIENCE = 2  # times the pause that it makes


class _Slot(NamedTuple):
    weekend: bool
    part: int  # of the day, UTC


@dataclass(frozen=True, slots=True)
class ActiveHours:
    """In which parts of a day it sends, from the first to the last hour in which it did; `width` hours are a part.

    An hour counts where it sent in three of four such parts, and neither the hour before nor the one after is known to
    be of another kind: the end of a day's work shifts, and clocks do in spring.
    """

    width: int
    active: frozenset[_Slot]
    observed: frozenset[_Slot]

    @classmethod
    def of(cls, hours: Sequence[int]) -> "ActiveHours":
        """From the hours in which it sent, since 1970; at least one. By the least width that most of them fit."""
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
        """Of [since, until), seconds since 1970, how many lie in hours that count."""
        first, last = int(since // HOUR_S), int(until // HOUR_S)
        return sum(
            min(until, (hour + 1) * HOUR_S) - max(since, hour * HOUR_S)
            for hour in range(first, last + 1)
            if self._is_active(hour)
        )

    def _is_active(self, hour: int) -> bool:
        own, *beside = (_slot(one, self.width) for one in (hour, hour - 1, hour + 1))
        return own in self.active and all(slot in self.active or slot not in self.observed for slot in beside)


@dataclass(frozen=True, slots=True)
class ActivityProfile:
    """How an app sent before it fell silent; `since` is the end of its last window with traffic, seconds since 1970.

    `traces` came in the day before, in so many `windows` altogether.
    """

    app: str
    environment: str
    since: int
    traces: int
    windows: int
    hours: ActiveHours
    pause_s: float

    def is_overdue(self, until: float, after_s: float) -> bool:
        """Nothing came for long in hours in which it sends, and for much longer than its pauses there."""
        if self.windows < _MIN_WINDOWS:
            return False
        return self.hours.seconds(self.since, until) >= max(after_s, _PATIENCE * self.pause_s)


def typical_pause(hours: ActiveHours, pauses: Iterable[tuple[float, float]]) -> float:
    """The second longest in hours that count, 0 where there are not two: one that stood out was no habit."""
    return next(iter(sorted((hours.seconds(*pause) for pause in pauses), reverse=True)[1:2]), 0.0)


def _slot(hour: int, width: int) -> _Slot:
    day, of_day = divmod(hour, 24)
    return _Slot((day + _THURSDAY) % 7 in _WEEKEND, of_day // width)


_KIND: Kind = "missing_data"
HISTORY = timedelta(days=14)  # two weekends; an app that was silent for longer has been given up
_UPDATE_LOOKBACK = timedelta(days=1)  # in which windows close that the look before did not have
DAY_S = 86400


@dataclass(slots=True)
class LastTraffic:
    """When each app last sent anything, and the habits of those that are silent; one per leader's term.

    The windows of two weeks are read only once, and again of an app that falls silent.
    """

    metrics: Sequence[str] = ()
    apps: dict[tuple[str, str], int] = field(default_factory=dict)  # start of the last window with traffic
    _profiles: dict[tuple[str, str], ActivityProfile] = field(default_factory=dict)
    _position: int = 0

    def update(self, database: Database, evaluators: Iterable[Evaluator], base_s: int, closed_until: datetime) -> None:
        """Know of every app that sent anything in that time; a window that lost its traces again does no harm."""
        until = int(closed_until.timestamp())
        horizon = until - int(HISTORY.total_seconds())
        since = until - int(_UPDATE_LOOKBACK.total_seconds()) if self.apps else horizon
        for metrics in [self.metrics] if self.apps else traffic_metrics(evaluators):
            rows = database.rows(
                "SELECT app, environment, toUnixTimestamp(max(start)) AS at, max(version) AS newest FROM windows "
                f"WHERE {live_windows(base_s, metrics, since, until)} AND seen > 0 AND version > {self._position} "
                "GROUP BY app, environment"
            )
            for row in rows:
                key = (row["app"], row["environment"])
                self.apps[key] = max(row["at"], self.apps.get(key, 0))
                self._position = max(row["newest"], self._position)
            if rows:
                self.metrics = metrics
                break
        self.apps = {app: at for app, at in self.apps.items() if at >= horizon}

    def profiles(self, database: Database, base_s: int, silent_before: float, after_s: float) -> list[ActivityProfile]:
        """Of the apps whose last window with traffic ended by then."""
        silent = {app: at + base_s for app, at in self.apps.items() if at + base_s <= silent_before}
        self._profiles = {app: profile for app, profile in self._profiles.items() if silent.get(app) == profile.since}
        for profile in _load_profiles(
            database, self.metrics, silent.keys() - self._profiles.keys(), silent, base_s, after_s
        ):
            self._profiles[profile.app, profile.environment] = profile
        return list(self._profiles.values())


def check_missing_data(
    database: Database,
    last: LastTraffic,
    evaluators: Iterable[Evaluator],
    settings: RuleSettings,
    base_s: int,
    term: Term,
    now: datetime,
    closed_until: datetime,
) -> list[EventRow]:
    """Problems of apps that stopped are open, those of apps that came back or were given up are resolved, on return.

    `closed_until` is the watermark: where workers stand still it does too, and nobody seems silent.
    """
    lengths = [one.missing_after_s for one in (settings, *map(settings.of, settings.apps))]
    shortest_s = min((after_s for after_s in lengths if after_s is not None), default=None)
    if shortest_s is None:
        return []
    until = closed_until.timestamp()
    last.update(database, evaluators, base_s, closed_until)
    overdue = {
        key_of_app(profile.app, profile.environment): profile
        for profile in last.profiles(database, base_s, until - shortest_s, shortest_s)
        if _is_overdue(profile, settings, until) and not _has_traces_since(database, profile)
    }
    reports: list[Detection | Clear] = [
        Clear(key, _KIND, now) for key in open_detections(database, _KIND) if key not in overdue
    ]
    reports += [detection_of(profile, settings, closed_until) for profile in overdue.values()]
    return report(database, reports, settings, term, now)


def _is_overdue(profile: ActivityProfile, settings: RuleSettings, until: float) -> bool:
    after_s = settings.of(profile.app).missing_after_s
    return after_s is not None and profile.is_overdue(until, after_s)


def key_of_app(app: str, environment: str) -> ProblemKey:
    """Where the silence of an application is told."""
    return ProblemKey(app, environment, "", "missing", "")


def detection_of(profile: ActivityProfile, settings: RuleSettings, until: datetime) -> Detection:
    """What is said of an application that broke its habit."""
    key, since = key_of_app(profile.app, profile.environment), datetime.fromtimestamp(profile.since, UTC)
    label = scope_label(profile.app, profile.environment)
    message = f"{label}: no trace since {timestamp(since)}; {profile.traces} came in the day before."
    attributes = {"sample_size": profile.traces}
    details = build_details(_KIND, key, None, message, attributes, settings, severity="critical", rule_id="silence")
    return Detection(key, details, since, until)


def _load_profiles(
    database: Database,
    metrics: Sequence[str],
    apps: Collection[tuple[str, str]],
    since: Mapping[tuple[str, str], int],
    base_s: int,
    after_s: float,
) -> Iterator[ActivityProfile]:
    """Of these apps, which are few: those that stopped. A pause of less than half as long decides nothing."""
    if not apps:
        return
    ends = [since[app] for app in apps]
    windows = live_windows(base_s, metrics, min(ends) - int(HISTORY.total_seconds()), max(ends))
    rows = database.rows(
        f"""
        SELECT app, environment, length(starts) AS windows,
            arraySum((at, n) -> if(at + {DAY_S} > starts[-1], n, 0), starts, counts) AS traces,
            arrayDistinct(arrayMap(at -> intDiv(at, {HOUR_S}), starts)) AS hours,
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


def _has_traces_since(database: Database, profile: ActivityProfile) -> bool:
    """Whether there are traces after all: in a window that is open, or such as no evaluator looked at."""
    rows = database.rows(
        "SELECT 1 FROM traces WHERE run_id = 'live' AND is_deleted = 0 AND app = {app:String} "
        "AND environment = {environment:String} AND time >= {since:DateTime64(3, 'UTC')} LIMIT 1",
        {
            "app": profile.app,
            "environment": profile.environment,
            "since": datetime.fromtimestamp(profile.since, UTC),
        },
    )
    return bool(rows)
