"""Record operator actions on problems: acknowledge, mute, accept. Each is an event with who, when and why."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args

from ragtide.drift.attributes import evidence_of
from ragtide.drift.problems.kinds import REBASELINABLE
from ragtide.drift.problems.model import EventRow, Problem, event_id
from ragtide.drift.problems.report import ProblemKey, event_row, last_details
from ragtide.drift.problems.store import load_events
from ragtide.drift.problems.transitions import EVENT_SPACING, make_transition
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database

OperatorAction = Literal["acked", "unacked", "muted", "unmuted", "accepted"]
OPERATOR_ACTIONS: tuple[OperatorAction, ...] = get_args(OperatorAction)


class Acceptance(NamedTuple):
    """An operator accepted the change that these kinds see since then: a new baseline begins."""

    key: ProblemKey
    kinds: tuple[str, ...]
    since: datetime
    at: datetime
    by: str
    why: str


def record_action(
    database: Database, problem: Problem, action: OperatorAction, by: str, now: datetime, why: str, **attributes: Any
) -> None:
    """Store an action. `now` is the server's time.

    Raises `ConfigError` if the problem is resolved, or not acknowledged or muted as the action requires.
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
    """Accept the change that kinds with a baseline see, and return the stored events.

    The problem is resolved unless other kinds are active. Raises `ConfigError` if it is not open, or if no active kind
    has a baseline: thresholds are changed by rules.
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
        event = "resolved" if last else "kind_cleared"
        what = (problem.openings,) if last else (kind, problem.by_kind[kind].openings)
        at = events[0].at + number * EVENT_SPACING
        transition = make_transition(event, problem.problem_id, problem.episode, problem, at, *what)
        events.append(
            event_row(ProblemKey.of(problem), transition, last_details(problem, kind, accepted_by=by), 0, actor=by)
        )
    database.insert("problem_events", events)
    return events


def acceptances(database: Database) -> list[Acceptance]:
    """Load all acceptances, the oldest first; each starts a new baseline at `since`."""
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


def problem_history(database: Database, problem: Problem) -> Sequence[EventRow]:
    """Load operator actions on all episodes of the problem, the oldest first; `attributes` has the reason."""
    rows = load_events(database, ids={problem.problem_id})
    return sorted((row for row in rows if row.event in OPERATOR_ACTIONS), key=lambda row: (row.at, row.event_id))


def _onset(problem: Problem, accepted: Sequence[str]) -> datetime:
    """Return when the change of these kinds began. `drift` knows only the day, so another kind's start comes first."""
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
        **ProblemKey.of(problem)._asdict(),
        attributes=json.dumps({"why": why, **attributes}, sort_keys=True),
        actor=by,
    )
