"""The reference answers that can be compared with an answer, and where they stand."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragtide.evaluators.outcome import Evidence, NotApplicable
from ragtide.evaluators.spec import Vectors

MOST_PAIRED = 200_000  # characters of the answer with each of its references, where a model reads every pair


class Reference(NamedTuple):
    """A reference answer; `offset` is its place in `expected`, whose texts are counted one after another."""

    text: str
    offset: int

    def evidence(self, start: int, end: int, score: float) -> Evidence:
        """Points at [start, end) of this reference, as what is nearest to the answer or to a sentence of it."""
        return Evidence("expected", self.offset + start, self.offset + end, kind="most_similar", score=score)


class Nearest(NamedTuple):
    """The reference nearest in meaning to an answer, and the similarity of the two, from 0 to 1."""

    reference: Reference
    score: float

    @property
    def evidence(self) -> Evidence:
        """Points at the whole of it."""
        return self.reference.evidence(0, len(self.reference.text), self.score)


def references(expected: Sequence[str]) -> list[Reference]:
    """Those that are more than white space, in order."""
    return [reference for reference in _with_offsets(expected) if reference.text.strip()]


def no_reference(expected: Sequence[str]) -> NotApplicable:
    """What is said of a trace of whose references none can be compared."""
    return NotApplicable("reference_without_words" if expected else "empty_expected")


def comparable(answer: str, expected: Sequence[str]) -> list[Reference] | NotApplicable:
    """The references that can be compared with the answer, each text as a whole; at least one."""
    if not answer.strip():
        return NotApplicable("empty_answer")
    return references(expected) or no_reference(expected)


def pairs_too_long(answer: str, expected: Sequence[str]) -> bool:
    """Whether the answer with each of its references is more than a model is asked to read for one record."""
    return len(answer) * len(expected) + sum(map(len, expected)) > MOST_PAIRED


def comparable_texts(answer: str, expected: Sequence[str]) -> list[str]:
    """The answer and the texts of its `comparable` references; none where there are none."""
    compared = comparable(answer, expected)
    return [] if isinstance(compared, NotApplicable) else [answer, *(reference.text for reference in compared)]


def nearest(compared: Sequence[Reference], similarity: Vectors) -> Nearest:
    """The first of those whose similarity, one number each, is the highest."""
    best = int(similarity.argmax())
    return Nearest(compared[best], float(similarity[best]))


def _with_offsets(expected: Sequence[str]) -> Iterator[Reference]:
    offset = 0
    for text in expected:
        yield Reference(text, offset)
        offset += len(text)
