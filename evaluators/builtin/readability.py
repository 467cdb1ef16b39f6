from dataclasses import dataclass
from math import inf

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, NoParams, Shared, evaluator
from ragtide.evaluators.text.languages import UNKNOWN, language_of
from ragtide.evaluators.text.syllables import syllables

MAX_EASE = 121.22  # sentences of one word with one syllable


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer alone."""

    answer: str


METRICS = (
    Metric(
        "flesch_reading_ease",
        low=-inf,
        high=MAX_EASE,
        primary=True,  # without a threshold: how hard a text may be depends on its readers
        description="206.835 - 1.015 words / sentences - 84.6 syllables / words",
    ),
)


@evaluator(
    "readability",
    version=1,
    domain="summarization",
    method="ngram",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=METRICS,
)
def readability(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Flesch reading ease of the answer. 60 or more is plain English; the score can be negative. No limit suits every
    reader: set one in `rules.overrides`. Words are separated by white space and contain a Latin letter or a digit.
    Syllables are counted from the spelling, while textstat counts hyphenation points, and a sentence for each full
    stop. Answers in languages other than English are not applicable. The parts are words, sentences and syllables.
    """
    answer = row.answer
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
    """Return the reading ease of Flesch (1948). `words` and `sentences` are at least 1."""
    return min(206.835 - 1.015 * words / sentences - 84.6 * syllables / words, MAX_EASE)
