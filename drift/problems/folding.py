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
UNRESOLVED = f"""problem_id IN (
    SELECT problem_id FROM problem_events FINAL GROUP BY problem_id, episode
    HAVING maxIf(at, event IN ({_ON})) >= maxIf(at, event = 'resolved')
        AND (countIf(event IN ({_OPENS})) > 0 OR maxIf(at, event IN ({_ON})) >= maxIf(at, event = 'withdrawn')))"""


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
    """The events of these problems, in no order; the same choice as `load_problems` has.

    `unresolved`: of those with an episode that is not over; some that have none may come with them.
    """
    given = {name: value for name, value in (("app", app), ("problem", problem)) if value}
    if not ids:
        return _events(database, given, unresolved)
    wanted = sorted(ids)
    parts = (wanted[at : at + _FEW] for at in range(0, len(wanted), _FEW))
    return [event for some in parts for event in _events(database, {**given, "ids": some}, unresolved)]


def _events(database: Database, given: Mapping[str, object], unresolved: bool) -> list[EventRow]:
    conditions = [condition for name, condition in _CONDITIONS.items() if name in given]
    conditions += [UNRESOLVED] if unresolved else []
    rows = database.rows(
        f"SELECT {', '.join(EventRow._fields)} FROM problem_events FINAL"
        + (f" WHERE {' AND '.join(conditions)}" if conditions else ""),
        given,
    )
    return [EventRow(**row) for row in rows]
