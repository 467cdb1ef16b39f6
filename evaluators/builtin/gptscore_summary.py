from collections.abc import Iterator
from dataclasses import dataclass

from ragtide.evaluators.gptscore import GptScoreParams, averages, metric
from ragtide.evaluators.outcome import NotApplicable, Outcome
from ragtide.evaluators.spec import Ask, Budget, ModelRef, Need, Shared, evaluator


@dataclass(frozen=True, slots=True)
class Inputs:
    """The source text (question) and its summary (answer)."""

    question: str
    answer: str


class Params(GptScoreParams, frozen=True, extra="forbid"):
    """The language model."""

    family = "summary"


METRICS = (
    metric("semantic_coverage", "to say as much as possible of what is meant", primary=True),
    metric("factuality", "for the source's facts alone"),
    metric("consistency", "not to contradict the source"),
    metric("informativeness", "for the main ideas"),
    metric("coherence", "for sentences that follow from each other"),
    metric("relevance", "for what matters most"),
    metric("fluency", "to be grammatical and well written"),
)


def _ask_by_metric(row: Inputs, params: Params) -> dict[str, Ask]:
    """What to ask for each metric. Empty if a text is blank."""
    if not row.answer.strip() or not row.question.strip():
        return {}
    return {key: (before, row.answer) for key, before in params.template.before(source=row.question).items()}


def _asks(row: Inputs, shared: Shared, params: Params) -> Iterator[tuple[ModelRef, Ask]]:
    return ((params.ref, ask) for ask in _ask_by_metric(row, params).values())


@evaluator(
    "gptscore_summary",
    version=1,
    domain="summarization",
    method="lm",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
    needs={Need.LM},
    models=lambda params: [params.ref],
    asks=_asks,
    tasks=("summarization",),
    budget=Budget(characters=200_000),
)
def gptscore_summary(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """How unlikely a language model finds the summary after an instruction for each quality, the source text and
    "Tl;dr": the average negative log-likelihood of its tokens.
    """
    asks = _ask_by_metric(row, params)
    if not asks:
        return NotApplicable("empty_question" if row.answer.strip() else "empty_answer")
    return averages(asks, params.ref, shared)
