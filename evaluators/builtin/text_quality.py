import re
import string
from collections import Counter
from dataclasses import dataclass

from ragtide.evaluators.outcome import Outcome, Scored
from ragtide.evaluators.spec import Metric, NoParams, Shared, evaluator
from ragtide.evaluators.text.ngrams import common
from ragtide.evaluators.text.overlap import overlap
from ragtide.evaluators.text.references import no_reference

ARTICLES = re.compile(r"\b(?:a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and its references."""

    answer: str
    expected: tuple[str, ...]


METRICS = (
    Metric("f1", threshold=0.8, primary=True, description="harmonic mean of precision and recall"),
    Metric("precision", threshold=0.8, description="share of the answer's tokens that are in the reference"),
    Metric("recall", threshold=0.8, description="share of the reference's tokens that are in the answer"),
)


@evaluator(
    "text_quality",
    version=1,
    domain="generation",
    method="ngram",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=METRICS,
)
def text_quality(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Token F1, precision and recall of answer and reference after SQuAD's normalisation: lower case, no ASCII
    punctuation, no articles (a, an, the), collapsed white space. The reference with the best F1 counts.
    """
    answer = shared.once(text_counts, row.answer)
    references = [tokens for tokens in (shared.once(text_counts, text) for text in row.expected) if tokens]
    if not references:
        return no_reference(row.expected)
    total = answer.total()  # counted once: references can be as many as the answer's tokens
    best = max(overlap(common(answer, reference), total, reference.total()) for reference in references)
    return Scored({"f1": best.f1, "precision": best.precision, "recall": best.recall})


def text_counts(text: str) -> Counter[str]:
    """Count the tokens, as the evaluation script of SQuAD 1.1 makes them."""
    return Counter(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())
