"""Whether the answers to one question say different things. Pure.

An answer is at odds where it differs from more than half of the others: of two camps the smaller one always is, and a
single pair that is misjudged makes nothing of ten answers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from evaluators.spec import Vectors

By = Literal["refusal", "stance", "claims", "meaning"]
STANCE = "stance"
_LEAST = 3  # answers that state something of one kind, or that have vectors: of two nobody knows which one is odd


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What is known of one: claims by kind, as hashes; `vector` is of any length, of the same encoder as the others."""

    trace_id: str
    is_refusal: bool | None = None
    claims: Mapping[str, frozenset[str]] = field(default_factory=dict)
    vector: Vectors | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is anything to compare."""
        return self.is_refusal is not None or bool(self.claims) or self.vector is not None


class Disagreement(NamedTuple):
    """By what answers disagree, and trace ids of two: one that is at odds with most others, and one of those."""

    by: By
    odd: str
    other: str


def disagreement(answers: Sequence[Answer], least_cosine: float | None) -> Disagreement | None:
    """The plainest one that there is. `least_cosine`: of answers that say the same; None: not known."""
    found = _by_refusal(answers)
    if found is None:
        answering = [one for one in answers if not one.is_refusal]
        found = next(_by_claims(answering), None)
        if found is None and least_cosine is not None:
            found = _by_meaning(answering, least_cosine)
    return found


def _by_refusal(answers: Sequence[Answer]) -> Disagreement | None:
    refused = [one for one in answers if one.is_refusal]
    answered = [one for one in answers if one.is_refusal is False]
    if not refused or not answered:
        return None
    odd, other = sorted((refused, answered), key=len)
    return Disagreement("refusal", odd[0].trace_id, other[0].trace_id)


def _by_claims(answers: Sequence[Answer]) -> Iterator[Disagreement]:
    """Of each kind only those that state something of it: who leaves it out contradicts nobody."""
    kinds = {kind for one in answers for kind in one.claims}
    for kind in sorted(kinds, key=lambda kind: (kind != STANCE, kind)):
        stating = [one for one in answers if kind in one.claims]
        if len(stating) < _LEAST:
            continue
        for one in stating:
            against = [other for other in stating if one.claims[kind].isdisjoint(other.claims[kind])]
            if 2 * len(against) > len(stating) - 1:
                by: By = "stance" if kind == STANCE else "claims"
                yield Disagreement(by, one.trace_id, against[0].trace_id)


def _by_meaning(answers: Sequence[Answer], least_cosine: float) -> Disagreement | None:
    """Where the median of an answer's cosines to the others is too low."""
    known = [(one.trace_id, one.vector) for one in answers if one.vector is not None]
    if len(known) < _LEAST:
        return None
    vectors = np.stack([vector for _, vector in known])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, np.nan)
    nearness = np.nanmedian(cosines, axis=1)
    odd = int(nearness.argmin())
    if nearness[odd] >= least_cosine:
        return None
    return Disagreement("meaning", known[odd][0], known[int(np.nanargmin(cosines[odd]))][0])
