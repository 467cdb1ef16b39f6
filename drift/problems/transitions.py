"""Decide which transition follows when a kind detects a problem, reports again, or clears. Pure.

After the event is stored the same call returns None; two leaders derive the same id.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ragtide.drift.problems.kinds import Kind
from ragtide.drift.problems.model import Problem, event_id
from ragtide.drift.settings import RuleSettings

EVENT_SPACING = timedelta(milliseconds=1)  # as fine as the table's times


class Transition(NamedTuple):
    """One transition of an episode; `attributes` are added to the details."""

    event: str
    event_id: str
    episode: int
    at: datetime
    attributes: Mapping[str, Any]


def opened_by(id_: str, kind: Kind, before: Problem | None, settings: RuleSettings, now: datetime) -> Transition | None:
    """Return the transition when a kind detects: opened, reopened within the flap interval, or kind_opened.

    `before` is the last episode of the problem with this id. None if the kind is active already.
    """
    if before is None:
        return _transition(id_, "opened", 1, before, settings, now)
    if before.state == "pending":
        return _transition(id_, "opened", before.episode, before, settings, now)
    if before.state == "open":
        kind_state = before.by_kind.get(kind)
        if kind_state is not None and kind_state.active:
            return None
        openings = 1 if kind_state is None else kind_state.openings + 1
        return _transition(id_, "kind_opened", before.episode, before, settings, now, kind, openings)
    if within_flap_interval(before, settings, now):
        return _transition(id_, "reopened", before.episode, before, settings, now, before.openings + 1)
    return _transition(id_, "opened", before.episode + 1, before, settings, now)


def cleared_by(kind: Kind, problem: Problem, settings: RuleSettings, now: datetime) -> Transition | None:
    """Return the transition when a kind clears: resolved if it was the last active one and the problem is not flapping.

    Otherwise kind_cleared; None if the kind was not active.
    """
    if problem.state != "open" or kind not in problem.active_kinds:
        return None
    if problem.active_kinds == (kind,) and not _is_flapping(problem, settings, now):
        return _transition(problem.problem_id, "resolved", problem.episode, problem, settings, now, problem.openings)
    openings = problem.by_kind[kind].openings
    return _transition(problem.problem_id, "kind_cleared", problem.episode, problem, settings, now, kind, openings)


def flap_timeout(problem: Problem, settings: RuleSettings, now: datetime) -> Transition | None:
    """Return the transition that resolves a problem that flapped, if no kind was active for long enough."""
    quiet = problem.all_clear_since
    if quiet is None or (now - quiet).total_seconds() < settings.flapping_quiet_s:
        return None
    return _transition(problem.problem_id, "resolved", problem.episode, problem, settings, now, problem.openings)


def updated_by(kind: Kind, problem: Problem, settings: RuleSettings, now: datetime, *what: object) -> Transition | None:
    """Return an update, at most every `update_every_s`; `what` distinguishes one update from another."""
    if (now - problem.by_kind[kind].at).total_seconds() < settings.update_every_s:
        return None
    return _transition(problem.problem_id, "updated", problem.episode, problem, settings, now, *what)


def make_transition(
    event: str, problem_id: str, episode: int, before: Problem | None, now: datetime, *what: object, **attributes: Any
) -> Transition:
    """Make a transition at an instant of its own, as events are ordered by time."""
    at = now if before is None else max(now, before.last_event_at + EVENT_SPACING)
    return Transition(event, event_id(problem_id, episode, event, *what), episode, at, attributes)


def within_flap_interval(resolved: Problem, settings: RuleSettings, now: datetime) -> bool:
    """Tell whether a detection now belongs to the episode that was resolved."""
    at = resolved.resolved_at
    return at is not None and (now - at).total_seconds() <= settings.flap_s


def _transition(
    problem_id: str,
    event: str,
    episode: int,
    before: Problem | None,
    settings: RuleSettings,
    now: datetime,
    *what: object,
) -> Transition:
    attributes: dict[str, Any] = {}
    if before is not None and _is_flapping(before, settings, now):
        attributes["flapping"] = _recent_openings(before, settings, now)
    return make_transition(event, problem_id, episode, before, now, *what, **attributes)


def _is_flapping(problem: Problem, settings: RuleSettings, now: datetime) -> bool:
    return _recent_openings(problem, settings, now) > settings.flapping_openings


def _recent_openings(problem: Problem, settings: RuleSettings, now: datetime) -> int:
    since = now - timedelta(seconds=settings.flapping_within_s)
    return sum(at > since for at in problem.openings_at)
