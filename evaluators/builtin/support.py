from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, PlainSerializer

from ragtide.evaluators.outcome import NotApplicable, Outcome
from ragtide.evaluators.spec import Budget, Metric, Shared, evaluator
from ragtide.evaluators.support.outcome import compare, scored
from ragtide.evaluators.support.rarity import DocumentFrequencies, read_frequencies, weight_by_length
from ragtide.evaluators.support.score import coefficients
from ragtide.evaluators.trace import Chunk

EVERY_APP = "*"


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer, what must support it, the task and the app."""

    app: str
    answer: str
    contexts: tuple[Chunk, ...] | None
    question: str | None
    task: str | None


def _read(given: Any) -> Any:
    return read_frequencies(Path(given)) if isinstance(given, str) else given


_Table = Annotated[DocumentFrequencies, BeforeValidator(_read), PlainSerializer(lambda table: table.version)]


class Params(BaseModel, frozen=True, extra="forbid"):
    """How rare words are."""

    frequencies: Mapping[str, _Table] = Field(
        default={},
        description='Paths of tables of document frequencies by app, each learned from its contexts; "*" is every other'
        " app. Without one, long words count as rare.",
    )

    def weight_in(self, app: str) -> Callable[[str], float]:
        """Return the weight of folded words in an app."""
        table = self.frequencies.get(app) or self.frequencies.get(EVERY_APP)
        return table.weight if table else weight_by_length


@evaluator(
    "support",
    version=4,
    domain="generation",
    method="rule",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=[
        Metric(
            "support",
            threshold=0.75,
            primary=True,
            description="probability that the answer says nothing that its contexts lack",
        ),
        Metric("weakest_sentence", description="share of the words of the least supported sentence in the contexts"),
    ],
    budget=Budget(characters=300_000),
)
def support(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """Probability that contexts and question support all that the answer says, computed without a model. It compares
    words by rarity, words that stand together, numbers in any notation, names, negations, and what records say. A
    logistic model, fitted on people's labels, combines them. Findings and evidence point at numbers, names and
    sentences that the contexts lack. Answers in another language than their contexts are not applicable.
    """
    compared = compare(row.answer, row.question, row.contexts, row.task, params.weight_in(row.app), shared)
    if isinstance(compared, NotApplicable):
        return compared
    return scored(compared, coefficients("words"))
