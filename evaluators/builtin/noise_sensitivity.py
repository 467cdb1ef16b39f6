from dataclasses import dataclass

from ragtide.evaluators.judge.calls import Conversation, JudgeUse
from ragtide.evaluators.judge.formulas import share
from ragtide.evaluators.judge.rag import BUDGET, NO_STATEMENTS, chunks_with_text
from ragtide.evaluators.judge.steps import sources_of, statements_of, supported
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, Need, NoParams, Shared, evaluator
from ragtide.evaluators.text.references import no_reference, references
from ragtide.evaluators.trace import Chunk


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer, the retrieved chunks and the reference answers."""

    answer: str
    contexts: tuple[Chunk, ...]
    expected: tuple[str, ...]


def _converse(row: Inputs, shared: Shared, params: NoParams) -> Conversation[Outcome]:
    chunks = chunks_with_text(row.contexts)
    if isinstance(chunks, NotApplicable):
        return chunks
    given = references(row.expected)
    if not given:
        return no_reference(row.expected)
    claims = yield from statements_of(row.answer, shared)
    if not claims:
        return NO_STATEMENTS
    correct = yield from supported(claims, sources_of([one.text for one in given], shared), shared)
    return Scored({"noise_sensitivity": 1.0 - share(correct)})


@evaluator(
    "noise_sensitivity",
    version=1,
    domain="retrieval",
    method="judge",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=[
        Metric(
            "noise_sensitivity",
            better="lower",
            threshold=0.25,
            primary=True,
            description="share of the answer's statements that no reference supports",
        )
    ],
    needs={Need.JUDGE},
    judge=JudgeUse(("statements", "support"), _converse),
    budget=BUDGET,
)
def noise_sensitivity(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Share of the answer's statements, as a judge lists them, that are incorrect: no reference supports them. Only
    answers that were given from contexts are applicable.
    """
    return shared.judge(_converse(row, shared, params))
