"""What an answer and a reference have in common, as shares of both."""

from typing import NamedTuple


class Overlap(NamedTuple):
    """Precision is the share of the answer, recall that of the reference; F1, their harmonic mean, orders overlaps."""

    f1: float
    precision: float
    recall: float


def overlap(hits: int, answer: int, reference: int) -> Overlap:
    """Of so many tokens (n-grams, ...) of each, `hits` of which both have; all 0 without hits."""
    if not hits:
        return Overlap(0.0, 0.0, 0.0)
    precision, recall = hits / answer, hits / reference
    return Overlap(2 * precision * recall / (precision + recall), precision, recall)
