"""Reference answers, and their offsets."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragtide.evaluators.outcome import Evidence, NotApplicable
from ragtide.evaluators.spec import Vectors

MOST_PAIRED = 200_000  # characters of the answer with each of its references, where a model reads every pair


class Reference(NamedTuple):
    """A reference answer. `offset` is its offset in the concatenated texts of `expected`."""

    text: str
    offset: int

    def evidence(self, start: int, end: int, score: float) -> Evidence:
        """Point at [start, end) of this reference as the most similar text."""
        return Evidence("expected", self.offset + start, self.offset + end, kind="most_similar", score=score)


class Nearest(NamedTuple):
    """The reference most similar to an answer, and the similarity, from 0 to 1."""

    reference: Reference
    score: float

    @property
    def evidence(self) -> Evidence:
        """Evidence for the whole reference."""
        return self.reference.evidence(0, len(self.reference.text), self.score)


def references(expected: Sequence[str]) -> list[Reference]:
    """Return the references that are not blank, in order."""
    return [reference for reference in _with_offsets(expected) if reference.text.strip()]


def no_reference(expected: Sequence[str]) -> NotApplicable:
    """Return the outcome of a trace without usable references."""
    return NotApplicable("reference_without_words" if expected else "empty_expected")


def comparable(answer: str, expected: Sequence[str]) -> list[Reference] | NotApplicable:
    """Return the references to compare with the answer, at least one."""
    if not answer.strip():
        return NotApplicable("empty_answer")
    return references(expected) or no_reference(expected)


def pairs_too_long(answer: str, expected: Sequence[str]) -> bool:
    """Whether the pairs of answer and references are too long for a model to read for one record."""
    return len(answer) * len(expected) + sum(map(len, expected)) > MOST_PAIRED


def comparable_texts(answer: str, expected: Sequence[str]) -> list[str]:
    """Return the answer and its `comparable` references. Empty if there are none."""
    compared = comparable(answer, expected)
    return [] if isinstance(compared, NotApplicable) else [answer, *(reference.text for reference in compared)]


def nearest(compared: Sequence[Reference], similarity: Vectors) -> Nearest:
    """Return the first reference with the highest similarity."""
    best = int(similarity.argmax())
    return Nearest(compared[best], float(similarity[best]))


def _with_offsets(expected: Sequence[str]) -> Iterator[Reference]:
    offset = 0
    for text in expected:
        yield Reference(text, offset)
        offset += len(text)
