"""Ranking metrics from the relevance of retrieved chunks, in rank order."""

from collections.abc import Sequence
from math import log2


def retrieval_precision(relevant: Sequence[bool]) -> float:
    """Return the share of relevant chunks. 0 without chunks, as set_P of trec_eval."""
    return sum(relevant) / len(relevant) if relevant else 0.0


def average_precision(relevant: Sequence[bool]) -> float:
    """Return the mean of precision@k over the ranks k of relevant chunks. 0 without any."""
    ranks = [rank for rank, is_relevant in enumerate(relevant, 1) if is_relevant]
    return sum(found / rank for found, rank in enumerate(ranks, 1)) / len(ranks) if ranks else 0.0


def reciprocal_rank(relevant: Sequence[bool]) -> float:
    """Return 1 / rank of the first relevant chunk. 0 without any."""
    return next((1 / rank for rank, is_relevant in enumerate(relevant, 1) if is_relevant), 0.0)


def ndcg(grades: Sequence[float]) -> float:
    """Return DCG / DCG of the best order (Järvelin, Kekäläinen 2002), from 0 to 1. 0 if all grades are 0.

    The gain of a rank is its grade, 0 or more, over log2(1 + rank): linear, as in trec_eval.
    """
    best = max(grades, default=0.0)
    if best <= 0:
        return 0.0
    shares = [grade / best for grade in grades]  # the largest finite grades add up to infinity
    return min(1.0, _dcg(shares) / _dcg(sorted(shares, reverse=True)))


def _dcg(gains: Sequence[float]) -> float:
    return sum(gain / log2(1 + rank) for rank, gain in enumerate(gains, 1))
