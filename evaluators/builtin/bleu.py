from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log

from pydantic import BaseModel, Field

from ragtide.evaluators.outcome import Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Shared, evaluator
from ragtide.evaluators.text.ngrams import common, most, ngrams
from ragtide.evaluators.text.references import no_reference
from ragtide.evaluators.text.tokenisers import mteval


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and its references."""

    answer: str
    expected: tuple[str, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """Length of the n-grams, and smoothing."""

    max_order: int = Field(
        4, ge=1, le=4, description="Maximum n-gram length in tokens. Gives BLEU-1 up to BLEU of this order."
    )
    smooth: bool = Field(
        True, description="Give an order without matches half a match, the next one a quarter, ..., instead of 0."
    )


METRICS = tuple(
    Metric(
        f"bleu_{order}",
        threshold=0.75,
        primary=order == 1,
        optional=True,
        description=f"BLEU with n-grams of up to {order} tokens; absent beyond max_order",
    )
    for order in range(1, 5)
)


@evaluator(
    "bleu",
    version=2,
    domain="summarization",
    method="ngram",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
    budget=Budget(characters=500_000),
)
def bleu(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """BLEU-1 to BLEU-4 (Papineni 2002), cumulative with uniform weights, against all references at once. The tokens are
    those of mteval-v13a. Scores are those of sentence_bleu of sacrebleu 2.6: orders longer than the answer do not
    count, an answer without a word of the references scores 0, and smoothing is exponential. The brevity penalty uses
    the reference closest in length. The parts hold the precision of each order that counts, without smoothing.
    """
    answer = shared.once(mteval, row.answer)
    references = [tokens for tokens in (shared.once(mteval, text) for text in row.expected) if tokens]
    if not references:
        return no_reference(row.expected)
    penalty = _brevity_penalty(len(answer), [len(reference) for reference in references])
    metrics: dict[str, float] = {}
    parts: dict[str, float] = {}
    logs, smoothed, effective = 0.0, 1.0, 1
    for order in range(1, params.max_order + 1):
        count = len(answer) - order + 1
        if count > 0:
            hits, effective = _hits(answer, references, order), order
            precision = parts[f"precision_{order}"] = hits / count
            if not hits and params.smooth and parts["precision_1"]:
                smoothed /= 2
                precision = smoothed / count
            logs += log(precision) if precision else -inf
        metrics[f"bleu_{order}"] = penalty * exp(logs / effective)
    return Scored(metrics, parts=parts)


def _hits(answer: Sequence[str], references: Sequence[Sequence[str]], order: int) -> int:
    """Count the answer's n-grams that are in a reference, each clipped to its maximum count in one reference."""
    return common(ngrams(answer, order), most(ngrams(reference, order) for reference in references))


def _brevity_penalty(answer: int, references: Sequence[int]) -> float:
    """1 if the answer is as long as the reference closest in length (ties: the shorter), else exp(1 - r / c)."""
    closest = min(references, key=lambda length: (abs(length - answer), length))
    if not answer:
        return 0.0
    return 1.0 if answer >= closest else exp(1 - closest / answer)
