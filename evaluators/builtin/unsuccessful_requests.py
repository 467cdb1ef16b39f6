from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from evaluators.outcome import Evidence, Outcome, Scored
from evaluators.refusal_phrases import PHRASES
from evaluators.refusals import Refusals, refusals
from evaluators.slugs import is_slug
from evaluators.spec import Metric, Shared, evaluator

OPENING_SENTENCES = 2  # "I'm sorry." often comes first
OPENING = 600  # characters, at most
SHORT = 5_000  # up to here, an answer's sentences are those that others split too

Phrases = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was asked and what was answered."""

    question: str
    answer: str


def _sound(phrases: Phrases) -> Phrases:
    if unfit := [kind for kind in phrases if not is_slug(kind)]:
        raise ValueError(f"kinds must be slugs; {len(unfit)} are not")
    refusals(tuple(phrases.items()))
    return phrases


class Params(BaseModel, frozen=True, extra="forbid"):
    """What says that there is no answer."""

    phrases: Annotated[Phrases, AfterValidator(_sound)] = Field(
        default={},
        description=f"More phrases by kind ({', '.join(PHRASES)} or your own); * is up to three words, a|b one of two, "
        "a first ^ the answer's beginning, a last $ the end of a sentence.",
    )
    longest_words: int = Field(
        100, ge=1, description="A longer answer that opens with a phrase goes on to answer: it is successful."
    )


@evaluator(
    "unsuccessful_requests",
    version=2,
    domain="generation",
    method="judge",
    inputs=Inputs,
    params=Params,
    metrics=[
        Metric(
            "unsuccessful",
            better="lower",
            threshold=0.1,
            primary=True,
            description="1 where the answer is blank, an error text, a refusal or says that it does not know",
        )
    ],
    lane="fast",
)
def unsuccessful_requests(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """1 where the answer does not answer: blank, or one of its first two sentences holds a phrase that says so and the
    rest is short. An error text counts at the very beginning only. A phrase that the question holds too does not count.
    The kind is kept as the category `refusal`.
    """
    kinds = refusals(tuple(params.phrases.items()))
    for row in rows:
        yield _judged(row, shared, kinds, params.longest_words)


def _judged(row: Inputs, shared: Shared, kinds: Mapping[str, Refusals], longest_words: int) -> Outcome:
    answer = row.answer
    if not answer.strip():
        return Scored({"unsuccessful": 1.0}, {"refusal": "empty"})
    if len(answer.split(maxsplit=longest_words)) <= longest_words:
        opening = answer[: _opening(answer, shared)]
        asked = row.question.lower()
        for kind, phrases in kinds.items():
            found = phrases.find(opening)
            if found and opening[slice(*found)].lower() not in asked:
                return Scored(
                    {"unsuccessful": 1.0}, {"refusal": kind}, evidence=(Evidence("answer", *found, kind=kind),)
                )
    return Scored({"unsuccessful": 0.0})


def _opening(answer: str, shared: Shared) -> int:
    """Where the opening ends: a character offset."""
    sentences = shared.sentences(answer if len(answer) <= SHORT else answer[:OPENING])
    return min(OPENING, sentences[:OPENING_SENTENCES][-1].end if sentences else OPENING)
