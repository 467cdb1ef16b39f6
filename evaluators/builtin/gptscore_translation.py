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

    family = "translation"


METRICS = (
    metric("accuracy", "to keep core information and facts", primary=True),
    metric("fluency", "to be grammatical and well written"),
    metric("multidimensional_quality", "for both"),
)


@evaluator(
    "gptscore_translation",
    version=2,
    domain="generation",
    method="lm",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
    needs={Need.LM},
    models=lambda params: [params.ref],
    asks=lambda row, shared, params: rewriting_asks(params, row.answer, row.expected),
    tasks=("translation", "generation"),
    budget=Budget(characters=200_000),
)
def gptscore_translation(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """How unlikely a language model finds the answer as a rewording of the reference, and the reference as a rewording
    of the answer: the average negative log-likelihood after an instruction for each quality, averaged over both
    directions. The most likely reference counts.
    """
    return score_rewriting(params, row.answer, row.expected, shared)
