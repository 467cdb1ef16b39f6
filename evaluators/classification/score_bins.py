"""Histograms of label scores: 100 bins, of which [i/100, (i+1)/100) is bin i and 1 alone is bin 100.

The area under a ROC curve made of them counts a positive and a negative record of one bin as equal. It differs from
that of the scores themselves by at most half the share of such pairs among all pairs, and not at all where scores are
whole hundredths. Counts beyond a threshold of whole hundredths are exact.
"""

from collections.abc import Mapping

BINS = 100


def score_bin(score: float) -> int:
    """Return the bin of a score from 0 to 1. Comparison with the edges corrects rounding of the product."""
    index = int(score * BINS)
    return index + (score >= (index + 1) / BINS) - (score < index / BINS)


def roc_auc(positive: Mapping[int, float], negative: Mapping[int, float]) -> float | None:
    """Return how often a positive record is in a higher bin than a negative one; ties count half. None without both.

    This is U of Mann and Whitney over the number of pairs (Hanley and McNeil 1982).
    """
    pairs = sum(positive.values()) * sum(negative.values())
    if not pairs:
        return None
    above, wins = 0.0, 0.0
    for index in sorted({*positive, *negative}, reverse=True):
        here = positive.get(index, 0.0)
        wins += negative.get(index, 0.0) * (above + here / 2)
        above += here
    return wins / pairs
