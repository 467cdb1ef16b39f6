from collections.abc import Sequence
from dataclasses import dataclass

from ragtide.evaluators.judge.calls import Conversation, JudgeUse, Section
from ragtide.evaluators.judge.formulas import share
from ragtide.evaluators.judge.rag import BUDGET, chunks_with_text, texts_of
from ragtide.evaluators.judge.steps import sources_of, texts_in, together, verdicts_on
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, Need, NoParams, Shared, evaluator
from ragtide.evaluators.text.references import no_reference, references
from ragtide.evaluators.trace import Chunk


@dataclass(frozen=True, slots=True)
class Inputs:
    """The retrieved chunks and the reference answers."""

    contexts: tuple[Chunk, ...]
    expected: tuple[str, ...]


def _converse(row: Inputs, shared: Shared, params: NoParams) -> Conversation[Outcome]:
    chunks = chunks_with_text(row.contexts)
    if isinstance(chunks, NotApplicable):
        return chunks
    given = references(row.expected)
    if not given:
        return no_reference(row.expected)
    sources = sources_of(texts_of(chunks), shared)
    shares = yield from together(*(_recall(one.text, sources, shared) for one in given))
    known = [one for one in shares if one is not None]
    return Scored({"context_entities_recall": max(known)}) if known else NotApplicable("no_entities")


def _recall(reference: str, sources: Sequence[tuple[Section, ...]], shared: Shared) -> Conversation[float | None]:
    entities = yield from texts_in("entities", "text", reference, shared)
    if not entities:
        return None
    return share((yield from verdicts_on("presence", "entities", entities, sources, shared)))


@evaluator(
    "context_entities_recall",
    version=1,
    domain="retrieval",
    method="judge",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric(
            "context_entities_recall",
            threshold=0.75,
            primary=True,
            description="share of the reference's entities that the contexts mention",
        )
    ],
    needs={Need.JUDGE},
    judge=JudgeUse(("entities", "presence"), _converse),
    budget=BUDGET,
)
def context_entities_recall(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Share of the reference's entities (names, dates, amounts, key concepts), as a judge lists them, that the contexts
    mention. The best reference counts. A reference without entities is not applicable.
    """
    return shared.judge(_converse(row, shared, params))
