from collections.abc import Iterator
from dataclasses import dataclass

from ragtide.evaluators.outcome import Evidence, Finding, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Need, NoParams, Sentence, Shared, evaluator
from ragtide.evaluators.text.recorded_chunks import recorded_chunks
from ragtide.evaluators.text.similarity import similarities
from ragtide.evaluators.trace import Chunk

SHORT = Finding("answer_too_short", "The answer is so short that nothing in it can be embedded.")


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and the retrieved chunks."""

    answer: str
    contexts: tuple[Chunk, ...]


def _sources(row: Inputs, shared: Shared) -> list[tuple[Chunk, Sentence]]:
    chunks = recorded_chunks(row.contexts) or ()
    return [(chunk, sentence) for chunk in chunks for sentence in shared.sentences(chunk.text or "")]


def _embeds(row: Inputs, shared: Shared, params: NoParams) -> Iterator[str]:
    answer, sources = shared.sentences(row.answer), _sources(row, shared)
    if answer and sources:
        yield from (sentence.text for sentence in answer)
        yield from (sentence.text for _, sentence in sources)


@evaluator(
    "groundedness",
    version=1,
    domain="generation",
    method="embedding",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric(
            "groundedness",
            threshold=0.75,
            primary=True,
            description="similarity of the least supported answer sentence to the contexts",
        )
    ],
    needs={Need.EMBEDDING},
    embeds=_embeds,
    budget=Budget(characters=500_000, sentences=2_000),
)
def groundedness(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Support of the answer's least supported sentence: for each answer sentence the highest cosine similarity to a
    context sentence, then the minimum of these.
    """
    if recorded_chunks(row.contexts) is None:
        return NotApplicable("missing_contexts")
    answer, sources = shared.sentences(row.answer), _sources(row, shared)
    if not answer:
        return NotApplicable("too_short", (SHORT,))
    if not sources:
        return NotApplicable("empty_contexts")
    similarity = similarities(
        shared, [sentence.text for sentence in answer], [sentence.text for _, sentence in sources]
    )
    support = similarity.max(axis=1)
    weakest = int(support.argmin())
    score = float(support[weakest])
    weak, (chunk, best) = answer[weakest], sources[int(similarity[weakest].argmax())]
    return Scored(
        {"groundedness": score},
        evidence=(
            Evidence("answer", weak.start, weak.end, kind="least_grounded", score=score),
            Evidence("contexts", best.start, best.end, chunk.id, kind="best_support", score=score),
        ),
    )
