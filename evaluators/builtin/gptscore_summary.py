from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragtide.evaluators.gptscore import GptScoreParams, averages, metric
from ragtide.evaluators.outcome import NotApplicable, Outcome
from ragtide.evaluators.spec import Ask, Budget, ModelRef, Need, Shared, evaluator


@dataclass(frozen=True, slots=True)
class Inputs:
    """The text to be summarized, and its summary."""

    question: str
    answer: str


class Params(GptScoreParams, frozen=True, extra="forbid"):
    """Which language model is asked."""

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
    """By metric; nothing of a blank text."""
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
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
    needs={Need.LM},
    models=lambda params: [params.ref],
    asks=_asks,
    tasks=("summarization",),
    budget=Budget(characters=200_000),
)
def gptscore_summary(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """How unlikely a language model finds the summary after an instruction for each quality, the source text and
    "Tl;dr": average negative log-likelihood of its tokens.
    """
    for row in rows:
        asked = _ask_by_metric(row, params)
        if asked:
            yield averages(asked, params.ref, shared)
        else:
            yield NotApplicable("empty_question" if row.answer.strip() else "empty_answer")
