from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Need, NoParams, Shared, evaluator
from ragtide.evaluators.text.references import comparable, comparable_texts, nearest
from ragtide.evaluators.text.similarity import similarities


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and what it should have been."""

    answer: str
    expected: tuple[str, ...]


def _embeds(row: Inputs, shared: Shared, params: NoParams) -> Iterator[str]:
    yield from comparable_texts(row.answer, row.expected)


@evaluator(
    "sentence_similarity",
    version=1,
    domain="summarization",
    method="embedding",
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric("cosine", threshold=0.8, primary=True, description="cosine similarity of the embeddings"),
        Metric("jaccard", threshold=0.8, description="tokens that both have / tokens that either has"),
    ],
    needs={Need.EMBEDDING},
    embeds=_embeds,
    budget=Budget(characters=500_000, sentences=2_000),
)
def sentence_similarity(rows: Sequence[Inputs], shared: Shared, params: NoParams) -> Iterator[Outcome]:
    """How near answer and reference are, in meaning (cosine) and in words (Jaccard similarity of the sets of their
    lower-case tokens, separated by white space). Of several references the one nearest in meaning counts.
    """
    for row in rows:
        yield _similar(row, shared)


def _similar(row: Inputs, shared: Shared) -> Outcome:
    compared = comparable(row.answer, row.expected)
    if isinstance(compared, NotApplicable):
        return compared
    [similarity] = similarities(shared, [row.answer], [reference.text for reference in compared])
    found = nearest(compared, similarity)
    words = jaccard(shared.once(tokens, row.answer), shared.once(tokens, found.reference.text))
    return Scored({"cosine": found.score, "jaccard": words}, evidence=(found.evidence,))


def tokens(text: str) -> frozenset[str]:
    """The text's distinct tokens."""
    return frozenset(text.lower().split())


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Size of the intersection / size of the union, of which one is not empty."""
    return len(one & other) / len(one | other)
