"""The longest repeated substring of a text, in near-linear time."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

# Up to here sorting the suffixes as strings is as fast as a suffix array and starts no OpenMP threads; its cost is
# quadratic in the worst case, about 1 ms at this length.
SHORT = 2_000
WIDTHS = (12, 4)


class Repeat(NamedTuple):
    """First place of the repeated substring, its length, and its non-overlapping occurrences."""

    start: int
    length: int
    times: int


def longest_repeat(text: str) -> Repeat:
    """Find the longest substring that occurs at least twice (overlap allowed); the leftmost on ties.

    Length and times are 0 if no character repeats.
    """
    start, length = _by_sorting(text) if len(text) <= SHORT else _by_suffix_array(text)
    return Repeat(start, length, text.count(text[start : start + length]) if length else 0)


def _by_sorting(text: str) -> tuple[int, int]:
    suffixes = sorted(text[i:] for i in _starts(text))
    start, longest = 0, 0
    for one, other in pairwise(suffixes):
        first = len(text) - max(len(one), len(other))
        if longest and first < start and one[:longest] == other[:longest]:
            start = first  # as long as the best, and further left
        while len(one) > longest and one.startswith(other[: longest + 1]) and len(other) > longest:
            start, longest = first, longest + 1
    return start, longest


def _starts(text: str) -> Sequence[int]:
    """Return possible starts: in most answers few places begin with 12 repeated characters."""
    for width in WIDTHS:
        windows = [text[i : i + width] for i in range(len(text) - width + 1)]
        counts = Counter(windows)
        if len(counts) < len(windows):
            return [i for i, window in enumerate(windows) if counts[window] > 1]
    return range(len(text))


def _by_suffix_array(text: str) -> tuple[int, int]:
    from pydivsufsort import divsufsort, kasai

    symbols = _symbols(text)
    suffixes = divsufsort(symbols)
    shared = kasai(symbols, suffixes)[: len(suffixes) - 1]  # [i]: of suffixes i and i + 1; the last has no next
    longest = int(shared.max(initial=0))
    if not longest:
        return 0, 0
    at = np.flatnonzero(shared == longest)
    return int(min(suffixes[at].min(), suffixes[at + 1].min())), longest


def _symbols(text: str) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Encode characters as ordered numbers of minimum width: sorting bytes is faster."""
    if text.isascii():
        return np.frombuffer(bytearray(text, "ascii"), dtype=np.uint8)  # writable, as the native code demands
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    rank = np.zeros(int(codes.max()) + 1, np.uint32)
    rank[codes] = 1
    distinct = int(rank.sum())
    np.cumsum(rank, out=rank)
    return (rank - 1)[codes].astype(np.uint8 if distinct <= 256 else np.uint16 if distinct <= 65_536 else np.uint32)
