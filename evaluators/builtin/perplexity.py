import math
from collections.abc import Iterator
from dataclasses import dataclass

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Ask, Budget, Metric, ModelRef, Need, Shared, evaluator
from ragtide.evaluators.text.likelihood import LanguageModel, likelihoods


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer alone."""

    answer: str


def _asks(row: Inputs, shared: Shared, params: LanguageModel) -> Iterator[tuple[ModelRef, Ask]]:
    if row.answer.strip():
        yield params.ref, (row.answer,)


@evaluator(
    "perplexity",
    version=1,
    domain="generation",
    method="lm",
    per_record=True,
    inputs=Inputs,
    params=LanguageModel,
    metrics=[
        Metric(
            "perplexity", low=1, high=math.inf, better="lower", primary=True, description="how unlikely the answer is"
        )
    ],
    needs={Need.LM},
    models=lambda params: [params.ref],
    asks=_asks,
    budget=Budget(characters=200_000),
)
def perplexity(row: Inputs, shared: Shared, params: LanguageModel) -> Outcome:
    """How unlikely a language model finds the answer: exp of the average negative log-likelihood of its tokens, each
    given the tokens before it. The first token does not count if the model has no start token, as in GPT-2.
    """
    if not row.answer.strip():
        return NotApplicable("empty_answer")
    given = likelihoods(params.ref, [(row.answer,)], shared)
    return given if isinstance(given, NotApplicable) else Scored({"perplexity": math.exp(given[0])})
