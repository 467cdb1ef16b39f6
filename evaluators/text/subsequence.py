"""Longest common subsequences of token lists, with the ties of rouge_score."""

from collections.abc import Sequence


def lcs_length(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of a longest common subsequence."""
    from rapidfuzz.distance import LCSseq

    return int(LCSseq.similarity(one, other))


def lcs_positions(reference: Sequence[str], candidate: Sequence[str]) -> list[int]:
    """Return the positions in `reference` of the longest common subsequence that rouge_score finds, ascending.

    Each row of the table is one integer whose bit j - 1 is set if the table increases at column j (Hyyrö 2004).
    Backtracking breaks ties as rouge_score 0.1.2 does: up, unless left is strictly longer.
    """
    columns: dict[str, int] = {}
    for j, token in enumerate(candidate):
        columns[token] = columns.get(token, 0) | 1 << j
    full = (1 << len(candidate)) - 1
    steps = [0]
    flat = full  # bits that do not step
    for token in reference:
        match = flat & columns.get(token, 0)
        flat = (flat + match | flat - match) & full
        steps.append(full & ~flat)
    i, j, length = len(reference), len(candidate), steps[-1].bit_count()
    found: list[int] = []
    while length:
        if reference[i - 1] == candidate[j - 1]:
            i, j, length = i - 1, j - 1, length - 1
            found.append(i)
            continue
        left = length - (steps[i] >> (j - 1) & 1)
        up = (steps[i - 1] & (1 << j) - 1).bit_count()
        if left > up:
            j, length = j - 1, left
        else:
            i, length = i - 1, up
    found.reverse()
    return found
