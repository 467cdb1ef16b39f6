"""Group problems with one cause: the problem that explains most is the parent, the others are its symptoms. Pure.

Groups follow from the problems and the clock alone. A symptom whose parent has resolved is still expected for a while:
as long as its check looks back at traffic of the fault, and a little longer. One that outlasts that stands alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import chain
from operator import attrgetter
from typing import Literal, NamedTuple, get_args

from ragtide.drift.problems.classification import LEAK_TYPES
from ragtide.drift.problems.inhibition import (
    COINCIDENT,
    INHIBITING_ASPECTS,
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
    "storage", "jobs", "judge", "fleet", "missing", "error", "coverage",
    "failure", "retrieval", "generation", "speed", "cost", "leak", "harm", "traffic", "consistency", "finding",
]  # fmt: skip
_STAGE_OF_ASPECT: Mapping[str, Stage] = {
    "storage": "storage",
    "jobs": "jobs",
    "judge": "judge",
    "fleet": "fleet",
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
FLEET_STAGES: tuple[Stage, ...] = ("failure", "retrieval", "generation", "speed", "cost", "harm", "traffic")
_LEADS_TO: Mapping[Stage, tuple[Stage, ...]] = {
    "storage": ("storage", "jobs", "missing", "error", "coverage"),
    "jobs": ("jobs", "coverage"),
    "judge": ("failure", "retrieval", "generation", "harm", "consistency"),  # of its scores; a leak stands alone
    "fleet": FLEET_STAGES,
    "missing": ("missing", "failure", "retrieval", "generation", *_ANSWER_STAGES, "harm", "traffic"),
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
_EVERYWHERE = _ALL_TRAFFIC = ("", "")
_OF_NO_APP: tuple[Stage, ...] = ("judge", "fleet")  # each is a place of its own; their change lies in a window
_Slot = tuple[object, ...]  # application and environment, then segment and time
_ALL = (None,)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIMULTANEOUS = timedelta(minutes=10)  # onsets of one fault, besides the length of the intervals that were judged
_LOOKBACK: Mapping[Stage, timedelta] = {  # these look at so much traffic at once: their onset is not known, only later
    "consistency": timedelta(days=1),
    "finding": timedelta(hours=1),
}
_OUTLASTS = timedelta(minutes=15)  # after its parent's end a symptom is still expected to end
LONGEST_EXPECTED = max(COINCIDENT, _OUTLASTS + max(_LOOKBACK.values()))  # no symptom outlasts its parent by more
_rank = attrgetter("rank")


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
    return problem.type in LEAK_TYPES


@dataclass(frozen=True, slots=True)
class _Node:
    """A problem with all that is compared of it, computed once: pairs of problems are many."""

    problem: Problem
    key: EpisodeKey
    stage: Stage
    evaluator: str
    segment: tuple[str, str]  # of traffic; flips, findings and the like have something else there
    onset: datetime
    changed_after: datetime  # of no application: the begin of a window in which it changed; anything else: its onset
    changed_by: datetime
    interval: timedelta  # how exactly the onset is known: where traffic is low, windows are pooled
    opened_at: datetime
    resolved_at: datetime | None
    rank: tuple[int, bool, datetime, str, str, int]  # of causes

    @classmethod
    def of(cls, problem: Problem) -> "_Node":
        key, stage, window = EpisodeKey.of(problem), stage_of(problem), problem.evidence.window
        with_segment = problem.aspect in SEGMENT_ASPECTS
        segment = (problem.segment, problem.segment_value) if with_segment else _ALL_TRAFFIC
        opened_at = problem.opened_at or problem.first_seen_at
        change = window if stage in _OF_NO_APP else None
        return cls(
            problem=problem,
            key=key,
            stage=stage,
            evaluator=evaluator_of(problem),
            segment=segment,
            onset=problem.onset,
            changed_after=problem.onset if change is None else change.start,
            changed_by=problem.onset if change is None else change.end,
            interval=timedelta() if window is None else window.end - window.start,
            opened_at=opened_at,
            resolved_at=problem.resolved_at,
            # By stage, the whole before its segments, what opened first; no figure that may move later.
            rank=(_ORDER.index(stage), segment != _ALL_TRAFFIC, opened_at, problem.metric, *key),
        )

    @property
    def places(self) -> list[tuple[str, str]]:
        """Where its causes may lie, and where it may be the cause of others."""
        if self.stage in _OF_NO_APP:
            return [("", self.stage)]
        own = [] if self.stage in _SYSTEM else [(self.problem.app, self.problem.environment)]
        return [*own, *([_EVERYWHERE] if self.stage in (*_SYSTEM, *_ACROSS_APPS) else [])]

    def kept_at(self, width: timedelta) -> Iterator[_Slot]:
        """Where its symptoms look for it: what stops all traffic under its place, others under segment and onset."""
        stops = self.stage in (*_SYSTEM, *_ACROSS_APPS, *_OF_NO_APP)
        of_traffic = () if stops else (self.segment, (self.onset - _EPOCH) // width)
        return ((place, *rest) for place in self.places for rest in (of_traffic, _ALL))

    def sought_at(self, width: timedelta) -> Iterator[_Slot]:
        """Where its causes are kept."""
        of_no_app = [(("", stage), *_ALL) for stage in _OF_NO_APP if self.stage in _LEADS_TO[stage]]
        if self.stage in _LOOKBACK:
            return chain(of_no_app, ((place, *_ALL) for place in self.places))
        segments, slot = {_ALL_TRAFFIC, self.segment}, (self.onset - _EPOCH) // width
        near = [(segment, when) for segment in segments for when in (slot - 1, slot, slot + 1)]
        return chain(of_no_app, ((place, *rest) for place in self.places for rest in ((), *near)))


def parents(problems: Iterable[Problem], now: datetime) -> dict[EpisodeKey, Problem]:
    """Return the parent of each symptom among these problems; it has no parent itself.

    Parent and symptom were open at one time, or the symptom's check looked back at the fault. A parent that has
    resolved keeps them for as long as they are expected.
    """
    ordered = sorted((_Node.of(one) for one in problems if one.state != "pending"), key=_rank)
    # Onsets of problems that explain each other lie no farther apart.
    intervals = (one.interval for one in ordered if one.stage not in _OF_NO_APP)  # their symptoms look at all times
    width = max(COINCIDENT, _SIMULTANEOUS + max(intervals, default=timedelta()))
    causes: dict[_Slot, list[_Node]] = {}
    found: dict[EpisodeKey, _Node] = {}
    for one in ordered:
        near = [causes[where] for where in one.sought_at(width) if where in causes]
        for cause in near[0] if len(near) == 1 else merge(*near, key=_rank):
            if not _explains(cause, one, now):
                continue
            root = found.get(cause.key, cause)
            if root is cause or root.stage == "fleet" or _explains(root, one, now) or _is_part_of(cause, one):
                found[one.key] = root
                break
        for where in one.kept_at(width):
            causes.setdefault(where, []).append(one)
    return {key: parent.problem for key, parent in found.items()}


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


def _explains(cause: _Node, other: _Node, now: datetime) -> bool:
    """Whether `other` follows from `cause`, as far as both are known."""
    one, two = cause.problem, other.problem
    if one.problem_id == two.problem_id:  # another episode
        return False
    may_inhibit = one.aspect in INHIBITING_ASPECTS or (one.metric == two.metric and one.aspect == two.aspect)
    if may_inhibit and inhibits(one, two):
        outlasts = COINCIDENT if one.aspect == two.aspect else timedelta()
        explains = _was_open_with(cause, other, now, outlasts)
    else:
        began = _began_together(cause, other)
        explains = began and _follows(cause, other) and _was_open_with(cause, other, now, _OUTLASTS)
    return explains and ProblemKey.of(one) != ProblemKey.of(two)


def _is_part_of(cause: _Node, other: _Node) -> bool:
    """Whether the other says the same as its cause, so that it has the cause's parent whatever that is."""
    return inhibits(cause.problem, other.problem) or (other.stage in _LOOKBACK and cause.evaluator == other.evaluator)


