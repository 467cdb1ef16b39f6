from dataclasses import dataclass

from ragtide.evaluators.judge.calls import Conversation, JudgeUse, Section
from ragtide.evaluators.judge.formulas import share
from ragtide.evaluators.judge.rag import BUDGET, chunks_with_text, texts_of
from ragtide.evaluators.judge.steps import chunk_groups, read_chunks
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, Need, NoParams, Shared, evaluator
from ragtide.evaluators.trace import Chunk


@dataclass(frozen=True, slots=True)
class Inputs:
    """The question and the retrieved chunks."""

    question: str
    contexts: tuple[Chunk, ...]


def _converse(row: Inputs, shared: Shared, params: NoParams) -> Conversation[Outcome]:
    chunks = chunks_with_text(row.contexts)
    if isinstance(chunks, NotApplicable):
        return chunks
    if not row.question.strip():
        return NotApplicable("empty_question")
    asked = (Section("question", row.question),)
    readings = yield from read_chunks("chunk_relevance", asked, chunk_groups(texts_of(chunks), shared))
    return Scored({"context_relevancy": share([pick for reading in readings for pick in reading.picked])})


@evaluator(
    "context_relevancy",
    version=1,
    domain="retrieval",
    method="judge",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric(
            "context_relevancy",
            threshold=0.75,
            primary=True,
            description="share of the context sentences that are needed for the question",
        )
    ],
    needs={Need.JUDGE},
    judge=JudgeUse(("chunk_relevance",), _converse),
    budget=BUDGET,
)
def context_relevancy(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Share of the context sentences that a judge picks as needed to answer the question."""
    return shared.judge(_converse(row, shared, params))
