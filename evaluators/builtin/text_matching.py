from dataclasses import dataclass
from itertools import islice
from typing import Any

from ragtide.evaluators.conditions import (
    Condition,
    Malformed,
    Subject,
    from_constraints,
    holds,
    parse,
    steps,
    unmet_terms,
)
from ragtide.evaluators.outcome import Evidence, Failed, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import NoParams, Shared, evaluator
from ragtide.evaluators.text.pass_metrics import PASS_METRICS_WITH_CONTEXTS, pass_metrics
from ragtide.evaluators.text.recorded_chunks import recorded_texts
from ragtide.evaluators.trace import Chunk

MAX_EVIDENCE = 10  # unmet terms in the evidence
JOINT = "\n"
# If RE2 has to leave its automaton, it takes 5 to 7 ns for each state and byte.
MOST_STEPS = 200_000_000


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer, its sources, and the condition of the trace."""

    answer: str
    contexts: tuple[Chunk, ...] | None
    condition: str | None
    constraints: tuple[Any, ...] | None


@evaluator(
    "text_matching",
    version=1,
    domain="generation",
    method="rule",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=PASS_METRICS_WITH_CONTEXTS,
)
def text_matching(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    r"""Whether the answer and the contexts, separately, satisfy the trace's condition: a boolean expression over
    strings and regular expressions, or the older list of constraints. A malformed condition is Failed("condition") with
    the position. Regular expressions are those of RE2: no look-around, `$` does not match before a final newline, `\b`
    and `\w` are ASCII only.
    """
    try:
        condition = _condition(row)
    except Malformed as error:
        return Failed("condition", str(error))
    return NotApplicable(condition) if isinstance(condition, str) else _evaluate(row, condition)


def _condition(row: Inputs) -> Condition | str:
    """Return the condition, which overrides constraints, or the reason that there is none."""
    if row.condition is not None:
        return parse(row.condition) if row.condition.strip() else "empty_condition"
    if row.constraints is not None:
        return from_constraints(row.constraints) if row.constraints else "empty_condition"
    return "missing_condition"


def _evaluate(row: Inputs, condition: Condition) -> Outcome:
    answer = Subject(row.answer)
    texts = recorded_texts(row.contexts)
    joined = Subject(JOINT.join(texts)) if texts else None
    if steps(condition) * (answer.size_bytes + (joined.size_bytes if joined else 0)) > MOST_STEPS:
        return NotApplicable("too_long")
    evidence = _evidence(condition, answer, row, "answer")
    metrics = pass_metrics(not holds(condition, answer), not holds(condition, joined) if joined else None)
    evidence += _evidence(condition, joined, row, "contexts") if joined else []
    return Scored(metrics, evidence=tuple(evidence))


def _evidence(condition: Condition, subject: Subject, row: Inputs, of: str) -> list[Evidence]:
    """Point at the terms that make the condition fail, if it does. `kind` is the text that fails."""
    field = "constraints" if row.condition is None else "condition"
    terms = islice(unmet_terms(condition, subject), MAX_EVIDENCE)
    return [Evidence(field, term.start, term.end, kind=of) for term in terms]
