"""Which problems are told together, and which are not told while another one explains them. Pure."""

from collections.abc import Iterable, Mapping
from datetime import timedelta

from ragtide.drift.problems.chart import onset_of
from ragtide.drift.problems.model import EventRow, Problem, problem_id
from ragtide.drift.problems.report import key_of
from ragtide.drift.settings import SEVERITIES

_INHIBITED_BY_APP = ("coverage", "inputs")
_INHIBITED_BY_EVALUATOR: Mapping[str, tuple[str, ...]] = {
    "error": ("coverage", "level", "flip", "inconsistency"),
    "coverage": ("level", "flip", "inconsistency"),
}
SEGMENT_ASPECTS = ("level", "coverage", "inputs")  # aspects that windows of segments are judged by, too
_OBJECTIVE = "objective"  # no segment of the traffic: a budget that burns is told whatever else is
COINCIDENT = timedelta(hours=1)  # what begins and ends within so long of the whole is the same move
INHIBITING_ASPECTS = ("missing", *_INHIBITED_BY_EVALUATOR, *SEGMENT_ASPECTS)  # aspects


def group_key(problem: Problem | EventRow) -> str:
    """The same for problems that one message may tell of: one application's, with one model and of one type."""
    return "/".join((problem.app, problem.environment, problem.model, problem.type))


def is_segment_of(whole: Problem, other: Problem) -> bool:
    """Whether it is the same move in a segment: within an hour of the whole's, the same way, and no worse."""
    if whole.aspect not in SEGMENT_ASPECTS or whole.metric != other.metric or other.segment in ("", _OBJECTIVE):
        return False
    directions = {direction for direction in (_direction(whole), _direction(other)) if direction is not None}
    coincident = abs(onset_of(whole) - onset_of(other)) <= COINCIDENT
    return coincident and len(directions) <= 1 and SEVERITIES.index(other.severity) <= SEVERITIES.index(whole.severity)


def parent_id(part: Problem) -> str:
    """The id that the same problem of all traffic has."""
    key = key_of(part)._replace(segment="", segment_value="")
    return problem_id(*key)


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
        return other.aspect in _INHIBITED_BY_APP
    same_evaluator = _evaluator(cause) == _evaluator(other)
    return same_evaluator and other.aspect in _INHIBITED_BY_EVALUATOR.get(cause.aspect, ())


def inhibited_by(problems: Iterable[Problem]) -> dict[str, tuple[str, ...]]:
    """Of these problems those that open ones among them explain: by id the ids of the latter, sorted."""
    known = list(problems)
    causes: dict[tuple[str, str], list[Problem]] = {}
    for one in known:
        if one.state == "open" and one.aspect in INHIBITING_ASPECTS and not one.segment:
            causes.setdefault((one.app, one.environment), []).append(one)
    found = {}
    for one in known:
        inhibitors = {cause.problem_id for cause in causes.get((one.app, one.environment), ()) if inhibits(cause, one)}
        if inhibitors:
            found[one.problem_id] = tuple(sorted(inhibitors))
    return found


def _direction(problem: Problem) -> bool | None:
    """Whether it rose; None where nothing is known of before."""
    value, baseline = problem.evidence.value, problem.evidence.baseline
    return None if value is None or baseline is None else value > baseline


def _evaluator(problem: Problem) -> str:
    """Of metrics `evaluator.metric`."""
    return problem.metric.partition(".")[0]
