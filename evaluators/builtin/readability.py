from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, NoParams, Shared, evaluator
from ragtide.evaluators.text.languages import UNKNOWN, language_of
from ragtide.evaluators.text.syllables import syllables

EASIEST = 121.22  # sentences of one word of one syllable


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer alone."""

    answer: str


METRICS = (
    Metric(
        "flesch_reading_ease",
        low=-inf,
        high=EASIEST,
        threshold=60.0,
        primary=True,
        description="206.835 - 1.015 words / sentences - 84.6 syllables / words",
    ),
)


@evaluator(
    "readability",
    version=1,
    domain="summarization",
    method="ngram",
    inputs=Inputs,
    params=NoParams,
    metrics=METRICS,
)
def readability(rows: Sequence[Inputs], shared: Shared, params: NoParams) -> Iterator[Outcome]:
    """Flesch reading ease of the answer: 60 and more is plain English; negative numbers occur. Sentences are those of
    the shared splitter, words the pieces between blanks with a Latin letter or a digit; syllables are told by spelling
    (textstat takes hyphenation points, and a sentence for each full stop). Answers in another language than English are
    not applicable. Words, sentences and syllables are kept as parts.
    """
    for row in rows:
        yield _readability(row.answer, shared)


def _readability(answer: str, shared: Shared) -> Outcome:
    sentences = len(shared.sentences(answer))
    if not sentences:
        return NotApplicable("no_words" if answer.strip() else "empty_answer")
    if language_of(answer) not in ("en", UNKNOWN):
        return NotApplicable("not_english")
    counts = [count for count in map(syllables, answer.split()) if count]
    if not counts:
        return NotApplicable("no_words")
    score = reading_ease(len(counts), sentences, sum(counts))
    parts = {"words": len(counts), "sentences": sentences, "syllables": sum(counts)}
    return Scored({"flesch_reading_ease": score}, parts=parts)


def reading_ease(words: int, sentences: int, syllables: int) -> float:
    """The formula of Flesch (1948), with a word and a sentence at least."""
    return min(206.835 - 1.015 * words / sentences - 84.6 * syllables / words, EASIEST)
