"""An app that used to send traces has stopped: a problem of its own, since silence looks like health."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from drift.events import Account, Happening, Place, event_row, last_account
from drift.leadership import Term
from drift.problems import EventRow, Problem, event_id, latest, load_problems, problem_id
from drift.settings import RuleSettings
from drift.windows.counted import among, counted, counters, live_windows
from evaluators.spec import Evaluator
from evaluators.standards import ACCOUNTABLE_AND_TRANSPARENT, ONGOING_MONITORING
from sinks.clickhouse.database import Database

_HISTORY = timedelta(days=1)
_BUSY_WINDOWS = 3  # with fewer windows of traffic there is no habit to break
_PATIENCE = 2  # times the longest pause that the app made before


class _Day(NamedTuple):
    """In seconds since 1970."""

    since: int
    until: int


@dataclass(slots=True)
class LastSeen:
    """When each app last sent anything; one per leader's term, which reads the windows of a whole day only once."""

    metrics: Sequence[str] = ()
    apps: dict[tuple[str, str], int] = field(default_factory=dict)  # start of the last window with traffic
    _position: int = 0

    def look(self, database: Database, evaluators: Iterable[Evaluator], base_s: int, closed_until: datetime) -> None:
        """Know of every app that sent anything in the day before; a window that lost its traces again does no harm."""
        since, until = _day_before(closed_until)
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
        self.apps = {app: at for app, at in self.apps.items() if at >= since}


class Habit(NamedTuple):
    """When an app sent traces in the last day, by base windows; times in seconds since 1970."""

    app: str
    environment: str
    traces: int
    windows: int
    last: int
    pause: int  # the longest between the starts of two windows in a row

    def silent_since(self, base_s: int) -> int:
        """The end of its last window with traffic."""
        return self.last + base_s

    def is_broken(self, until: float, base_s: int, after_s: float) -> bool:
        """Nothing came for long, and for much longer than ever before in that time."""
        if self.windows < _BUSY_WINDOWS:
            return False
        return until - self.silent_since(base_s) >= max(after_s, _PATIENCE * self.pause)


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
    """Problems of apps that stopped are open, those of apps that came back are resolved, when this returns.

    `closed_until` is the watermark: where workers stand still it does too, and nobody seems silent.
    """
    if settings.missing_after_s is None:
        return []
    known = latest(
        one
        for one in load_problems(database, states=("open", "resolved"), every_episode=True)
        if one.aspect == "missing"
    )
    after_s, until = settings.missing_after_s, closed_until.timestamp()
    last.look(database, evaluators, base_s, closed_until)
    quiet = [app for app, at in last.apps.items() if until - (at + base_s) >= after_s]
    habits = _habits(database, last.metrics, quiet, base_s, closed_until)
    broken = {
        (habit.app, habit.environment): habit
        for habit in habits
        if habit.is_broken(until, base_s, after_s) and not _sent_since(database, habit, base_s)
    }
    events = []
    for app in sorted(last.apps):
        place = Place(*app, "", "missing", "")
        before = known.get(problem_id(*place))
        event = _next(before, app in broken, settings, now)
        if event is None:
            continue
        happening = _happening(problem_id(*place), before, event, term, now)
        if event == "resolved" and before is not None:
            account = last_account(before, until=now.isoformat())
        else:
            account = _account(broken[app], base_s, now)
        events.append(event_row(place, happening, account))
    database.insert("problem_events", events)
    return events


def _next(before: Problem | None, broken: bool, settings: RuleSettings, now: datetime) -> str | None:
    is_open = before is not None and before.state == "open"
    if broken == is_open:
        return None
    if not broken:
        return "resolved"
    if before is None or before.resolved_at is None:
        return "opened"
    return "reopened" if (now - before.resolved_at).total_seconds() <= settings.flap_s else "opened"


def _happening(id_: str, before: Problem | None, event: str, term: Term, now: datetime) -> Happening:
    episode = (0 if before is None else before.episode) + (event == "opened")
    openings = 0 if before is None else before.openings
    what = {"opened": (), "reopened": (openings + 1,), "resolved": (openings,)}[event]
    return Happening(event, event_id(id_, episode, event, *what), episode, now, term.epoch)


def _account(habit: Habit, base_s: int, now: datetime) -> Account:
    since = datetime.fromtimestamp(habit.silent_since(base_s), UTC)
    place = f"{habit.app} ({habit.environment})" if habit.environment else habit.app
    return Account(
        kind="missing_data",
        type="data_quality",
        severity="high",
        code="P0104 Data quality issues",
        standards=(ONGOING_MONITORING, ACCOUNTABLE_AND_TRANSPARENT),
        description=f"{place}: no trace since {since:%Y-%m-%d %H:%M:%S} UTC; {habit.traces} came in the day before.",
        attributes={
            "app": habit.app,
            "environment": habit.environment,
            "since": since.isoformat(),
            "until": now.isoformat(),
            "sample_size": habit.traces,
        },
        actions=(
            "Ask whether the application runs and still sends its traces, and look at its producer's errors.",
            "Look at the topic, and at the dead letters: traces that cannot be read are not counted.",
        ),
        rule_id="silence",
    )


def _habits(
    database: Database,
    metrics: Sequence[str],
    apps: Sequence[tuple[str, str]],
    base_s: int,
    closed_until: datetime,
) -> list[Habit]:
    """Of these apps, which are few: those that stopped."""
    if not apps:
        return []
    windows = f"{live_windows(base_s, metrics, *_day_before(closed_until))} AND {among(apps)}"
    rows = database.rows(
        f"""
        SELECT app, environment, sum(traces) AS traces, count() AS windows, max(at) AS last,
            arrayMax(arrayDifference(arraySort(groupArray(at)))) AS pause
        FROM (
            SELECT app, environment, at, sum(n) AS traces FROM ({counted(windows)}) GROUP BY app, environment, at
        )
        GROUP BY app, environment
        """
    )
    return [Habit(**row) for row in rows]


def _day_before(closed_until: datetime) -> _Day:
    return _Day(int((closed_until - _HISTORY).timestamp()), int(closed_until.timestamp()))


def _sent_since(database: Database, habit: Habit, base_s: int) -> bool:
    """Whether there are traces after all: in a window that is open, or such as no evaluator looked at."""
    rows = database.rows(
        "SELECT 1 FROM traces WHERE run_id = 'live' AND is_deleted = 0 AND app = {app:String} "
        "AND environment = {environment:String} AND time >= {since:DateTime64(3, 'UTC')} LIMIT 1",
        {
            "app": habit.app,
            "environment": habit.environment,
            "since": datetime.fromtimestamp(habit.silent_since(base_s), UTC),
        },
    )
    return bool(rows)
