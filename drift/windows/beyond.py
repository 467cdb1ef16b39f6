"""SQL that tells records on the wrong side of lines: of windows how many by their bins, of rows each by its value."""

from typing import NamedTuple

from drift.windows.bins import Scale

FAR = 10**9  # beyond every bin


class Edges(NamedTuple):
    """Records in a bin below `lowest` or above `highest` are on the wrong side."""

    lowest: int
    highest: int


def edges(scale: Scale, least: float | None, greatest: float | None) -> Edges:
    """Of lines, at least one, snapped as shares are exact for."""
    return Edges(
        -FAR if least is None else scale.bin(scale.snap(least)),
        FAR if greatest is None else scale.bin(scale.snap(greatest)),
    )


def in_bins(lowest: int | str, highest: int | str) -> str:
    """Expression on rows of `windows`: how many records lie below or above these bins, numbers or expressions."""
    return f"arraySum((bin, times) -> if(bin < {lowest} OR bin > {highest}, times, 0), mapKeys(bins), mapValues(bins))"


def is_beyond(value: str, scale: Scale, least: float | None, greatest: float | None) -> str:
    """Condition: the expression's value is less than `least` or more than `greatest`, snapped as the bins are."""
    sides = [f"{value} < {scale.snap(least)!r}"] if least is not None else []
    sides += [f"{value} > {scale.snap(greatest)!r}"] if greatest is not None else []
    return f"({' OR '.join(sides) or 'false'})"
