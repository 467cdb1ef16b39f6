from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ragtide.evaluators.outcome import Evidence, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Need, NoParams, Sentence, Shared, Vectors, evaluator
from ragtide.evaluators.text.references import Reference, no_reference, references
from ragtide.evaluators.text.similarity import similarities


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and its references."""

    answer: str
    expected: tuple[str, ...]


class Comparison(NamedTuple):
    """A reference and its sentences. `similarity` is [answer sentences, reference sentences]."""

    reference: Reference
    sentences: tuple[Sentence, ...]
    similarity: Vectors

    def means(self) -> tuple[float, float]:
        """Mean and minimum, over the answer sentences, of the similarity to the nearest reference sentence."""
        nearest = self.similarity.max(axis=1)
        return float(nearest.mean(dtype=np.float64)), float(nearest.min())


def _sentences(row: Inputs, shared: Shared) -> list[tuple[Reference, tuple[Sentence, ...]]]:
    """Split the references. References without sentences are left out."""
    cut = [(reference, shared.sentences(reference.text)) for reference in references(row.expected)]
    return [(reference, sentences) for reference, sentences in cut if sentences]


def _embeds(row: Inputs, shared: Shared, params: NoParams) -> Iterator[str]:
    answer, compared = shared.sentences(row.answer), _sentences(row, shared)
    if answer and compared:
        yield from (sentence.text for sentence in answer)
        yield from (sentence.text for _, sentences in compared for sentence in sentences)


@evaluator(
    "answer_semantic_sentence_similarity",
    version=1,
    domain="generation",
    method="embedding",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric(
            "mean_answer_similarity",
            threshold=0.75,
            primary=True,
            description="mean similarity of the answer sentences",
        ),
        Metric("min_answer_similarity", threshold=0.75, description="similarity of the least similar sentence"),
    ],
    needs={Need.EMBEDDING},
    embeds=_embeds,
    budget=Budget(characters=500_000, sentences=2_000),
)
def answer_semantic_sentence_similarity(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Similarity of the answer's sentences to the reference's: for each answer sentence the highest cosine similarity
    to a reference sentence, then the mean and the minimum of these. The reference with the best mean counts.
    """
    answer = shared.sentences(row.answer)
    if not answer:
        return NotApplicable("too_short")
    cut = _sentences(row, shared)
    if not cut:
        return no_reference(row.expected)
    texts = [sentence.text for sentence in answer]
    best = max(
        (
            Comparison(reference, sentences, similarities(shared, texts, [sentence.text for sentence in sentences]))
            for reference, sentences in cut
        ),
        key=Comparison.means,
    )
    mean, lowest = best.means()
    lowest_row = int(best.similarity.max(axis=1).argmin())
    weak, near = answer[lowest_row], best.sentences[int(best.similarity[lowest_row].argmax())]
    return Scored(
        {"mean_answer_similarity": mean, "min_answer_similarity": lowest},
        evidence=(
            Evidence("answer", weak.start, weak.end, kind="least_similar", score=lowest),
            best.reference.evidence(near.start, near.end, lowest),
        ),
    )
