from dataclasses import dataclass

from ragtide.evaluators.gptscore import GptScoreParams, metric, rewriting_asks, score_rewriting
from ragtide.evaluators.outcome import Outcome
from ragtide.evaluators.spec import Budget, Need, Shared, evaluator


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and its references."""

    answer: str
    expected: tuple[str, ...]


class Params(GptScoreParams, frozen=True, extra="forbid"):
    """The language model."""

    family = "summary_reference"


METRICS = (
    metric("semantic_coverage", "to say everything that is meant", primary=True),
    metric("factuality", "to keep every fact"),
    metric("informativeness", "to keep the main ideas"),
    metric("coherence", "for sentences that follow from each other"),
    metric("relevance", "to keep what matters"),
    metric("fluency", "to be grammatical and well written"),
)


@evaluator(
    "gptscore_summary_reference",
    version=2,
    domain="summarization",
    method="lm",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
    needs={Need.LM},
    models=lambda params: [params.ref],
    asks=lambda row, shared, params: rewriting_asks(params, row.answer, row.expected),
    tasks=("summarization",),
    budget=Budget(characters=200_000),
)
def gptscore_summary_reference(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """How unlikely a language model finds the summary as a rewording of the reference, and the reference as a rewording
    of the summary: the average negative log-likelihood after an instruction for each quality, averaged over both
    directions. The most likely reference counts.
    """
    return score_rewriting(params, row.answer, row.expected, shared)
