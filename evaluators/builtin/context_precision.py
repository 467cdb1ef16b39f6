from dataclasses import dataclass

from pydantic import BaseModel, Field

from ragtide.evaluators.judge.calls import Conversation, JudgeUse
from ragtide.evaluators.judge.formulas import ranked_precision, share
from ragtide.evaluators.judge.rag import BUDGET, chunks_with_text, readings_for, texts_of
from ragtide.evaluators.outcome import Evidence, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, Need, Shared, evaluator
from ragtide.evaluators.text.references import no_reference, references
from ragtide.evaluators.trace import Chunk


@dataclass(frozen=True, slots=True)
class Inputs:
    """The question, the retrieved chunks in rank order, and the reference answers."""

    question: str
    contexts: tuple[Chunk, ...]
    expected: tuple[str, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """Which chunks count."""

    top_n: int | None = Field(None, ge=1, description="Only the first chunks, so many. If unset, all.")


def _converse(row: Inputs, shared: Shared, params: Params) -> Conversation[Outcome]:
    chunks = chunks_with_text(row.contexts)
    if isinstance(chunks, NotApplicable):
        return chunks
    given = references(row.expected)
    if not given:
        return no_reference(row.expected)
    chunks = chunks[: params.top_n]
    readings = yield from readings_for(row.question, given, texts_of(chunks), shared)
    verdicts = [reading.verdict for reading in readings]
    picked = [pick for reading in readings for pick in reading.picked]
    evidence = tuple(
        Evidence("contexts", 0, len(chunk.text or ""), chunk.id, kind="useful" if verdict else "not_useful")
        for chunk, verdict in zip(chunks, verdicts, strict=True)
    )
    metrics = {"context_precision": ranked_precision(verdicts)}
    return Scored(metrics | ({"statement_precision": share(picked)} if picked else {}), evidence=evidence)


@evaluator(
    "context_precision",
    version=1,
    domain="retrieval",
    method="judge",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=[
        Metric(
            "context_precision",
            threshold=0.75,
            primary=True,
            description="mean precision@k at the ranks of useful chunks, 0 if none is useful",
        ),
        Metric(
            "statement_precision",
            threshold=0.75,
            optional=True,
            description="share of the context sentences that support the reference",
        ),
    ],
    needs={Need.JUDGE},
    judge=JudgeUse(("chunk_use",), _converse),
    budget=BUDGET,
)
def context_precision(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """Whether useful chunks rank first: the mean of precision@k over the ranks k of chunks that help, by a judge's
    verdict, to give the reference answer. With several references a chunk counts if it helps with any. Evidence holds
    the verdict on each chunk.
    """
    return shared.judge(_converse(row, shared, params))
