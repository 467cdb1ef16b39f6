"""An app that used to send traces has stopped: a problem of its own, since silence looks like health."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from drift.kinds.habit import HOUR_S, Habit, Hours, pause_of
from drift.leadership import Term
from drift.phrases import moment, whereabouts
from drift.problems.accounts import account_of
from drift.problems.events import Place
from drift.problems.problem import EventRow, Kind
from drift.problems.troubles import Over, Trouble, standing, tell
from drift.settings import RuleSettings
from drift.windows.counted import among, counted, counters, live_windows
from evaluators.spec import Evaluator
from sinks.clickhouse.database import Database

_KIND: Kind = "missing_data"
HISTORY = timedelta(days=14)  # two weekends; an app that was silent for longer has been given up
_NEWS = timedelta(days=1)  # in which windows close that the look before did not have
DAY_S = 86400


@dataclass(slots=True)
class LastSeen:
    """When each app last sent anything, and the habits of those that are silent; one per leader's term.

    The windows of two weeks are read only once, and again of an app that falls silent.
    """

    metrics: Sequence[str] = ()
    apps: dict[tuple[str, str], int] = field(default_factory=dict)  # start of the last window with traffic
    _habits: dict[tuple[str, str], Habit] = field(default_factory=dict)
    _position: int = 0

    def look(self, database: Database, evaluators: Iterable[Evaluator], base_s: int, closed_until: datetime) -> None:
        """Know of every app that sent anything in that time; a window that lost its traces again does no harm."""
        until = int(closed_until.timestamp())
        forgotten = until - int(HISTORY.total_seconds())
        since = until - int(_NEWS.total_seconds()) if self.apps else forgotten
        for metrics in [self.metrics] if self.apps else counters(evaluators):
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
        self.apps = {app: at for app, at in self.apps.items() if at >= forgotten}

    def habits(self, database: Database, base_s: int, silent_before: float, after_s: float) -> list[Habit]:
        """Of the apps whose last window with traffic ended by then."""
        silent = {app: at + base_s for app, at in self.apps.items() if at + base_s <= silent_before}
        self._habits = {app: habit for app, habit in self._habits.items() if silent.get(app) == habit.since}
        for habit in _habits(database, self.metrics, silent.keys() - self._habits.keys(), silent, base_s, after_s):
            self._habits[habit.app, habit.environment] = habit
        return list(self._habits.values())


def watch_silence(
    database: Database,
    last: LastSeen,
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
    last.look(database, evaluators, base_s, closed_until)
    broken = {
        place_of(habit.app, habit.environment): habit
        for habit in last.habits(database, base_s, until - shortest_s, shortest_s)
        if _is_missed(habit, settings, until) and not _sent_since(database, habit)
    }
    told: list[Trouble | Over] = [Over(place, _KIND, now) for place in standing(database, _KIND) if place not in broken]
    told += [trouble_of(habit, settings, closed_until) for habit in broken.values()]
    return tell(database, told, settings, term, now)


def _is_missed(habit: Habit, settings: RuleSettings, until: float) -> bool:
    after_s = settings.of(habit.app).missing_after_s
    return after_s is not None and habit.is_broken(until, after_s)


def place_of(app: str, environment: str) -> Place:
    """Where the silence of an application is told."""
    return Place(app, environment, "", "missing", "")


def trouble_of(habit: Habit, settings: RuleSettings, until: datetime) -> Trouble:
    """What is said of an application that broke its habit."""
    place, since = place_of(habit.app, habit.environment), datetime.fromtimestamp(habit.since, UTC)
    named = whereabouts(habit.app, habit.environment)
    said = f"{named}: no trace since {moment(since)}; {habit.traces} came in the day before."
    figures = {"sample_size": habit.traces}
    account = account_of(_KIND, place, None, said, figures, settings, severity="high", rule_id="silence")
    return Trouble(place, account, since, until)


def _habits(
    database: Database,
    metrics: Sequence[str],
    apps: Collection[tuple[str, str]],
    since: Mapping[tuple[str, str], int],
    base_s: int,
    after_s: float,
) -> Iterator[Habit]:
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
                FROM ({counted(f"{windows} AND {among(apps)}")}) GROUP BY app, environment, at
            )
            GROUP BY app, environment
        )
        """
    )
    for row in rows:
        hours = Hours.of(row["hours"])
        app = (row["app"], row["environment"])
        yield Habit(*app, since[app], row["traces"], row["windows"], hours, pause_of(hours, row["pauses"]))


def _sent_since(database: Database, habit: Habit) -> bool:
    """Whether there are traces after all: in a window that is open, or such as no evaluator looked at."""
    rows = database.rows(
        "SELECT 1 FROM traces WHERE run_id = 'live' AND is_deleted = 0 AND app = {app:String} "
        "AND environment = {environment:String} AND time >= {since:DateTime64(3, 'UTC')} LIMIT 1",
        {
            "app": habit.app,
            "environment": habit.environment,
            "since": datetime.fromtimestamp(habit.since, UTC),
        },
    )
    return bool(rows)
