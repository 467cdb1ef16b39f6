"""An app that used to send traces has stopped: a problem of its own, since silence looks like health."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from drift.leadership import Term
from drift.problems import EventRow, Problem, event_id, latest, load_problems, problem_id
from drift.settings import RuleSettings
from evaluators.standards import ACCOUNTABLE_AND_TRANSPARENT, ONGOING_MONITORING
from sinks.clickhouse.database import Database

_HISTORY = timedelta(days=1)
_BUSY_WINDOWS = 3  # with fewer windows of traffic there is no habit to break
_PATIENCE = 2  # times the longest pause that the app made before


@dataclass(frozen=True, slots=True)
class Habit:
    """When an app sent traces in the last day, by base windows; times in seconds since 1970."""

    app: str
    environment: str
    traces: int
    starts: tuple[int, ...]

    def silent_since(self, base_s: int) -> int:
        """The end of its last window with traffic."""
        return self.starts[-1] + base_s

    def is_broken(self, until: float, base_s: int, after_s: float) -> bool:
        """Nothing came for long, and for much longer than ever before in that time."""
        if len(self.starts) < _BUSY_WINDOWS:
            return False
        pause = max(after - before for before, after in pairwise(self.starts))
        return until - self.silent_since(base_s) >= max(after_s, _PATIENCE * pause)


def watch_silence(
    database: Database, settings: RuleSettings, base_s: int, term: Term, now: datetime, closed_until: datetime
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
    events = []
    for habit in _habits(database, base_s, closed_until - _HISTORY):
        id_ = problem_id(habit.app, habit.environment, "", "missing", "")
        before = known.get(id_)
        broken = habit.is_broken(closed_until.timestamp(), base_s, settings.missing_after_s)
        event = _next(before, broken, settings, now)
        if event is not None:
            events.append(_row(habit, base_s, id_, before, event, term, now))
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


def _row(
    habit: Habit, base_s: int, id_: str, before: Problem | None, event: str, term: Term, now: datetime
) -> EventRow:
    episode = (0 if before is None else before.episode) + (event == "opened")
    openings = 0 if before is None else before.openings
    what = {"opened": (), "reopened": (openings + 1,), "resolved": (openings,)}[event]
    since = datetime.fromtimestamp(habit.silent_since(base_s), UTC)
    place = f"{habit.app} ({habit.environment})" if habit.environment else habit.app
    description = f"{place}: no trace since {since:%Y-%m-%d %H:%M:%S} UTC; {habit.traces} came in the day before."
    attributes: Mapping[str, object] = {
        "app": habit.app,
        "environment": habit.environment,
        "since": since.isoformat(),
        "until": now.isoformat(),
        "sample_size": habit.traces,
    }
    if event == "resolved" and before is not None:
        description, attributes = before.description, {**before.attributes, "until": now.isoformat()}
    return EventRow(
        problem_id=id_,
        event_id=event_id(id_, episode, event, *what),
        event=event,
        episode=episode,
        at=now,
        app=habit.app,
        environment=habit.environment,
        model="",
        aspect="missing",
        metric="",
        segment="",
        segment_value="",
        kind="missing_data",
        type="data_quality",
        severity="high",
        code="P0104 Data quality issues",
        standards=(ONGOING_MONITORING, ACCOUNTABLE_AND_TRANSPARENT),
        description=description,
        attributes=json.dumps(attributes, sort_keys=True),
        examples=(),
        actions=(
            "Ask whether the application runs and still sends its traces, and look at its producer's errors.",
            "Look at the topic, and at the dead letters: traces that cannot be read are not counted.",
        ),
        rule_id="silence",
        actor="",
        epoch=term.epoch,
    )


def _habits(database: Database, base_s: int, since: datetime) -> list[Habit]:
    rows = database.rows(
        """
        SELECT app, environment, sum(n) AS traces, arraySort(groupArray(at)) AS starts
        FROM (
            SELECT app, environment, toUnixTimestamp(start) AS at, count() AS n
            FROM (
                SELECT app, environment, toStartOfInterval(time, toIntervalSecond({base_s:UInt32})) AS start
                FROM traces FINAL WHERE run_id = 'live' AND time >= {since:DateTime64(3, 'UTC')}
            )
            GROUP BY app, environment, start
        )
        GROUP BY app, environment ORDER BY app, environment
        """,
        {"base_s": base_s, "since": since},
    )
    return [Habit(row["app"], row["environment"], row["traces"], tuple(row["starts"])) for row in rows]
