"""The reference answers that can be compared with an answer, and where they stand."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from evaluators.outcome import Evidence, NotApplicable
from evaluators.similarity import similarities
from evaluators.spec import Shared


class Reference(NamedTuple):
    """A reference answer; `offset` is its place in `expected`, whose texts are counted one after another."""

    text: str
    offset: int

    def evidence(self, start: int, end: int, score: float) -> Evidence:
        """Points at [start, end) of this reference, as what is nearest to the answer or to a sentence of it."""
        return Evidence("expected", self.offset + start, self.offset + end, kind="most_similar", score=score)


class Nearest(NamedTuple):
    """The reference nearest in meaning to an answer, and the cosine similarity of the two, from 0 to 1."""

    reference: Reference
    score: float

    @property
    def evidence(self) -> Evidence:
        """Points at the whole of it."""
        return self.reference.evidence(0, len(self.reference.text), self.score)


def references(expected: Sequence[str]) -> list[Reference]:
    """Those that are more than white space, in order."""
    return [reference for reference in _placed(expected) if reference.text.strip()]


def no_reference(expected: Sequence[str]) -> NotApplicable:
    """What is said of a trace of whose references none can be compared."""
    return NotApplicable("reference_without_words" if expected else "empty_expected")


def nearest_embeds(answer: str, expected: Sequence[str]) -> Iterator[str]:
    """The texts that `nearest` will embed."""
    compared = references(expected)
    if compared and answer.strip():
        yield answer
        yield from (reference.text for reference in compared)


def nearest(answer: str, expected: Sequence[str], shared: Shared) -> Nearest | NotApplicable:
    """Each text as a whole."""
    if not answer.strip():
        return NotApplicable("empty_answer")
    compared = references(expected)
    if not compared:
        return no_reference(expected)
    [similarity] = similarities(shared, [answer], [reference.text for reference in compared])
    best = int(similarity.argmax())
    return Nearest(compared[best], float(similarity[best]))


def _placed(expected: Sequence[str]) -> Iterator[Reference]:
    offset = 0
    for text in expected:
        yield Reference(text, offset)
        offset += len(text)
