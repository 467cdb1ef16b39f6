from dataclasses import dataclass

from ragtide.evaluators.judge.calls import Conversation, JudgeUse
from ragtide.evaluators.judge.formulas import share
from ragtide.evaluators.judge.rag import BUDGET, chunks_with_text, texts_of
from ragtide.evaluators.judge.steps import texts_over, verdicts_on
from ragtide.evaluators.outcome import Evidence, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, Need, NoParams, Shared, evaluator
from ragtide.evaluators.trace import Chunk


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and the retrieved chunks."""

    answer: str
    contexts: tuple[Chunk, ...]


def _converse(row: Inputs, shared: Shared, params: NoParams) -> Conversation[Outcome]:
    chunks = chunks_with_text(row.contexts)
    if isinstance(chunks, NotApplicable):
        return chunks
    if not row.answer.strip():
        return NotApplicable("empty_answer")
    answer = texts_over("answer", row.answer, shared)
    verdicts = yield from verdicts_on("contradiction", "texts", texts_of(chunks), answer, shared)
    evidence = tuple(
        Evidence("contexts", 0, len(chunk.text or ""), chunk.id, kind="contradicted")
        for chunk, verdict in zip(chunks, verdicts, strict=True)
        if verdict
    )
    return Scored({"contradicted_contexts": share(verdicts)}, evidence=evidence)


@evaluator(
    "hallucination_contradiction",
    version=1,
    domain="generation",
    method="judge",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric(
            "contradicted_contexts",
            better="lower",
            threshold=0.25,
            primary=True,
            companion="support.support",
            description="share of the chunks that the answer contradicts",
        )
    ],
    needs={Need.JUDGE},
    judge=JudgeUse(("contradiction",), _converse),
    budget=BUDGET,
)
def hallucination_contradiction(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Share of the retrieved chunks that the answer contradicts, by a judge's verdicts. Evidence points at them."""
    return shared.judge(_converse(row, shared, params))
