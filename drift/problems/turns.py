"""Which event it is when a kind begins to see trouble at a place, says more of it, or sees it no more. Pure.

Whoever asks again after the event was stored gets none; two leaders that ask the same get the same id.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from drift.problems.problem import Kind, Problem, event_id
from drift.settings import RuleSettings

APART = timedelta(milliseconds=1)  # as fine as the table's times


class Turn(NamedTuple):
    """One event to come of an episode; `attributes` are said besides what the kind says."""

    event: str
    event_id: str
    episode: int
    at: datetime
    attributes: Mapping[str, Any]


def begins(id_: str, kind: Kind, before: Problem | None, settings: RuleSettings, now: datetime) -> Turn | None:
    """The kind sees trouble: a problem opens, is open again within the flap interval, or one more kind sees it.

    `before` is the last episode of the problem with this id. None where the kind holds already.
    """
    if before is None:
        return _turn(id_, "opened", 1, before, settings, now)
    if before.state == "pending":
        return _turn(id_, "opened", before.episode, before, settings, now)
    if before.state == "open":
        voice = before.voices.get(kind)
        if voice is not None and voice.holds:
            return None
        begun = 1 if voice is None else voice.begun + 1
        return _turn(id_, "joined", before.episode, before, settings, now, kind, begun)
    if may_reopen(before, settings, now):
        return _turn(id_, "reopened", before.episode, before, settings, now, before.openings + 1)
    return _turn(id_, "opened", before.episode + 1, before, settings, now)


def ends(kind: Kind, problem: Problem, settings: RuleSettings, now: datetime) -> Turn | None:
    """The kind sees it no more: resolved where it was the last, unless the problem flaps. None where it held not."""
    if problem.state != "open" or kind not in problem.holding:
        return None
    if problem.holding == (kind,) and not _flaps(problem, settings, now):
        return _turn(problem.problem_id, "resolved", problem.episode, problem, settings, now, problem.openings)
    begun = problem.voices[kind].begun
    return _turn(problem.problem_id, "eased", problem.episode, problem, settings, now, kind, begun)


def settles(problem: Problem, settings: RuleSettings, now: datetime) -> Turn | None:
    """A problem that flapped is resolved where no kind saw it for long enough."""
    quiet = problem.quiet_since
    if quiet is None or (now - quiet).total_seconds() < settings.flapping_quiet_s:
        return None
    return _turn(problem.problem_id, "resolved", problem.episode, problem, settings, now, problem.openings)


def tells_more(kind: Kind, problem: Problem, settings: RuleSettings, now: datetime, *what: object) -> Turn | None:
    """What a kind says is stated anew, unless it spoke just now; `what` tells one update from another."""
    if (now - problem.voices[kind].at).total_seconds() < settings.update_every_s:
        return None
    return _turn(problem.problem_id, "updated", problem.episode, problem, settings, now, *what)


def turn_of(
    event: str, problem_id: str, episode: int, before: Problem | None, now: datetime, *what: object, **said: Any
) -> Turn:
    """An event of this episode, at a moment of its own: the order of events is that of their times."""
    at = now if before is None else max(now, before.last_event_at + APART)
    return Turn(event, event_id(problem_id, episode, event, *what), episode, at, said)


def may_reopen(resolved: Problem, settings: RuleSettings, now: datetime) -> bool:
    """Whether trouble that begins now is the same episode as the one that was resolved."""
    at = resolved.resolved_at
    return at is not None and (now - at).total_seconds() <= settings.flap_s


def _turn(
    problem_id: str,
    event: str,
    episode: int,
    before: Problem | None,
    settings: RuleSettings,
    now: datetime,
    *what: object,
) -> Turn:
    said: dict[str, Any] = {}
    if before is not None and _flaps(before, settings, now):
        said["flapping"] = _openings(before, settings, now)
    return turn_of(event, problem_id, episode, before, now, *what, **said)


def _flaps(problem: Problem, settings: RuleSettings, now: datetime) -> bool:
    return _openings(problem, settings, now) > settings.flapping_openings


def _openings(problem: Problem, settings: RuleSettings, now: datetime) -> int:
    since = now - timedelta(seconds=settings.flapping_within_s)
    return sum(at > since for at in problem.openings_at)
