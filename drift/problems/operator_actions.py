"""What a person says of a problem: taken, muted, or the new normal. Each word is an event: who, when and why."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args

from ragtide.drift.attributes import evidence_of
from ragtide.drift.problems.kinds import REBASELINABLE
from ragtide.drift.problems.model import EventRow, Problem, event_id
from ragtide.drift.problems.report import ProblemKey, event_row, key_of, last_details
from ragtide.drift.problems.store import load_events
from ragtide.drift.problems.transitions import EVENT_SPACING, make_transition
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database

OperatorAction = Literal["acked", "unacked", "muted", "unmuted", "accepted"]
OPERATOR_ACTIONS: tuple[OperatorAction, ...] = get_args(OperatorAction)


class Acceptance(NamedTuple):
    """A person said that what these kinds see at the place since then is the new normal: a new baseline begins."""

    key: ProblemKey
    kinds: tuple[str, ...]
    since: datetime
    at: datetime
    by: str
    why: str


def record_action(
    database: Database, problem: Problem, action: OperatorAction, by: str, now: datetime, why: str, **attributes: Any
) -> None:
    """The word is stored when this returns. `now` is the server's time, as jobs have it.

    Raises ConfigError where there is nothing that it could be said of: what is resolved waits for nobody, and only what
    is acknowledged or muted can be so no longer.
    """
    nothing = {
        "acked": problem.state == "resolved" and "is resolved; what comes back can be acknowledged then",
        "unacked": not problem.acked_by and "is not acknowledged",
        "unmuted": not problem.is_muted(now) and "is not muted",
    }
    if why_not := nothing.get(action):
        raise ConfigError(f"problem {problem.problem_id} {why_not}")
    database.insert("problem_events", [_row(problem, action, by, now, why, **attributes)])


def accept(database: Database, problem: Problem, by: str, now: datetime, why: str) -> list[EventRow]:
    """What kinds that compare with a baseline see is the new normal when this returns; the events, stored.

    The problem is resolved, unless other kinds hold: those are left. Raises ConfigError where it is not open or no such
    kind holds: what a threshold calls bad is changed by a rule, and a failure is mended.
    """
    accepted = [kind for kind in problem.active_kinds if kind in REBASELINABLE]
    if problem.state != "open":
        raise ConfigError(f"problem {problem.problem_id} is {problem.state}; only an open one can be accepted")
    if not accepted:
        raise ConfigError(
            f"problem {problem.problem_id} has no baseline to accept: its active kinds are "
            f"{', '.join(problem.active_kinds) or 'none'}. Only {', '.join(REBASELINABLE)} have baselines. "
            "To change a threshold, edit rules.overrides in the settings"
        )
    since = _onset(problem, accepted)
    events = [_row(problem, "accepted", by, now, why, since=since.isoformat(), kinds=accepted)]
    left = [kind for kind in problem.active_kinds if kind not in accepted]
    for number, kind in enumerate(accepted, 1):
        last = number == len(accepted) and not left
        event, what = ("resolved", (problem.openings,)) if last else ("eased", (kind, problem.by_kind[kind].openings))
        at = events[0].at + number * EVENT_SPACING
        transition = make_transition(event, problem.problem_id, problem.episode, problem, at, *what)
        events.append(event_row(key_of(problem), transition, last_details(problem, kind, accepted_by=by), 0, actor=by))
    database.insert("problem_events", events)
    return events


def acceptances(database: Database) -> list[Acceptance]:
    """All there are, the oldest first: whoever keeps a baseline begins it anew from `since` on."""
    rows = database.rows(
        f"SELECT {', '.join(ProblemKey._fields)}, attributes, at, actor FROM problem_events FINAL "
        "WHERE event = 'accepted' ORDER BY at, event_id"
    )
    found = []
    for row in rows:
        accepted = evidence_of(row["attributes"])
        key = ProblemKey(**{name: row[name] for name in ProblemKey._fields})
        since = accepted.since or row["at"]
        found.append(Acceptance(key, accepted.kinds, since, row["at"], row["actor"], accepted.why))
    return found


def history(database: Database, problem: Problem) -> Sequence[EventRow]:
    """What people said of all episodes of the problem, the oldest first; `attributes` has why."""
    rows = load_events(database, ids={problem.problem_id})
    return sorted((row for row in rows if row.event in OPERATOR_ACTIONS), key=lambda row: (row.at, row.event_id))


def _onset(problem: Problem, accepted: Sequence[str]) -> datetime:
    """When what these kinds see began. `drift` knows only on which day, so another's word comes before its."""
    exact = [kind for kind in accepted if kind != "drift"] or accepted
    return min(problem.by_kind[kind].evidence.since or problem.first_seen_at for kind in exact)


def _row(problem: Problem, action: OperatorAction, by: str, now: datetime, why: str, **attributes: Any) -> EventRow:
    at = max(now, problem.last_event_at + EVENT_SPACING)
    return EventRow(
        problem_id=problem.problem_id,
        event_id=event_id(problem.problem_id, problem.episode, action, at.isoformat(), by),
        event=action,
        episode=problem.episode,
        at=at,
        **key_of(problem)._asdict(),
        attributes=json.dumps({"why": why, **attributes}, sort_keys=True),
        actor=by,
    )
