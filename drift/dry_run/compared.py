"""What tried rules would have raised against what the running ones did raise in the same time."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple, get_args

from drift.dry_run.would_be import WouldBe
from drift.problems.folding import load_problems
from drift.problems.problem import Problem, State, Voice
from sinks.clickhouse.database import Database

_BY_DETECTORS = ("drift", "change_point", "input_drift")  # kinds
_OF_THE_MOMENT = ("disk", "retention", "job")  # segments of problems of no application that have no past


class Compared(NamedTuple):
    """Problem ids that only the tried rules raise, that both do, and the problems that only the running ones raised."""

    new: tuple[str, ...]
    same: tuple[str, ...]
    gone: tuple[Problem, ...]


def compared(
    database: Database, would_be: Iterable[WouldBe], first: datetime, until: datetime, *, detectors: bool
) -> Compared:
    """By problem, whichever its episode; of what was raised only what is tried, in [first, until).

    `detectors`: whether they are.
    """
    tried = tuple(dict.fromkeys(one.problem_id for one in would_be))
    ran = _raised(database, first, until, detectors)
    return Compared(
        tuple(id_ for id_ in tried if id_ not in ran),
        tuple(id_ for id_ in tried if id_ in ran),
        tuple(problem for id_, problem in ran.items() if id_ not in tried),
    )


def _raised(database: Database, first: datetime, until: datetime, detectors: bool) -> dict[str, Problem]:
    """By id, the newest episode of those in that time."""
    found: dict[str, Problem] = {}
    for problem in load_problems(database, states=get_args(State), every_episode=True):
        if not problem.app and problem.segment in _OF_THE_MOMENT:
            continue
        said = [voice for kind, voice in problem.voices.items() if detectors or kind not in _BY_DETECTORS]
        if any(voice.begun and _touches(voice, first, until) for voice in said):
            found.setdefault(problem.problem_id, problem)
    return found


def _touches(voice: Voice, first: datetime, until: datetime) -> bool:
    since, end = (datetime.fromisoformat(voice.attributes[name]) for name in ("since", "until"))
    return since < until and end > first
