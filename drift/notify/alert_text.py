"""Words of an alert that read well on a phone: title, summary and description. Pure."""

from collections.abc import Mapping, Sequence

from ragtide.drift.notify.shortening import cut, one_line
from ragtide.drift.problems import Problem
from ragtide.drift.rules import RULE_KINDS
from ragtide.drift.text import number, percent, scope_label, timestamp

LONGEST_TITLE = 80  # characters
_LONGEST_APP = 28
_LONGEST_LINE = 600
_LONGEST_DESCRIPTION = 3000
_ACTIONS = 4
_NAMED_SYMPTOMS = 3

# Kinds whose value is a share of records: what is said of them. {metric} is the metric, {evaluator} its evaluator.
_SHARES: Mapping[str, str] = {
    "failure_rate": "{metric} failed",
    "early_change": "{metric} high",
    "slo_burn": "{metric} outside its objective",
    "evaluator_error": "{evaluator} evaluator errors",
    "coverage": "traces without {evaluator}",
    "finding": "{evaluator} finding",
    "flip": "{metric} flips",
    "inconsistency": "answers disagree",
}
_SUBJECTS: Mapping[str, str] = {  # of the other kinds, where there is no metric
    "input_drift": "questions changed",
    "missing_data": "no traces",
    "inconsistency": "answers disagree",
}


def title_of(problem: Problem, kind: str) -> str:
    """Say app, metric, and values before and after, in at most `LONGEST_TITLE` characters.

    Without a value it is the beginning of the description.
    """
    app = cut(one_line(problem.app), _LONGEST_APP) or "ragtide"
    moved = figures(problem, kind)
    if not moved or not problem.app:
        said = _without_scope(one_line(problem.description), one_line(problem.app))
        return cut(f"{app}: {said or _SUBJECTS.get(kind, problem.type)}", LONGEST_TITLE)
    tail = f" {moved}"
    room = LONGEST_TITLE - len(f"{app}: ") - len(tail)
    return f"{app}: {cut(_subject(problem, kind), room)}{tail}"


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


def figures(problem: Problem, kind: str) -> str:
    """Say the values before and after, e.g. `0.91 → 0.42`; only the latter if before is not known; may be empty."""
    found = problem.evidence
    is_share = _is_share(problem, kind)
    said = [_figure(value, is_share=is_share) for value in (found.baseline, found.value) if value is not None]
    return " → ".join(said) if found.value is not None else ""


def _without_scope(description: str, app: str) -> str:
    """Leave out application, environment and model, with which descriptions begin."""
    scope, colon, said = description.partition(": ")
    return said if colon and app and (scope == app or scope.startswith(f"{app} (")) else description


def _measured(problem: Problem) -> str:
    found = problem.evidence
    kind = next(iter(problem.active_kinds or problem.kinds), "")
    moved = figures(problem, kind)
    bound = found.threshold if found.limit is None else found.limit
    limit = f"limit {_figure(bound, is_share=_is_share(problem, kind))}" if moved and bound is not None else ""
    size = found.sample_size
    traces = "" if size is None else f"on {size:,} trace{'' if size == 1 else 's'}"
    return "".join(f", {part}" for part in (moved, limit, traces) if part)


def _subject(problem: Problem, kind: str) -> str:
    name = one_line(problem.metric)
    evaluator, _, key = name.partition(".")
    metric = evaluator if evaluator == key else name
    if not metric:
        return _SUBJECTS.get(kind, problem.type.replace("_", " "))
    said = _SHARES[kind].format(metric=metric, evaluator=evaluator) if kind in _SHARES else metric
    if kind not in _SHARES and _is_share(problem, kind):
        said = f"{metric} failed"
    value = one_line(problem.segment_value)
    return f"{said} ({value})" if value else said


def _is_share(problem: Problem, kind: str) -> bool:
    """Whether value and baseline are shares of records."""
    rule = RULE_KINDS.get(problem.evidence.rule)
    return rule.value_type == "share" if rule is not None else kind in _SHARES


def _figure(value: float, *, is_share: bool) -> str:
    return percent(value) if is_share else number(value)
