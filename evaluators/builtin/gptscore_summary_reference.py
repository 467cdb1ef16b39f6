from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragtide.evaluators.gptscore import GptScoreParams, metric, rewriting_asks, score_rewriting
from ragtide.evaluators.outcome import Outcome
from ragtide.evaluators.spec import Ask, Budget, ModelRef, Need, Shared, evaluator


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and what it should have been."""

    answer: str
    expected: tuple[str, ...]


class Params(GptScoreParams, frozen=True, extra="forbid"):
    """Which language model is asked."""

    family = "summary_reference"


METRICS = (
    metric("semantic_coverage", "to say everything that is meant", primary=True),
    metric("factuality", "to keep every fact"),
    metric("informativeness", "to keep the main ideas"),
    metric("coherence", "for sentences that follow from each other"),
    metric("relevance", "to keep what matters"),
    metric("fluency", "to be grammatical and well written"),
)


def _asks(row: Inputs, shared: Shared, params: Params) -> Iterator[tuple[ModelRef, Ask]]:
    return ((params.ref, ask) for ask in rewriting_asks(params.template, row.answer, row.expected))


@evaluator(
    "gptscore_summary_reference",
    version=2,
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
def gptscore_summary_reference(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """How unlikely a language model finds the summary as the reference "in other words" and the reference as the
    summary so: average negative log-likelihood after an instruction for each quality, the two directions averaged. Of
    several references the likeliest counts.
    """
    for row in rows:
        yield score_rewriting(params.template, row.answer, row.expected, params.ref, shared)
