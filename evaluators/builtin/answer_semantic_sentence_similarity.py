from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ragtide.evaluators.outcome import Evidence, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Need, NoParams, Sentence, Shared, Vectors, evaluator
from ragtide.evaluators.text.references import Reference, no_reference, references
from ragtide.evaluators.text.similarity import similarities


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and what it should have been."""

    answer: str
    expected: tuple[str, ...]


class Comparison(NamedTuple):
    """A reference with its sentences, and their similarity to the answer's: [answer sentences, its sentences]."""

    reference: Reference
    sentences: tuple[Sentence, ...]
    similarity: Vectors

    def means(self) -> tuple[float, float]:
        """Mean and min over the answer's sentences of the similarity to the nearest of the reference's."""
        nearest = self.similarity.max(axis=1)
        return float(nearest.mean(dtype=np.float64)), float(nearest.min())


def _sentences(row: Inputs, shared: Shared) -> list[tuple[Reference, tuple[Sentence, ...]]]:
    """Of each reference that has some."""
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
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric("mean_answer_similarity", threshold=0.75, primary=True, description="mean over the answer's sentences"),
        Metric("min_answer_similarity", threshold=0.75, description="similarity of the least similar sentence"),
    ],
    needs={Need.EMBEDDING},
    embeds=_embeds,
    budget=Budget(characters=500_000, sentences=2_000),
)
def answer_semantic_sentence_similarity(rows: Sequence[Inputs], shared: Shared, params: NoParams) -> Iterator[Outcome]:
    """How near the answer's sentences are to the reference's: mean and min over answer sentences of the max over
    reference sentences of their cosine similarity. Of several references the one with the best mean counts.
    """
    for row in rows:
        yield _similar(row, shared)


def _similar(row: Inputs, shared: Shared) -> Outcome:
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
    mean, least = best.means()
    row_of_least = int(best.similarity.max(axis=1).argmin())
    weak, near = answer[row_of_least], best.sentences[int(best.similarity[row_of_least].argmax())]
    return Scored(
        {"mean_answer_similarity": mean, "min_answer_similarity": least},
        evidence=(
            Evidence("answer", weak.start, weak.end, kind="least_similar", score=least),
            best.reference.evidence(near.start, near.end, least),
        ),
    )
