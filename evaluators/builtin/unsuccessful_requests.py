import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from ragtide.evaluators.outcome import Evidence, Outcome, Scored
from ragtide.evaluators.slugs import PATTERN, is_slug
from ragtide.evaluators.spec import Metric, Shared, evaluator
from ragtide.evaluators.text.refusals import KINDS, Refusals, refusals

OPENING_SENTENCES = 2  # "I'm sorry." often comes first
OPENING = 600  # characters
SHORT = 5_000  # characters; up to here, other evaluators split the same text
FIGURE = re.compile(r"\d")
LIMIT = re.compile(r"(?i)\s*(?:however|but)\b")
PREAMBLE = re.compile(
    r"(?i)\A\W*(?:i|we|thanks?|sorry|hello|hi|great|good|your?|that|this)\b|\b(?:context|document|text|source|passage|article)s?\b"
)
QUOTED = re.compile(r'"[^"]+"|“[^“”]+”|„[^„“”]+[“”]|«[^«»]+»|「[^「」]+」')
CONDITION = re.compile(r"(?i)\b(?:if|when|whenever|unless|wenn|jeśli|если|якщо)\b[^.!?,;\n]*\Z")
# After "I cannot".
IDIOM = re.compile(
    r"(?i)\W+(?:over(?:state|emphasi[sz]e)|stress|emphasi[sz]e|recommend|wait|thank|complain|see (?:why|any|an?))\b"
)
CONCLUSION = re.compile(
    r"[^.!?\n]*?[,;] (?:so|therefore|hence|thus|also|daher|donc|por lo que|quindi|portanto|dus|więc|поэтому) "
)

Phrases = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Inputs:
    """The question and its answer."""

    question: str
    answer: str


def _sound(phrases: Phrases) -> Phrases:
    if unfit := [kind for kind in phrases if not is_slug(kind)]:
        raise ValueError(f"kinds must be slugs ({PATTERN}); {len(unfit)} are not")
    refusals(tuple(phrases.items()))
    return phrases


class Params(BaseModel, frozen=True, extra="forbid"):
    """Phrases that mean there is no answer."""

    phrases: Annotated[Phrases, AfterValidator(_sound)] = Field(
        default={},
        description=f"More phrases by kind ({', '.join(KINDS)} or your own). * matches up to three words, a|b either "
        "word, ^ at the start the beginning of the answer, $ at the end the end of a sentence.",
    )
    longest_words: int = Field(100, ge=1, description="A longer answer is successful, even if it begins with a phrase.")


@evaluator(
    "unsuccessful_requests",
    version=3,
    domain="generation",
    method="judge",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=[
        Metric(
            "unsuccessful",
            better="lower",
            threshold=0.1,
            primary=True,
            binary=True,
            description="1 if the answer is blank, an error text, a refusal, a question or does not know",
        )
    ],
    lane="fast",
)
def unsuccessful_requests(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """1 if the answer does not answer the question: it is blank, or it is short and one of its first two sentences
    contains a phrase that means so. An error text counts only at the very beginning. A phrase does not count if it is
    in the question, quoted, or conditional ("if"), if a conclusion follows ("so"), if it follows a figure, or if it
    only limits the answer ("However"). The category `refusal` is the kind of phrase.
    """
    answer = row.answer
    if not answer.strip():
        return Scored({"unsuccessful": 1.0}, {"refusal": "empty"})
    if len(answer.split(maxsplit=params.longest_words)) <= params.longest_words:
        kinds = refusals(tuple(params.phrases.items()))
        opening = _own_words(answer[: _opening(answer, shared)])
        asked = row.question.lower()
        for kind, phrases in kinds.items():
            found = phrases.find(opening)
            if (
                found
                and opening[slice(*found)].lower() not in asked
                and not CONDITION.search(opening[: found[0]])
                and not IDIOM.match(opening, found[1])
                and not _concludes(opening[found[1] :], kinds)
            ):
                return Scored(
                    {"unsuccessful": 1.0}, {"refusal": kind}, evidence=(Evidence("answer", *found, kind=kind),)
                )
    return Scored({"unsuccessful": 0.0})


def _opening(answer: str, shared: Shared) -> int:
    """Return the end of the opening as a character offset. It is one sentence if that has answered."""
    sentences = shared.sentences(answer if len(answer) <= SHORT else answer[:OPENING])[:OPENING_SENTENCES]
    if not sentences:
        return OPENING
    first, last = (answer[each.start : each.end] for each in (sentences[0], sentences[-1]))
    return min(OPENING, (sentences[0] if _answers(first, last) else sentences[-1]).end)


def _answers(first: str, second: str) -> bool:
    """Whether the first sentence contains a figure, or a statement that the second limits ("However, ...")."""
    return bool(FIGURE.search(first) or (LIMIT.match(second) and not PREAMBLE.search(first)))


def _own_words(opening: str) -> str:
    """Mask quotations in the opening, keeping its length, unless all of it is a quotation."""
    if not QUOTED.search(opening) or not any(map(str.isalnum, QUOTED.sub("", opening))):
        return opening
    return QUOTED.sub(lambda quoted: "x" * len(quoted[0]), opening)


def _concludes(rest: str, kinds: Mapping[str, Refusals]) -> bool:
    """Whether a conclusion follows: "does not mention a minimum age, so anyone may sign"."""
    conclusion = CONCLUSION.match(rest)
    return conclusion is not None and not any(phrases.find(rest[conclusion.end() :]) for phrases in kinds.values())
