from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Shared, evaluator
from ragtide.evaluators.text.languages import UNKNOWN, language_of, same_language
from ragtide.evaluators.text.pass_metrics import PASS_METRICS, pass_metrics


@dataclass(frozen=True, slots=True)
class Inputs:
    """The question, its answer, and the task."""

    question: str
    answer: str
    task: str | None


class Params(BaseModel, frozen=True, extra="forbid"):
    """How languages are detected."""

    method: Literal["auto", "library"] = Field(
        "auto", description="Method of detection. auto picks the best available, which is the library."
    )


@evaluator(
    "language_mismatch",
    version=1,
    domain="generation",
    method="judge",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=PASS_METRICS,
    budget=Budget(characters=10_000_000),  # it reads the first 300 of each
    lane="fast",
)
def language_mismatch(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """Whether question and answer are in the same language, detected by a library from their first 300 characters.
    Both languages are stored as categories. Translations and texts too short to detect are not applicable. Languages
    that short texts do not distinguish count as one.
    """
    if row.task == "translation":
        return NotApplicable("translation")
    asked, answered = language_of(row.question), language_of(row.answer)
    if UNKNOWN in (asked, answered):
        return NotApplicable("unknown_language")
    metrics = pass_metrics(answer_fails=not same_language(asked, answered))
    return Scored(metrics, {"question_language": asked, "answer_language": answered})
