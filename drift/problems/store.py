"""Load problems: each is a fold over its events, so that jobs and operators cannot overwrite each other."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from ragtide.drift import sql
from ragtide.drift.attributes import evidence_of
from ragtide.drift.problems.fold import JOB_EVENTS, Episode, Mute
from ragtide.drift.problems.model import EVENTS, EventRow, Problem, State
from ragtide.sinks.clickhouse.database import Database

_RANK = {event: rank for rank, event in enumerate(EVENTS)}
_CONDITIONS = {
    "app": "app = {app:String}",
    "problem": "startsWith(problem_id, {problem:String})",
    "ids": "problem_id IN {ids:Array(String)}",
}
_IDS_PER_QUERY = 1000  # ids that a statement may name
_OPENING_EVENTS = sql.texts(("opened", "reopened"))
_ACTIVE_EVENTS = sql.texts(sorted(set(JOB_EVENTS) - {"resolved"}))
# Every problem with an unresolved episode, and few others: events of resolved ones are not all read.
_GROUPED_UNRESOLVED = f"""GROUP BY problem_id, episode
    HAVING maxIf(at, event IN ({_ACTIVE_EVENTS})) >= maxIf(at, event = 'resolved')
        AND (countIf(event IN ({_OPENING_EVENTS})) > 0
            OR maxIf(at, event IN ({_ACTIVE_EVENTS})) >= maxIf(at, event = 'withdrawn'))"""
UNRESOLVED = f"problem_id IN (SELECT problem_id FROM problem_events FINAL {_GROUPED_UNRESOLVED})"

# Between two withdrawals only a kind's first and last update matter, with and without examples: the first for its
# start, the last for its details. The others change nothing; a problem that is open for months has 288 a day.
_RELEVANT_UPDATES = """(problem_id, event_id) IN (
    SELECT problem_id, arrayJoin([argMin(event_id, (at, event_id)), argMax(event_id, (at, event_id))])
    FROM problem_events FINAL
    LEFT JOIN (
        SELECT problem_id, episode, groupArray(at) AS withdrawals FROM problem_events FINAL
        WHERE event = 'withdrawn' AND {same} GROUP BY problem_id, episode) AS gone USING (problem_id, episode)
    WHERE event = 'updated' AND {same}
    GROUP BY problem_id, episode, kind, notEmpty(examples), arrayCount(withdrawn -> withdrawn <= at, withdrawals))"""


def fold_events(events: Iterable[EventRow]) -> list[Problem]:
    """Fold events into episodes, in order of their first event; episodes that were withdrawn unopened are left out."""
    episodes: dict[tuple[str, int], Episode] = {}
    mutes: dict[str, Mute] = {}
    openings: dict[str, list[datetime]] = {}
    for event in sorted(events, key=lambda e: (e.at, _RANK.get(e.event, len(_RANK)), e.event_id)):
        key = (event.problem_id, event.episode)
        if event.event in JOB_EVENTS:
            if key not in episodes:
                episodes[key] = Episode(event, openings.setdefault(event.problem_id, []))
            episodes[key].apply(event)
        elif event.event in ("muted", "unmuted"):
            mutes[event.problem_id] = _mute(event)
        elif key in episodes and event.event == "withdrawn":
            if not episodes[key].openings:
                del episodes[key]
        elif key in episodes:
            episodes[key].apply_operator(event)
    return [episode.problem(mutes.get(id_, Mute())) for (id_, _), episode in episodes.items()]


def last_episode(events: Iterable[EventRow]) -> Problem | None:
    """Fold the events of one problem and return its last episode; None if it has none."""
    return max(fold_events(events), key=lambda one: one.episode, default=None)


def _mute(event: EventRow) -> Mute:
    if event.event == "unmuted":
        return Mute()
    return Mute(event.actor or "unknown", evidence_of(event.attributes).until)


def latest_episodes(problems: Sequence[Problem]) -> list[Problem]:
    """Leave out all episodes of a problem but the last."""
    last: dict[str, int] = {}
    for one in problems:
        last[one.problem_id] = max(one.episode, last.get(one.problem_id, one.episode))
    return [one for one in problems if one.episode == last[one.problem_id]]


def load_problems(
    database: Database,
    *,
    states: Sequence[State] = ("open", "resolved"),
    app: str | None = None,
    problem: str | None = None,
    ids: Collection[str] = (),
    every_episode: bool = False,
) -> list[Problem]:
    """Load problems in these states, the newest first; their last episodes unless `every_episode`.

    `problem` is the beginning of an id, `ids` are whole ones; none: any.
    """
    unresolved = "resolved" not in states
    problems = fold_events(load_events(database, app=app, problem=problem, ids=ids, unresolved=unresolved))
    chosen = problems if every_episode else latest_episodes(problems)
    return sorted(
        (one for one in chosen if one.state in states),
        key=lambda one: (one.opened_at or one.first_seen_at, one.problem_id),
        reverse=True,
    )


def load_recent_problems(
    database: Database, since: datetime, *, states: Sequence[State] = ("open", "resolved")
) -> list[Problem]:
    """Load every episode of the problems that are unresolved, or resolved at `since` or later."""
    condition = f"{UNRESOLVED} OR (event = 'resolved' AND at >= {{since:DateTime64(3, 'UTC')}})"
    rows = database.rows(f"SELECT DISTINCT problem_id FROM problem_events FINAL WHERE {condition}", {"since": since})
    ids = {row["problem_id"] for row in rows}
    return load_problems(database, states=states, ids=ids, every_episode=True) if ids else []


def load_events(
    database: Database,
    *,
    app: str | None = None,
    problem: str | None = None,
    ids: Collection[str] = (),
    unresolved: bool = False,
) -> list[EventRow]:
    """Load events of problems in no order, without updates that change nothing; filters as in `load_problems`.

    `unresolved`: of problems with an unresolved episode; a few others may be included.
    """
    filters = {name: value for name, value in (("app", app), ("problem", problem)) if value}
    if unresolved:
        unresolved_ids = _unresolved_ids(database, filters)
        ids = unresolved_ids.intersection(ids) if ids else unresolved_ids
        if not ids:
            return []
    if not ids:
        return _events(database, filters)
    wanted = sorted(ids)
    chunks = (wanted[at : at + _IDS_PER_QUERY] for at in range(0, len(wanted), _IDS_PER_QUERY))
    return [event for some in chunks for event in _events(database, {**filters, "ids": some})]


def _unresolved_ids(database: Database, filters: Mapping[str, object]) -> set[str]:
    rows = database.rows(
        f"SELECT problem_id FROM problem_events FINAL WHERE {_where(filters)} {_GROUPED_UNRESOLVED}", filters
    )
    return {row["problem_id"] for row in rows}


def _events(database: Database, filters: Mapping[str, object]) -> list[EventRow]:
    same = _where(filters)
    rows = database.rows(
        f"SELECT {', '.join(EventRow._fields)} FROM problem_events FINAL "
        f"WHERE {same} AND (event != 'updated' OR {_RELEVANT_UPDATES.format(same=same)})",
        filters,
    )
    return [EventRow(**row) for row in rows]


def _where(filters: Mapping[str, object]) -> str:
    return " AND ".join(condition for name, condition in _CONDITIONS.items() if name in filters) or "true"
