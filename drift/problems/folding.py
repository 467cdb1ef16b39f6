"""A problem is a fold over its events, so that a job and a person cannot overwrite each other."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from drift.problems.episodes import OF_JOBS, Episode, Mute
from drift.problems.problem import EVENTS, EventRow, Problem, State
from drift.windows import sql
from sinks.clickhouse.database import Database

_RANK = {event: rank for rank, event in enumerate(EVENTS)}
_CONDITIONS = {
    "app": "app = {app:String}",
    "problem": "startsWith(problem_id, {problem:String})",
    "ids": "problem_id IN {ids:Array(String)}",
}
_FEW = 1000  # ids that a statement may name
_OPENS = sql.texts(("opened", "reopened"))
_ON = sql.texts(sorted(set(OF_JOBS) - {"resolved"}))
# Every problem with an episode that is not over, and few others: what is long resolved is never read whole.
_GOING_ON = f"""GROUP BY problem_id, episode
    HAVING maxIf(at, event IN ({_ON})) >= maxIf(at, event = 'resolved')
        AND (countIf(event IN ({_OPENS})) > 0 OR maxIf(at, event IN ({_ON})) >= maxIf(at, event = 'withdrawn'))"""
UNRESOLVED = f"problem_id IN (SELECT problem_id FROM problem_events FINAL {_GOING_ON})"

# Of the updates of a kind that nothing withdrew in between the first says that the kind is there, and since when, the
# last what it says; the same of those with examples, which are kept where later words have none. What lies between
# changes nothing, and of a problem that is open for months that is nearly all: 288 updates a day.
_OF_UPDATES = """(problem_id, event_id) IN (
    SELECT problem_id, arrayJoin([argMin(event_id, (at, event_id)), argMax(event_id, (at, event_id))])
    FROM problem_events FINAL
    LEFT JOIN (
        SELECT problem_id, episode, groupArray(at) AS withdrawals FROM problem_events FINAL
        WHERE event = 'withdrawn' AND {same} GROUP BY problem_id, episode) AS gone USING (problem_id, episode)
    WHERE event = 'updated' AND {same}
    GROUP BY problem_id, episode, kind, notEmpty(examples), arrayCount(withdrawn -> withdrawn <= at, withdrawals))"""


def fold(events: Iterable[EventRow]) -> list[Problem]:
    """Every episode of every problem, in the order of their first event; one withdrawn unopened is left out."""
    episodes: dict[tuple[str, int], Episode] = {}
    mutes: dict[str, Mute] = {}
    openings: dict[str, list[datetime]] = {}
    for event in sorted(events, key=lambda e: (e.at, _RANK.get(e.event, len(_RANK)), e.event_id)):
        key = (event.problem_id, event.episode)
        if event.event in OF_JOBS:
            if key not in episodes:
                episodes[key] = Episode(event, openings.setdefault(event.problem_id, []))
            episodes[key].hear(event)
        elif event.event in ("muted", "unmuted"):
            mutes[event.problem_id] = _mute(event)
        elif key in episodes and event.event == "withdrawn":
            if not episodes[key].openings:
                del episodes[key]
        elif key in episodes:
            episodes[key].mark(event)
    return [episode.problem(mutes.get(id_, Mute())) for (id_, _), episode in episodes.items()]


def _mute(event: EventRow) -> Mute:
    if event.event == "unmuted":
        return Mute()
    until = json.loads(event.attributes or "{}").get("until")
    return Mute(event.actor or "unknown", datetime.fromisoformat(until) if until else None)


def latest(problems: Iterable[Problem]) -> dict[str, Problem]:
    """The last episode of each problem, by problem id."""
    found: dict[str, Problem] = {}
    for problem in problems:
        if problem.problem_id not in found or problem.episode > found[problem.problem_id].episode:
            found[problem.problem_id] = problem
    return found


def load_problems(
    database: Database,
    *,
    states: Sequence[State] = ("open", "resolved"),
    app: str | None = None,
    problem: str | None = None,
    ids: Collection[str] = (),
    every_episode: bool = False,
) -> list[Problem]:
    """Problems in these states, the newest first; the last episode of each unless every one is asked for.

    `problem` is how an id begins, `ids` are whole ones; none: any.
    """
    unresolved = "resolved" not in states
    problems = fold(load_events(database, app=app, problem=problem, ids=ids, unresolved=unresolved))
    chosen = problems if every_episode else list(latest(problems).values())
    return sorted(
        (one for one in chosen if one.state in states),
        key=lambda one: (one.opened_at or one.first_seen_at, one.problem_id),
        reverse=True,
    )


def load_events(
    database: Database,
    *,
    app: str | None = None,
    problem: str | None = None,
    ids: Collection[str] = (),
    unresolved: bool = False,
) -> list[EventRow]:
    """The events of these problems, in no order, without updates that change nothing; chosen as in `load_problems`.

    `unresolved`: of those with an episode that is not over; some that have none may come with them.
    """
    given = {name: value for name, value in (("app", app), ("problem", problem)) if value}
    if unresolved:
        going_on = _going_on(database, given)
        ids = going_on.intersection(ids) if ids else going_on
        if not ids:
            return []
    if not ids:
        return _events(database, given)
    wanted = sorted(ids)
    parts = (wanted[at : at + _FEW] for at in range(0, len(wanted), _FEW))
    return [event for some in parts for event in _events(database, {**given, "ids": some})]


def _going_on(database: Database, given: Mapping[str, object]) -> set[str]:
    rows = database.rows(f"SELECT problem_id FROM problem_events FINAL WHERE {_same(given)} {_GOING_ON}", given)
    return {row["problem_id"] for row in rows}


def _events(database: Database, given: Mapping[str, object]) -> list[EventRow]:
    same = _same(given)
    rows = database.rows(
        f"SELECT {', '.join(EventRow._fields)} FROM problem_events FINAL "
        f"WHERE {same} AND (event != 'updated' OR {_OF_UPDATES.format(same=same)})",
        given,
    )
    return [EventRow(**row) for row in rows]


def _same(given: Mapping[str, object]) -> str:
    return " AND ".join(condition for name, condition in _CONDITIONS.items() if name in given) or "true"
