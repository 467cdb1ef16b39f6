import string
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, Field, field_validator

from ragtide.evaluators.conditions.patterns import Malformed, Patterns
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Shared, evaluator
from ragtide.evaluators.text.surrogates import replace_surrogates

PUNCTUATION = str.maketrans("", "", string.punctuation)
DIGITS = str.maketrans("", "", string.digits)
# A search costs RE2 at worst 5 ns for each remaining byte and each state of its automaton, and one follows each match:
# removing all matches can be quadratic with any engine.
MAX_STEPS = 200_000_000


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and its references."""

    answer: str
    expected: tuple[str, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """What is removed from both texts before they are compared, in this order."""

    regexes_to_ignore: tuple[str, ...] = Field((), description="Regular expressions (RE2) whose matches are removed.")
    ignore_case: bool = Field(False, description="Convert to lower case.")
    ignore_punctuation: bool = Field(False, description="Remove ASCII punctuation.")
    ignore_numbers: bool = Field(False, description="Remove the digits 0 to 9.")

    @field_validator("regexes_to_ignore")
    @classmethod
    def _linear(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        try:
            _compile(given)
        except Malformed as refused:
            raise ValueError(str(refused)) from None
        return given


METRICS = (
    Metric("exact_match", threshold=0.8, primary=True, binary=True, description="1 if the answer equals a reference"),
)


@evaluator(
    "exact_match",
    version=1,
    domain="generation",
    method="ngram",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
    budget=Budget(characters=1_000_000),
)
def exact_match(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """Whether the answer equals one of the references after the configured normalisation, as in exact_match of Hugging
    Face. White space counts.
    """
    if not row.expected:
        return NotApplicable("empty_expected")
    eraser = _Eraser(params.regexes_to_ignore)
    try:
        answer, *references = (_normalise(text, eraser, params) for text in (row.answer, *row.expected))
    except _TooLong:
        return NotApplicable("too_long")
    return Scored({"exact_match": float(answer in references)})


def _normalise(text: str, eraser: "_Eraser", params: Params) -> str:
    text = eraser.erase(text)
    if params.ignore_case:
        text = text.lower()
    if params.ignore_punctuation:
        text = text.translate(PUNCTUATION)
    return text.translate(DIGITS) if params.ignore_numbers else text


class _TooLong(Exception):
    """Removing the matches would take too many steps."""


class _Eraser:
    """Removes the matches of regular expressions from the texts of one record."""

    def __init__(self, expressions: tuple[str, ...]) -> None:
        self._patterns = _compile(expressions)
        self._left = MAX_STEPS

    def erase(self, text: str) -> str:
        """Return the rest of the text. Raises `_TooLong` if the record could take more than `MAX_STEPS`."""
        if not self._patterns:
            return text
        data = replace_surrogates(text).encode()
        for pattern in self._patterns:
            kept, end = [], 0
            matches = pattern.finditer(data)
            self._left -= len(data) * pattern.programsize
            while self._left >= 0 and (match := next(matches, None)):
                self._left -= (len(data) - match.end()) * pattern.programsize
                kept.append(data[end : match.start()])
                end = match.end()
            if self._left < 0:
                raise _TooLong
            data = b"".join((*kept, data[end:]))
        return data.decode()


@lru_cache(maxsize=64)
def _compile(expressions: tuple[str, ...]) -> tuple[Any, ...]:
    patterns = Patterns()
    return tuple(patterns.compile(each, f"expression {place}") for place, each in enumerate(expressions))
