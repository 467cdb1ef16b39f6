import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, NoParams, Shared, evaluator
from ragtide.evaluators.text.ngrams import common
from ragtide.evaluators.text.overlap import overlap

ARTICLES = re.compile(r"\b(?:a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and what it should have been."""

    answer: str
    expected: tuple[str, ...]


METRICS = (
    Metric("f1", threshold=0.8, primary=True, description="harmonic mean of precision and recall"),
    Metric("precision", threshold=0.8, description="share of the answer's tokens that the reference holds"),
    Metric("recall", threshold=0.8, description="share of the reference's tokens that the answer holds"),
)


@evaluator(
    "text_quality",
    version=1,
    domain="generation",
    method="ngram",
    inputs=Inputs,
    params=NoParams,
    metrics=METRICS,
)
def text_quality(rows: Sequence[Inputs], shared: Shared, params: NoParams) -> Iterator[Outcome]:
    """Token F1, precision and recall of answer and reference after SQuAD's normalisation: lower case, no ASCII
    punctuation, no articles (a, an, the), white space folded. Of several references the one with the best F1 counts.
    """
    for row in rows:
        yield _text_quality(row, shared)


def _text_quality(row: Inputs, shared: Shared) -> Outcome:
    answer = shared.once(text_counts, row.answer)
    references = [tokens for tokens in (shared.once(text_counts, text) for text in row.expected) if tokens]
    if not references:
        return NotApplicable("reference_without_words" if row.expected else "empty_expected")
    total = answer.total()  # counted once: references can be as many as the answer's tokens
    best = max(overlap(common(answer, reference), total, reference.total()) for reference in references)
    return Scored({"f1": best.f1, "precision": best.precision, "recall": best.recall})


def text_counts(text: str) -> Counter[str]:
    """Tokens as the evaluation script of SQuAD 1.1 makes them."""
    return Counter(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())
