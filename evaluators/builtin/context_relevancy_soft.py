from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluators.outcome import Evidence, NotApplicable, Outcome, Scored
from evaluators.recorded import recorded_chunks
from evaluators.similarity import similarities
from evaluators.spec import Budget, Metric, Need, NoParams, Sentence, Shared, evaluator
from evaluators.trace import Chunk


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was asked and what was retrieved for it."""

    question: str
    contexts: tuple[Chunk, ...]


def _chunks(row: Inputs, shared: Shared) -> list[tuple[Chunk, tuple[Sentence, ...]]]:
    """Chunks with something to read; an empty one is left out, it has no relevancy of 0."""
    cut = [(chunk, shared.sentences(chunk.text or "")) for chunk in recorded_chunks(row.contexts) or ()]
    return [(chunk, sentences) for chunk, sentences in cut if sentences]


def _embeds(row: Inputs, shared: Shared, params: NoParams) -> Iterator[str]:
    chunks = _chunks(row, shared)
    if chunks and row.question.strip():
        yield row.question
        yield from (sentence.text for _, sentences in chunks for sentence in sentences)


@evaluator(
    "context_relevancy_soft",
    version=1,
    domain="retrieval",
    method="embedding",
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric("recall_relevancy", threshold=0.75, primary=True, description="relevancy of the most relevant chunk"),
        Metric("precision_relevancy", threshold=0.75, description="mean relevancy of the chunks"),
    ],
    needs={Need.EMBEDDING},
    embeds=_embeds,
    budget=Budget(characters=500_000, sentences=2_000),
)
def context_relevancy_soft(rows: Sequence[Inputs], shared: Shared, params: NoParams) -> Iterator[Outcome]:
    """How near the retrieved chunks are to the question: a chunk's relevancy is the max over its sentences of their
    cosine similarity to the question; the max and the mean over chunks.
    """
    for row in rows:
        yield _relevant(row, shared)


def _relevant(row: Inputs, shared: Shared) -> Outcome:
    if recorded_chunks(row.contexts) is None:
        return NotApplicable("missing_contexts")
    if not row.question.strip():
        return NotApplicable("empty_question")
    chunks = _chunks(row, shared)
    if not chunks:
        return NotApplicable("empty_contexts")
    texts = [sentence.text for _, sentences in chunks for sentence in sentences]
    [similarity] = similarities(shared, [row.question], texts)
    relevancy: list[float] = []
    evidence: list[Evidence] = []
    position = 0
    for chunk, sentences in chunks:
        here = similarity[position : position + len(sentences)]
        best = int(here.argmax())
        relevancy.append(float(here[best]))
        start, end = sentences[best].start, sentences[best].end
        evidence.append(Evidence("contexts", start, end, chunk.id, kind="most_relevant", score=relevancy[-1]))
        position += len(sentences)
    return Scored(
        {"recall_relevancy": max(relevancy), "precision_relevancy": sum(relevancy) / len(relevancy)},
        evidence=tuple(evidence),
    )
