import math
from collections.abc import Iterator, Sequence
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
def perplexity(rows: Sequence[Inputs], shared: Shared, params: LanguageModel) -> Iterator[Outcome]:
    """How unlikely a language model finds the answer: exp of the average negative log-likelihood of its tokens, each
    given those before it. The first token is not counted where the model has nothing to put before it, as GPT-2.
    """
    for row in rows:
        yield _perplexity(row, shared, params)


def _perplexity(row: Inputs, shared: Shared, params: LanguageModel) -> Outcome:
    if not row.answer.strip():
        return NotApplicable("empty_answer")
    given = likelihoods(params.ref, [(row.answer,)], shared)
    return given if isinstance(given, NotApplicable) else Scored({"perplexity": math.exp(given[0])})
