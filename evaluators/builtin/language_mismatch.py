from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field

from ragtide.evaluators.check_metrics import CHECK, check_metrics
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Shared, evaluator
from ragtide.evaluators.text.languages import UNKNOWN, language_of, same_language


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was asked, what was answered, and whether another language was wanted."""

    question: str
    answer: str
    task: str | None


class Params(BaseModel, frozen=True, extra="forbid"):
    """How languages are told."""

    method: Literal["auto", "library"] = Field(
        "auto", description="What tells the languages; auto: the best there is, which is the library."
    )


@evaluator(
    "language_mismatch",
    version=1,
    domain="generation",
    method="judge",
    inputs=Inputs,
    params=Params,
    metrics=CHECK,
    budget=Budget(characters=10_000_000),  # the first 300 of each are read
    lane="fast",
)
def language_mismatch(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """Whether question and answer are in the same language, as a library tells them by their first 300 characters; both
    are kept as categories. Texts too short to tell are not applicable, nor are translations. Languages that no short
    text tells apart are one.
    """
    for row in rows:
        yield _compare(row)


def _compare(row: Inputs) -> Outcome:
    if row.task == "translation":
        return NotApplicable("translation")
    asked, answered = language_of(row.question), language_of(row.answer)
    if UNKNOWN in (asked, answered):
        return NotApplicable("unknown_language")
    metrics = check_metrics(answer_fails=not same_language(asked, answered))
    return Scored(metrics, {"question_language": asked, "answer_language": answered})
