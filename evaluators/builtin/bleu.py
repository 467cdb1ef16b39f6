from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log

from pydantic import BaseModel, Field

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Shared, evaluator
from ragtide.evaluators.text.ngrams import common, most, ngrams
from ragtide.evaluators.text.tokenisers import mteval


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and what it should have been."""

    answer: str
    expected: tuple[str, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """How long the n-grams are, and what becomes of those that the references lack."""

    max_order: int = Field(4, ge=1, le=4, description="Longest n-grams, in tokens: BLEU-1 up to this one are given.")
    smooth: bool = Field(True, description="Add one to hits and n-grams of each order, so that no order alone gives 0.")


METRICS = tuple(
    Metric(
        f"bleu_{order}",
        threshold=0.75,
        primary=order == 1,
        optional=True,
        description=f"n-grams of up to {order} tokens, uniform weights, brevity penalty; absent beyond max_order",
    )
    for order in range(1, 5)
)


@evaluator(
    "bleu",
    version=1,
    domain="summarization",
    method="ngram",
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
    budget=Budget(characters=500_000),
)
def bleu(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """BLEU-1 to BLEU-4 (Papineni 2002), cumulative with uniform weights, against all references at once. Tokens are
    those of mteval-v13a. Smoothing is Hugging Face's: one is added at every order, so that an order too long for the
    answer counts as met. The brevity penalty takes the reference closest in length, as sacrebleu and NLTK do; Hugging
    Face takes the shortest. Precisions of the single orders, without smoothing, are kept as parts.
    """
    for row in rows:
        yield _bleu(row, shared, params)


def _bleu(row: Inputs, shared: Shared, params: Params) -> Outcome:
    answer = shared.once(mteval, row.answer)
    references = [tokens for tokens in (shared.once(mteval, text) for text in row.expected) if tokens]
    if not references:
        return NotApplicable("reference_without_words" if row.expected else "empty_expected")
    penalty = _brevity_penalty(len(answer), [len(reference) for reference in references])
    metrics: dict[str, float] = {}
    parts: dict[str, float] = {}
    logs = 0.0
    for order in range(1, params.max_order + 1):
        hits, count = _hits(answer, references, order), max(len(answer) - order + 1, 0)
        parts[f"precision_{order}"] = hits / count if count else 0.0
        precision = (hits + 1) / (count + 1) if params.smooth else parts[f"precision_{order}"]
        logs += log(precision) if precision else -float("inf")
        metrics[f"bleu_{order}"] = penalty * exp(logs / order)
    return Scored(metrics, parts=parts)


def _hits(answer: Sequence[str], references: Sequence[Sequence[str]], order: int) -> int:
    """N-grams of the answer that a reference holds, each at most as often as the reference that holds it most."""
    return common(ngrams(answer, order), most(ngrams(reference, order) for reference in references))


def _brevity_penalty(answer: int, references: Sequence[int]) -> float:
    """1 where the answer is no shorter than the reference closest to it (the shorter of two), else exp(1 - r / c)."""
    closest = min(references, key=lambda length: (abs(length - answer), length))
    if not answer:
        return 0.0
    return 1.0 if answer >= closest else exp(1 - closest / answer)
