"""How good a ranking is: from the relevance of what was retrieved, in rank order."""

from collections.abc import Sequence
from math import log2


def retrieval_precision(relevant: Sequence[bool]) -> float:
    """Share that is relevant; of one chunk at least."""
    return sum(relevant) / len(relevant)


def average_precision(relevant: Sequence[bool]) -> float:
    """Mean, over the relevant ones, of the share of relevant ones down to there; 0 where nothing is relevant."""
    ranks = [rank for rank, is_relevant in enumerate(relevant, 1) if is_relevant]
    return sum(found / rank for found, rank in enumerate(ranks, 1)) / len(ranks) if ranks else 0.0


def reciprocal_rank(relevant: Sequence[bool]) -> float:
    """1 / rank of the first relevant one; 0 where nothing is relevant."""
    return next((1 / rank for rank, is_relevant in enumerate(relevant, 1) if is_relevant), 0.0)


def ndcg(grades: Sequence[float]) -> float:
    """DCG / that of the best order of the same (Järvelin, Kekäläinen 2002), from 0 to 1; 0 where all grades are 0.

    The gain of a rank is its grade, 0 or more, over log2(1 + rank): linear, as trec_eval takes it.
    """
    best = max(grades, default=0.0)
    if best <= 0:
        return 0.0
    shares = [grade / best for grade in grades]  # the largest finite grades add up to infinity
    return min(1.0, _dcg(shares) / _dcg(sorted(shares, reverse=True)))


def _dcg(gains: Sequence[float]) -> float:
    return sum(gain / log2(1 + rank) for rank, gain in enumerate(gains, 1))
