"""Group problems with one cause: the problem that explains most is the parent, the others are its symptoms. Pure.

Groups follow from the problems and the clock alone. A symptom whose parent has resolved is still expected for a while:
as long as its check looks back at traffic of the fault, and a little longer. One that outlasts that stands alone.
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
from ragtide.drift.problems.report import ProblemKey
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
LONGEST_EXPECTED = max(COINCIDENT, _OUTLASTS + max(_LOOKBACK.values()))  # no symptom outlasts its parent by more


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


def is_leak(problem: Problem) -> bool:
    """Whether private data or a secret got out."""
    return stage_of(problem) == "leak"


def parents(problems: Iterable[Problem], now: datetime) -> dict[EpisodeKey, Problem]:
    """Return the parent of each symptom among these problems; it has no parent itself.

    Parent and symptom were open at one time, or the symptom's check looked back at the fault. A parent that has
    resolved keeps them for as long as they are expected.
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
            if root is cause or _explains(root, one, now) or _is_part_of(cause, one):
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

    def fold(self, problems: Sequence[Problem], among: Sequence[Problem] | None = None) -> list[Problem]:
        """Leave out each symptom whose parent is, in any episode, one of `among`; by default, of these problems."""
        known = {one.problem_id for one in (problems if among is None else among)}
        found = ((one, self.parent(one)) for one in problems)
        return [one for one, parent in found if parent is None or parent.problem_id not in known]

    def unfold(self, problems: Sequence[Problem]) -> list[Problem]:
        """Put symptoms after their parents."""
        shown = self.fold(problems)
        apart = {EpisodeKey.of(one) for one in shown}
        symptoms: dict[str, list[Problem]] = {}
        for one in problems:
            parent = self.parent(one)
            if parent is not None and EpisodeKey.of(one) not in apart:
                symptoms.setdefault(parent.problem_id, []).append(one)
        return [one for parent in shown for one in (parent, *symptoms.pop(parent.problem_id, ()))]


def group(problems: Sequence[Problem], now: datetime) -> Groups:
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


def _explains(cause: Problem, other: Problem, now: datetime) -> bool:
    """Whether `other` follows from `cause`, as far as both are known."""
    if cause.problem_id == other.problem_id:  # another episode
        return False
    if inhibits(cause, other):
        outlasts = COINCIDENT if cause.aspect == other.aspect else timedelta()
        explains = _was_open_with(cause, other, now, outlasts)
    else:
        explains = (
            _follows(cause, other) and _was_open_with(cause, other, now, _OUTLASTS) and _began_together(cause, other)
        )
    return explains and ProblemKey.of(cause) != ProblemKey.of(other)


def _is_part_of(cause: Problem, other: Problem) -> bool:
    """Whether the other says the same as its cause, so that it has the cause's parent whatever that is."""
    return inhibits(cause, other) or (stage_of(other) in _LOOKBACK and evaluator_of(cause) == evaluator_of(other))


def _follows(cause: Problem, other: Problem) -> bool:
    """Whether such a problem at such a place leads to the other."""
    before, after = stage_of(cause), stage_of(other)
    if OBJECTIVE in (cause.segment, other.segment):
        return False
    same_evaluator = evaluator_of(cause) == evaluator_of(other)
    if after == "finding":
        return cause.aspect == "level" and same_evaluator and _same_place(cause, other)
    same_level = after == "consistency" and cause.aspect == "level" and same_evaluator
    if after not in _LEADS_TO.get(before, ()) and not same_level:
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
    stage = stage_of(other)
    if stage == "finding":  # reports the same as the scores of its evaluator, for as long as these are bad
        return _opened_at(other) >= cause.onset - _SIMULTANEOUS
    if stage in _LOOKBACK:  # bad answers differ from good ones, before the fault and after it
        changed_at = (cause.onset, *([] if cause.resolved_at is None else [cause.resolved_at]))
        return any(-_SIMULTANEOUS <= _opened_at(other) - at <= _LOOKBACK[stage] for at in changed_at)
    tolerance = _SIMULTANEOUS + max(_interval(cause), _interval(other))
    return abs(cause.onset - other.onset) <= tolerance


def _interval(problem: Problem) -> timedelta:
    """How exactly the onset is known: where traffic is low, windows are pooled."""
    window = problem.evidence.window
    return timedelta() if window is None else window.end - window.start


def _was_open_with(cause: Problem, other: Problem, now: datetime, outlasts: timedelta) -> bool:
    """Whether the other opened while traffic of the cause was judged, and did not outlast it by more than expected."""
    if other.resolved_at is not None and _opened_at(cause) > other.resolved_at:
        return False
    if cause.resolved_at is None:
        return True
    lookback = _LOOKBACK.get(stage_of(other), timedelta())
    if _opened_at(other) > cause.resolved_at + lookback:
        return False
    expected_until = cause.resolved_at + lookback + outlasts
    return now < expected_until if other.resolved_at is None else other.resolved_at <= expected_until


def _opened_at(problem: Problem) -> datetime:
    return problem.opened_at or problem.first_seen_at
