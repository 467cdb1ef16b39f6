"""Words of an alert that read well on a phone: summary and description. Pure."""

from collections.abc import Sequence

from ragtide.drift.problems import LONGEST_TITLE, Problem, figure, figures_of, subject_of
from ragtide.drift.text import cut, one_line, scope_label, timestamp

_LONGEST_LINE = 600
_LONGEST_DESCRIPTION = 3000
_ACTIONS = 4
_NAMED_SYMPTOMS = 3


def summarize(problem: Problem) -> str:
    """Say what the problem has in common with its group: the same for one application, environment and type."""
    where = scope_label(one_line(problem.app), one_line(problem.environment), "")
    of = f"in {where}" if where else "of ragtide itself"
    return cut(f"{problem.type.replace('_', ' ').capitalize()} problems {of}", 2 * LONGEST_TITLE)


def describe(problem: Problem, symptoms: Sequence[Problem] = ()) -> str:
    """Say what, how bad, on how many traces, since when, why, what else, and what to do: one line each."""
    lines = [
        problem.description,
        f"How bad: {problem.severity}{_measured(problem)}.",
        f"Since {timestamp(problem.onset)}.",
        f"Why: {problem.explanation or 'no cause found so far.'}",
    ]
    if symptoms:
        named = list(dict.fromkeys(_subject(one, next(iter(one.kinds), "")) for one in symptoms))
        more = ", ..." if len(named) > _NAMED_SYMPTOMS else ""
        count = f"{len(symptoms)} other problem{'' if len(symptoms) == 1 else 's'}"
        lines.append(f"It explains {count}: {', '.join(named[:_NAMED_SYMPTOMS])}{more}.")
    actions = problem.actions[:_ACTIONS]
    lines += [f"To do: {actions[0]}"] if len(actions) == 1 else []
    lines += ["To do:", *(f"{place}. {one}" for place, one in enumerate(actions, 1))] if len(actions) > 1 else []
    return "\n".join(cut(one_line(line), _LONGEST_LINE) for line in lines if line)[:_LONGEST_DESCRIPTION]


def _measured(problem: Problem) -> str:
    found = problem.evidence
    kind = next(iter(problem.active_kinds or problem.kinds), "")
    moved = figures_of(kind, found)
    bound = found.threshold if found.limit is None else found.limit
    limit = f"limit {figure(bound, kind, found)}" if moved and bound is not None else ""
    size = found.sample_size
    traces = "" if size is None else f"on {size:,} trace{'' if size == 1 else 's'}"
    return "".join(f", {part}" for part in (moved, limit, traces) if part)


def _subject(problem: Problem, kind: str) -> str:
    return subject_of(problem.metric, problem.segment_value, problem.type, kind, problem.evidence)
