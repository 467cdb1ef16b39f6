"""Group problems with one cause: the problem that explains most is the parent, the others are its symptoms. Pure.

Groups follow from the problems alone, so they are computed where problems are read and nothing is stored. A problem is
a symptom only as long as its parent is open; one that outlasts its parent stands alone again.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import merge
from typing import Literal, NamedTuple, get_args

from ragtide.drift.problems.inhibition import (
    COINCIDENT,
    OBJECTIVE,
    SEGMENT_ASPECTS,
    evaluator_of,
    inhibits,
    same_direction,
)
from ragtide.drift.problems.model import Problem
from ragtide.drift.settings import SEVERITIES, Severity

Stage = Literal[  # of a fault's way from the system through an application to its figures, in this order
    "storage", "jobs", "missing", "error", "coverage",
    "failure", "retrieval", "generation", "speed", "cost", "leak", "harm", "traffic", "consistency", "finding",
]  # fmt: skip
_STAGE_OF_ASPECT: Mapping[str, Stage] = {
    "storage": "storage",
    "jobs": "jobs",
    "missing": "missing",
    "error": "error",
    "coverage": "coverage",
    "flip": "consistency",
    "inconsistency": "consistency",
    "finding": "finding",
    "inputs": "traffic",
}
_STAGE_OF_METRIC: Mapping[str, Stage] = {
    "operations.empty_contexts": "retrieval",
    "operations.empty_answer": "generation",
}
_STAGE_OF_TYPE: Mapping[str, Stage] = {
    "runtime": "failure",
    "retrieval": "retrieval",
    "accuracy": "generation",
    "efficiency": "speed",
    "cost": "cost",
    "privacy": "leak",
    "security": "leak",
    "fairness": "harm",
}
_INPUTS = "inputs"  # the evaluator that records lengths and numbers of what goes in and out
_ANSWER_STAGES: tuple[Stage, ...] = ("speed", "cost", "consistency")  # follow from how an answer is made
_LEADS_TO: Mapping[Stage, tuple[Stage, ...]] = {
    "storage": ("storage", "jobs", "missing", "error", "coverage"),
    "jobs": ("jobs", "coverage"),
    "missing": ("missing",),
    "error": ("error",),
    "coverage": ("coverage",),
    "failure": ("failure", "retrieval", "generation", *_ANSWER_STAGES),
    "retrieval": ("retrieval", "generation", *_ANSWER_STAGES),
    "generation": ("generation", *_ANSWER_STAGES),
    "speed": ("speed", "cost"),
    "cost": ("cost",),
    "leak": ("leak",),
    "harm": ("harm",),
    "consistency": ("consistency",),
}
_ORDER: tuple[Stage, ...] = get_args(Stage)
_SYSTEM: tuple[Stage, ...] = ("storage", "jobs")  # its problems have no application
_ACROSS_APPS: tuple[Stage, ...] = ("missing", "error", "coverage")  # the same in many applications is one system fault
_ACROSS_MODELS: tuple[Stage, ...] = ("failure", "retrieval")  # what an application does before and around its models
_EVERYWHERE = ("", "")
_SIMULTANEOUS = timedelta(minutes=10)  # onsets of one fault, besides the length of the intervals that were judged
_LOOKBACK: Mapping[Stage, timedelta] = {  # these look at so much traffic at once: their onset is not known, only later
    "consistency": timedelta(days=1),
    "finding": timedelta(hours=1),
}
_OUTLASTS = timedelta(minutes=15)  # after its parent's end a symptom is still expected to end


class EpisodeKey(NamedTuple):
    """One episode of a problem."""

    problem_id: str
    episode: int

    @classmethod
    def of(cls, problem: Problem) -> "EpisodeKey":
        """The key of a loaded problem."""
        return cls(problem.problem_id, problem.episode)


def stage_of(problem: Problem) -> Stage:
    """Where on a fault's way the problem lies."""
    if problem.aspect in _STAGE_OF_ASPECT:
        return _STAGE_OF_ASPECT[problem.aspect]
    if evaluator_of(problem) == _INPUTS:
        return "traffic"
    return _STAGE_OF_METRIC.get(problem.metric) or _STAGE_OF_TYPE.get(problem.type, "generation")


def parents(problems: Iterable[Problem], now: datetime | None = None) -> dict[EpisodeKey, Problem]:
    """Return the parent of each symptom among these problems; it has no parent itself.

    An open problem has an open parent, a resolved one a parent that was open with it. With `now`, a parent that has
    resolved also counts for a while: symptoms end later.
    """
    ordered = sorted((one for one in problems if one.state != "pending"), key=_rank)
    by_place: dict[tuple[str, str], list[Problem]] = {}
    found: dict[EpisodeKey, Problem] = {}
    for one in ordered:
        places = _places(one)
        for cause in merge(*(by_place.get(place, ()) for place in places), key=_rank):
            if not _explains(cause, one, now):
                continue
            root = found.get(EpisodeKey.of(cause), cause)
            if root is cause or _explains(root, one, now) or inhibits(cause, one):
                found[EpisodeKey.of(one)] = root
                break
        for place in places:
            by_place.setdefault(place, []).append(one)
    return found


