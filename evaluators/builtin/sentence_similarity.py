from collections.abc import Iterator
from dataclasses import dataclass

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Need, NoParams, Shared, evaluator
from ragtide.evaluators.text.references import comparable, comparable_texts, nearest
from ragtide.evaluators.text.similarity import similarities


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and its references."""

    answer: str
    expected: tuple[str, ...]


def _embeds(row: Inputs, shared: Shared, params: NoParams) -> Iterator[str]:
    yield from comparable_texts(row.answer, row.expected)


@evaluator(
    "sentence_similarity",
    version=1,
    domain="summarization",
    method="embedding",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric("cosine", threshold=0.8, primary=True, description="cosine similarity of the embeddings"),
        Metric("jaccard", threshold=0.8, description="tokens in both texts / tokens in either text"),
    ],
    needs={Need.EMBEDDING},
    embeds=_embeds,
    budget=Budget(characters=500_000, sentences=2_000),
)
def sentence_similarity(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Similarity of answer and reference: cosine similarity of their embeddings, and Jaccard similarity of their sets
    of lower-case tokens, separated by white space. The reference with the highest cosine similarity counts.
    """
    compared = comparable(row.answer, row.expected)
    if isinstance(compared, NotApplicable):
        return compared
    [similarity] = similarities(shared, [row.answer], [reference.text for reference in compared])
    found = nearest(compared, similarity)
    words = jaccard(shared.once(tokens, row.answer), shared.once(tokens, found.reference.text))
    return Scored({"cosine": found.score, "jaccard": words}, evidence=(found.evidence,))


def tokens(text: str) -> frozenset[str]:
    """Return the distinct tokens of the text."""
    return frozenset(text.lower().split())


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Size of the intersection / size of the union. At least one set is not empty."""
    return len(one & other) / len(one | other)
