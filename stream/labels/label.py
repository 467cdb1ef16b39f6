"""A label: facts about a trace that arrive later. See docs/labels.md."""

from typing import Literal, Self

from pydantic import BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError

from ragtide.evaluators.trace import LONGEST_ID, LONGEST_NAME

SCHEMA_VERSION = 1  # the form of `rag.labels` messages; readers take the one before as well


class _Part(BaseModel, extra="forbid", frozen=True, strict=True, allow_inf_nan=False):
    """Base: no unknown field, no conversion, no NaN."""


class Classes(_Part, frozen=True):
    """The right class, or several where a trace may have several."""

    expected: str | list[str]


class Verdict(_Part, frozen=True):
    """Opinion of a person about an answer."""

    thumbs: Literal["up", "down"] | None = None
    score: float | None = None
    comment: str | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.thumbs is None and self.score is None and self.comment is None:
            raise PydanticCustomError("missing_fact", "one of thumbs, score and comment is required")
        return self


class Label(_Part, frozen=True):
    """One message. A fact of None was not sent; an empty one retracts an earlier one."""

    trace_id: str = Field(min_length=1, max_length=LONGEST_ID)
    schema_version: int = SCHEMA_VERSION
    author: str | None = None
    expected: list[str] | None = None
    relevance: dict[str, float] | None = None
    labels: Classes | None = None
    verdict: Verdict | None = None
    # Probability with which the trace was drawn for labelling, whatever the answer, among those that the evaluator
    # scored; None: somebody labelled it unasked.
    sample_rate: float | None = Field(default=None, gt=0, le=1)
    sample_evaluator: str | None = Field(default=None, min_length=1, max_length=LONGEST_NAME)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.expected is None and self.relevance is None and self.labels is None and self.verdict is None:
            raise PydanticCustomError("missing_fact", "one of expected, relevance, labels and verdict is required")
        if (self.sample_rate is None) != (self.sample_evaluator is None):
            raise PydanticCustomError("missing_fact", "sample_rate and sample_evaluator are sent together")
        return self
