"""Which problems are told together, and which are not told while another one explains them. Pure."""

from collections.abc import Iterable, Mapping

from drift.problems.problem import EventRow, Problem

_INHIBITED_BY_APP = ("coverage", "inputs")
_INHIBITED_BY_EVALUATOR: Mapping[str, tuple[str, ...]] = {
    "error": ("coverage", "level", "flip", "inconsistency"),
    "coverage": ("level", "flip", "inconsistency"),
}
INHIBITING = ("missing", *_INHIBITED_BY_EVALUATOR)  # aspects


def group_of(problem: Problem | EventRow) -> str:
    """The same for problems that one message may tell of: one application's, with one model and of one type."""
    return "/".join((problem.app, problem.environment, problem.model, problem.type))


def inhibits(cause: Problem, other: Problem) -> bool:
    """Whether `other` is to be expected while `cause` is open.

    An application that sends nothing has no scores to be covered; an evaluator that fails scores too few records, and
    the few that it scores say little of the level.
    """
    if (cause.app, cause.environment) != (other.app, other.environment) or cause.problem_id == other.problem_id:
        return False
    if cause.model not in ("", other.model) or cause.segment:
        return False
    if cause.aspect == "missing":
        return other.aspect in _INHIBITED_BY_APP
    same_evaluator = _evaluator(cause) == _evaluator(other)
    return same_evaluator and other.aspect in _INHIBITED_BY_EVALUATOR.get(cause.aspect, ())


def inhibited(problems: Iterable[Problem]) -> dict[str, tuple[str, ...]]:
    """Of these problems those that open ones among them explain: by id the ids of the latter, sorted."""
    known = list(problems)
    causes: dict[tuple[str, str], list[Problem]] = {}
    for one in known:
        if one.state == "open" and one.aspect in INHIBITING:
            causes.setdefault((one.app, one.environment), []).append(one)
    found = {}
    for one in known:
        explained_by = {
            cause.problem_id for cause in causes.get((one.app, one.environment), ()) if inhibits(cause, one)
        }
        if explained_by:
            found[one.problem_id] = tuple(sorted(explained_by))
    return found


def _evaluator(problem: Problem) -> str:
    """Of metrics `evaluator.metric`."""
    return problem.metric.partition(".")[0]
