from collections.abc import Iterator
from dataclasses import dataclass

from ragtide.evaluators.gptscore import GptScoreParams, averages, metric
from ragtide.evaluators.outcome import NotApplicable, Outcome
from ragtide.evaluators.spec import Ask, Budget, ModelRef, Need, Shared, evaluator

VERDICT = "Answer: Yes"


@dataclass(frozen=True, slots=True)
class Inputs:
    """The question and its answer."""

    question: str
    answer: str


class Params(GptScoreParams, frozen=True, extra="forbid"):
    """The language model."""

    family = "question_answering"


METRICS = (
    metric("interest", "whether it is interesting", primary=True),
    metric("engagement", "whether it is engaging"),
    metric("understandability", "whether it is easy to understand"),
    metric("relevance", "whether it is relevant to the question"),
    metric("specific", "whether it is specific"),
    metric("correctness", "whether it is correct"),
    metric("semantically_appropriate", "whether it is appropriate in meaning"),
    metric("fluency", "whether it is fluent"),
)


def _ask_by_metric(row: Inputs, params: Params) -> dict[str, Ask]:
    """What to ask for each metric. Empty if a text is blank."""
    if not row.answer.strip() or not row.question.strip():
        return {}
    return {
        key: (before, VERDICT)
        for key, before in params.template.before(question=row.question, answer=row.answer).items()
    }


def _asks(row: Inputs, shared: Shared, params: Params) -> Iterator[tuple[ModelRef, Ask]]:
    return ((params.ref, ask) for ask in _ask_by_metric(row, params).values())


@evaluator(
    "gptscore_question_answering",
    version=1,
    domain="generation",
    method="lm",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
    needs={Need.LM},
    models=lambda params: [params.ref],
    asks=_asks,
    budget=Budget(characters=200_000),
)
def gptscore_question_answering(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """How unlikely a language model finds "Answer: Yes" when asked whether the answer has each quality: the average
    negative log-likelihood of those tokens.
    """
    asks = _ask_by_metric(row, params)
    if not asks:
        return NotApplicable("empty_question" if row.answer.strip() else "empty_answer")
    return averages(asks, params.ref, shared)
