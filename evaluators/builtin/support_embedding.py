from collections.abc import Iterator
from dataclasses import dataclass

from ragtide.evaluators.outcome import NotApplicable, Outcome
from ragtide.evaluators.spec import Budget, Metric, Need, NoParams, Shared, evaluator
from ragtide.evaluators.support.nearest import nearest_similarities, texts_to_embed
from ragtide.evaluators.support.outcome import Compared, compare, scored
from ragtide.evaluators.support.rarity import weight_by_length
from ragtide.evaluators.support.score import coefficients
from ragtide.evaluators.trace import Chunk


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer, what must support it, and the task."""

    answer: str
    contexts: tuple[Chunk, ...] | None
    question: str | None
    task: str | None


def _compare(row: Inputs, shared: Shared) -> Compared | NotApplicable:
    return compare(row.answer, row.question, row.contexts, row.task, weight_by_length, shared)


def _embeds(row: Inputs, shared: Shared, params: NoParams) -> Iterator[str]:
    compared = _compare(row, shared)
    if isinstance(compared, Compared):
        yield from texts_to_embed(compared, row.answer, shared)


@evaluator(
    "support_embedding",
    version=4,
    domain="generation",
    method="embedding",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric(
            "support",
            threshold=0.75,
            primary=True,
            description="probability that the answer says nothing that its contexts lack",
        ),
        Metric("weakest_sentence", description="share of the words of the least supported sentence in the contexts"),
    ],
    needs={Need.EMBEDDING},
    embeds=_embeds,
    budget=Budget(characters=300_000, sentences=2_000),
)
def support_embedding(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Probability that contexts and question support all that the answer says, as `support` computes it. It also
    compares each sentence with the nearest context sentence by their vectors, so that paraphrases count as supported.
    The coefficients are fitted with vectors of MiniLM.
    """
    compared = _compare(row, shared)
    if isinstance(compared, NotApplicable):
        return compared
    return scored(compared, coefficients("vectors"), nearest_similarities(compared, row.answer, shared))