class Groups(NamedTuple):
    """The parent of each symptom, and the symptoms of each parent in the order in which problems were given."""

    parents: Mapping[EpisodeKey, Problem]
    symptoms: Mapping[EpisodeKey, Sequence[Problem]]

    def parent(self, problem: Problem) -> Problem | None:
        """Return the problem that explains it; None if it stands alone."""
        return self.parents.get(EpisodeKey.of(problem))

    def symptoms_of(self, problem: Problem) -> Sequence[Problem]:
        """Return the problems that it explains."""
        return self.symptoms.get(EpisodeKey.of(problem), ())

    def severity(self, problem: Problem) -> Severity:
        """Return the highest severity of the problem and its symptoms."""
        return max((one.severity for one in (problem, *self.symptoms_of(problem))), key=SEVERITIES.index)

    def fold(self, problems: Sequence[Problem]) -> list[Problem]:
        """Leave out each symptom whose parent is among these problems."""
        shown = {EpisodeKey.of(one) for one in problems}
        found = ((one, self.parent(one)) for one in problems)
        return [one for one, parent in found if parent is None or EpisodeKey.of(parent) not in shown]

    def unfold(self, problems: Sequence[Problem]) -> list[Problem]:
        """Put symptoms after their parents."""
        shown = {EpisodeKey.of(one) for one in problems}
        folded = self.fold(problems)
        return [
            one
            for parent in folded
            for one in (parent, *(each for each in self.symptoms_of(parent) if EpisodeKey.of(each) in shown))
        ]


def group(problems: Sequence[Problem], now: datetime | None = None) -> Groups:
    """Group these problems by `parents`."""
    parent_of = parents(problems, now)
    symptoms: dict[EpisodeKey, list[Problem]] = {}
    for one in problems:
        parent = parent_of.get(EpisodeKey.of(one))
        if parent is not None:
            symptoms.setdefault(EpisodeKey.of(parent), []).append(one)
    return Groups(parent_of, symptoms)


def speaks_for(parent: Problem, symptom: Problem) -> bool:
    """Whether nothing has to be announced of the symptom: it is no more severe, or means nothing beside its parent."""
    return inhibits(parent, symptom) or SEVERITIES.index(symptom.severity) <= SEVERITIES.index(parent.severity)


def _rank(problem: Problem) -> tuple[int, bool, datetime, str, str, int]:
    """Order causes: by stage, the whole before its segments, what opened first; no figure that may move later."""
    segmented = _traffic_segment(problem) != ("", "")
    return (
        _ORDER.index(stage_of(problem)),
        segmented,
        _opened_at(problem),
        problem.metric,
        problem.problem_id,
        problem.episode,
    )


def _places(problem: Problem) -> list[tuple[str, str]]:
    """Where causes of the problem may lie, and where it may be the cause of others."""
    stage = stage_of(problem)
    own = [] if stage in _SYSTEM else [(problem.app, problem.environment)]
    return [*own, *([_EVERYWHERE] if stage in (*_SYSTEM, *_ACROSS_APPS) else [])]


def _explains(cause: Problem, other: Problem, now: datetime | None) -> bool:
    """Whether `other` follows from `cause`, as far as both are known."""
    if cause.problem_id == other.problem_id:  # another episode
        return False
    if inhibits(cause, other):
        outlasts = COINCIDENT if cause.aspect == other.aspect else timedelta()
        return _was_open_with(cause, other, now, outlasts)
    return _follows(cause, other) and _was_open_with(cause, other, now, _OUTLASTS) and _began_together(cause, other)


def _follows(cause: Problem, other: Problem) -> bool:
    """Whether such a problem at such a place leads to the other."""
    before, after = stage_of(cause), stage_of(other)
    if OBJECTIVE in (cause.segment, other.segment):
        return False
    same_evaluator = evaluator_of(cause) == evaluator_of(other)
    if after == "finding":
        return cause.aspect == "level" and same_evaluator and _same_place(cause, other)
    if after not in _LEADS_TO.get(before, ()):
        return False
    if before in _SYSTEM:
        return True
    if before in _ACROSS_APPS:
        return before == "missing" or same_evaluator
    return _same_place(cause, other) and _same_traffic(cause, other)


def _same_place(cause: Problem, other: Problem) -> bool:
    return (cause.app, cause.environment) == (other.app, other.environment)


def _same_traffic(cause: Problem, other: Problem) -> bool:
    """Whether the cause touches the traffic of the other: its model, and its segment."""
    if cause.metric == other.metric and cause.aspect == other.aspect and not same_direction(cause, other):
        return False
    same_model = cause.model == other.model or "" in (cause.model, other.model)
    if not (same_model or cause.metric == other.metric or stage_of(cause) in _ACROSS_MODELS):
        return False
    return _traffic_segment(cause) in (("", ""), _traffic_segment(other))


def _traffic_segment(problem: Problem) -> tuple[str, str]:
    """The segment of traffic; flips, findings and the like have something else there."""
    return (problem.segment, problem.segment_value) if problem.aspect in SEGMENT_ASPECTS else ("", "")


def _began_together(cause: Problem, other: Problem) -> bool:
    lookback = _LOOKBACK.get(stage_of(other))
    if lookback is not None:
        return -_SIMULTANEOUS <= _opened_at(other) - cause.onset <= lookback
    tolerance = _SIMULTANEOUS + max(_interval(cause), _interval(other))
    return abs(cause.onset - other.onset) <= tolerance


def _interval(problem: Problem) -> timedelta:
    """How exactly the onset is known: where traffic is low, windows are pooled."""
    window = problem.evidence.window
    return timedelta() if window is None else window.end - window.start


def _was_open_with(cause: Problem, other: Problem, now: datetime | None, outlasts: timedelta) -> bool:
    """Whether both were open at a time, and the cause still is, or ended less than `outlasts` ago."""
    if other.resolved_at is not None and _opened_at(cause) > other.resolved_at:
        return False
    if cause.resolved_at is None:
        return True
    if _opened_at(other) > cause.resolved_at:
        return False
    return other.resolved_at is not None or (now is not None and now - cause.resolved_at < outlasts)


def _opened_at(problem: Problem) -> datetime:
    return problem.opened_at or problem.first_seen_at