def _follows(cause: _Node, other: _Node) -> bool:
    """Whether such a problem at such a place leads to the other."""
    before, after = cause.stage, other.stage
    if OBJECTIVE in (cause.problem.segment, other.problem.segment):
        return False
    same_evaluator = cause.evaluator == other.evaluator
    if after == "finding":
        return cause.problem.aspect == "level" and same_evaluator and _same_place(cause, other)
    same_level = after == "consistency" and cause.problem.aspect == "level" and same_evaluator
    if after not in _LEADS_TO.get(before, ()) and not same_level:
        return False
    if before in _SYSTEM or before == "fleet":
        return True
    if before == "judge":
        return same_evaluator
    if before in _ACROSS_APPS:
        return before == "missing" or same_evaluator
    return _same_place(cause, other) and _same_traffic(cause, other)


def _same_place(cause: _Node, other: _Node) -> bool:
    one, two = cause.problem, other.problem
    return (one.app, one.environment) == (two.app, two.environment)


def _same_traffic(cause: _Node, other: _Node) -> bool:
    """Whether the cause touches the traffic of the other: its model, and its segment."""
    one, two = cause.problem, other.problem
    if one.metric == two.metric and one.aspect == two.aspect and not same_direction(one, two):
        return False
    same_model = one.model == two.model or "" in (one.model, two.model)
    if not (same_model or one.metric == two.metric or cause.stage in _ACROSS_MODELS):
        return False
    return cause.segment in (_ALL_TRAFFIC, other.segment)


def _began_together(cause: _Node, other: _Node) -> bool:
    stage = other.stage
    if stage == "finding":  # reports the same as the scores of its evaluator, for as long as these are bad
        return other.opened_at >= cause.onset - _SIMULTANEOUS
    if stage in _LOOKBACK:  # bad answers differ from good ones, before the fault and after it
        changes = [(cause.changed_after, cause.changed_by)]
        changes += [] if cause.resolved_at is None else [(cause.resolved_at, cause.resolved_at)]
        return any(after - _SIMULTANEOUS <= other.opened_at <= by + _LOOKBACK[stage] for after, by in changes)
    if cause.stage in _OF_NO_APP:
        tolerance = _SIMULTANEOUS + other.interval
        return cause.changed_after - tolerance <= other.onset <= cause.changed_by + tolerance
    return abs(cause.onset - other.onset) <= _SIMULTANEOUS + max(cause.interval, other.interval)


def _was_open_with(cause: _Node, other: _Node, now: datetime, outlasts: timedelta) -> bool:
    """Whether the other opened while traffic of the cause was judged, and did not outlast it by more than expected."""
    if other.resolved_at is not None and cause.opened_at > other.resolved_at:
        return False
    if cause.resolved_at is None:
        return True
    lookback = _LOOKBACK.get(other.stage, timedelta())
    if other.opened_at > cause.resolved_at + lookback:
        return False
    expected_until = cause.resolved_at + lookback + outlasts
    return now < expected_until if other.resolved_at is None else other.resolved_at <= expected_until
