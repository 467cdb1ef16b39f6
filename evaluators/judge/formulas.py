"""The arithmetic of judge evaluators, apart from the verdicts that it takes."""

from collections.abc import Sequence


def share(verdicts: Sequence[bool]) -> float:
    """Return the share of yes among at least one verdict."""
    return sum(verdicts) / len(verdicts)


def ranked_precision(verdicts: Sequence[bool]) -> float:
    """Return the mean of precision@k over the ranks k with a yes; 0 without any."""
    total, hits = 0.0, 0
    for rank, verdict in enumerate(verdicts, start=1):
        if verdict:
            hits += 1
            total += hits / rank
    return total / hits if hits else 0.0


def factuality(in_both: int, in_answer: int, in_reference: int) -> float:
    """Return TP / (TP + 0.5 (FP + FN)), 0 if TP is 0. The numbers are of statements."""
    return in_both / (in_both + 0.5 * (in_answer + in_reference)) if in_both else 0.0


def harmonic_mean(values: Sequence[float]) -> float:
    """Return the harmonic mean; 0 if a value is 0 or less."""
    return len(values) / sum(1 / value for value in values) if min(values) > 0 else 0.0
