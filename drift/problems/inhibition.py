"""Which problems may share one message, and which are to be expected while another one is open. Pure."""

from collections.abc import Mapping
from datetime import timedelta

from ragtide.drift.problems.model import EventRow, Problem
from ragtide.drift.settings import SEVERITIES

INHIBITED_BY_APP = ("coverage", "inputs")
INHIBITED_BY_EVALUATOR: Mapping[str, tuple[str, ...]] = {
    "error": ("coverage", "level", "flip", "inconsistency"),
    "coverage": ("level", "flip", "inconsistency"),
}
INHIBITING_ASPECTS = frozenset(("missing", *INHIBITED_BY_EVALUATOR))  # of these, problems of other aspects
SEGMENT_ASPECTS = ("level", "coverage", "inputs")  # aspects that windows of segments are judged by, too
OBJECTIVE = "objective"  # no segment of the traffic: a budget that burns is told whatever else is
COINCIDENT = timedelta(hours=1)  # what begins and ends within so long of the whole is the same move


def group_key(problem: Problem | EventRow) -> str:
    """The same for problems that one message may tell of: one application's, with one model and of one type."""
    return "/".join((problem.app, problem.environment, problem.model, problem.type))


def is_segment_of(whole: Problem, other: Problem) -> bool:
    """Whether it is the same move in a segment: within an hour of the whole's, the same way, and no worse."""
    if whole.aspect not in SEGMENT_ASPECTS or whole.metric != other.metric or other.segment in ("", OBJECTIVE):
        return False
    coincident = abs(whole.onset - other.onset) <= COINCIDENT
    return (
        coincident
        and same_direction(whole, other)
        and SEVERITIES.index(other.severity) <= SEVERITIES.index(whole.severity)
    )


def inhibits(cause: Problem, other: Problem) -> bool:
    """Whether `other` is to be expected while `cause` is open.

    An application that sends nothing has no scores to be covered; an evaluator that fails scores too few records, and
    the few that it scores say little of the level. A metric that moves as a whole moves in the segments too; which of
    them it comes from is told of the whole.
    """
    if (cause.app, cause.environment) != (other.app, other.environment) or cause.problem_id == other.problem_id:
        return False
    if cause.model not in ("", other.model) or cause.segment:
        return False
    if cause.aspect == other.aspect:
        return is_segment_of(cause, other)
    if cause.aspect == "missing":
        return other.aspect in INHIBITED_BY_APP
    same_evaluator = evaluator_of(cause) == evaluator_of(other)
    return same_evaluator and other.aspect in INHIBITED_BY_EVALUATOR.get(cause.aspect, ())


def same_direction(one: Problem, other: Problem) -> bool:
    """Whether both values rose or both fell; also where it is not known of one."""
    directions = {direction for direction in (_direction(one), _direction(other)) if direction is not None}
    return len(directions) <= 1


def _direction(problem: Problem) -> bool | None:
    """Whether it rose; None where nothing is known of before."""
    value, baseline = problem.evidence.value, problem.evidence.baseline
    return None if value is None or baseline is None else value > baseline


def evaluator_of(problem: Problem) -> str:
    """Of metrics `evaluator.metric`."""
    return problem.metric.partition(".")[0]
