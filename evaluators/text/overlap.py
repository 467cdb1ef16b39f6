"""Overlap of an answer and a reference, as precision, recall and F1."""

from typing import NamedTuple


class Overlap(NamedTuple):
    """Precision is the share of the answer, recall that of the reference. Overlaps are ordered by F1."""

    f1: float
    precision: float
    recall: float


def overlap(hits: int, answer: int, reference: int) -> Overlap:
    """Return the overlap of `hits` common tokens (n-grams, ...). All 0 without hits."""
    if not hits:
        return Overlap(0.0, 0.0, 0.0)
    precision, recall = hits / answer, hits / reference
    return Overlap(2 * precision * recall / (precision + recall), precision, recall)
