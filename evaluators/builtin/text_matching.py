from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ragtide.evaluators.check_metrics import CHECK_WITH_CONTEXTS, check_metrics
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
from ragtide.evaluators.text.recorded_chunks import recorded_texts
from ragtide.evaluators.trace import Chunk

POINTED_AT = 10  # unmet terms named in the evidence, at most
JOINT = "\n"
# Where RE2 has to leave its automaton it takes 5 to 7 ns for each state and byte.
MOST_STEPS = 200_000_000


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer, what it was made from, and what the trace demands of both."""

    answer: str
    contexts: tuple[Chunk, ...] | None
    condition: str | None
    constraints: tuple[Any, ...] | None


@evaluator(
    "text_matching",
    version=1,
    domain="generation",
    method="rule",
    inputs=Inputs,
    params=NoParams,
    metrics=CHECK_WITH_CONTEXTS,
)
def text_matching(rows: Sequence[Inputs], shared: Shared, params: NoParams) -> Iterator[Outcome]:
    r"""Whether answer and contexts, each on its own, satisfy the trace's condition: a boolean expression over strings
    and regular expressions, or the older list of constraints. A malformed one is Failed("condition") with its position.
    Expressions are RE2's: no look-around, `$` does not stand before a last new line, `\b` and `\w` know ASCII alone.
    """
    for row in rows:
        try:
            condition = _condition(row)
        except Malformed as error:
            yield Failed("condition", str(error))
            continue
        yield NotApplicable(condition) if isinstance(condition, str) else _evaluate(row, condition)


def _condition(row: Inputs) -> Condition | str:
    """What is demanded (the condition wins over the older form), or why nothing is."""
    if row.condition is not None:
        return parse(row.condition) if row.condition.strip() else "empty_condition"
    if row.constraints is not None:
        return from_constraints(row.constraints) if row.constraints else "empty_condition"
    return "missing_condition"


def _evaluate(row: Inputs, condition: Condition) -> Outcome:
    answer = Subject(row.answer)
    texts = recorded_texts(row.contexts)
    joined = Subject(JOINT.join(texts)) if texts else None
    if steps(condition) * (len(answer.data) + (len(joined.data) if joined else 0)) > MOST_STEPS:
        return NotApplicable("too_long")
    evidence = _evidence(condition, answer, row, "answer")
    metrics = check_metrics(not holds(condition, answer), not holds(condition, joined) if joined else None)
    evidence += _evidence(condition, joined, row, "contexts") if joined else []
    return Scored(metrics, evidence=tuple(evidence))


def _evidence(condition: Condition, subject: Subject, row: Inputs, of: str) -> list[Evidence]:
    """Points at the terms of the condition that make it fail, if it does; `kind` says where."""
    field = "constraints" if row.condition is None else "condition"
    terms = islice(unmet_terms(condition, subject), POINTED_AT)
    return [Evidence(field, term.start, term.end, kind=of) for term in terms]
