"""Masks as runs of pixels: areas and intersections are exact, and cost what the runs cost, not the image.

Pixels are counted column by column, as COCO's run-length encoding does. Nothing here trusts what it reads: decoders
that do have written beyond their memory.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragtide.evaluators.vision.errors import Malformed

Runs = npt.NDArray[np.int64]
LONGEST_SIDE = 65_535  # pixels
_FIRST = ord("0")  # of the 64 characters that compressed counts are made of


class Mask(NamedTuple):
    """The pixels of a region. `runs` are int64 [n, 2]: first pixel and the one after the last, in order."""

    height: int
    width: int
    runs: Runs

    @property
    def area(self) -> int:
        """Number of pixels."""
        return pixels(self.runs)


def read_mask(written: Any) -> Mask:
    """Read a mask from rows of 0 and 1, or from COCO's {"size": [height, width], "counts": ...}, compressed or not.

    Raises `Malformed` for anything else.
    """
    if isinstance(written, dict):
        return _encoded(written)
    if isinstance(written, (list, tuple)):
        return _rows(written)
    raise Malformed("a mask is rows of 0 and 1, or an object with size and counts")


def encoded_length(mask: Any) -> int:
    """Return the numbers, or characters of compressed counts, that encode a mask."""
    if isinstance(mask, dict):
        counts = mask.get("counts")
        return len(counts) if isinstance(counts, (str, list, tuple)) else 0
    rows = mask if isinstance(mask, (list, tuple)) else ()
    return len(rows) + sum(len(row) for row in rows if isinstance(row, (list, tuple)))


def pixels(runs: Runs) -> int:
    """Count the pixels of runs that do not overlap."""
    return int((runs[:, 1] - runs[:, 0]).sum())


def union(masks: Iterable[Mask]) -> Runs:
    """Return the runs of pixels in any of the masks, which have one size."""
    return _merge_runs(np.concatenate([np.empty((0, 2), np.int64), *(mask.runs for mask in masks)]))


def common(runs: Runs, others: Runs) -> npt.NDArray[np.int64]:
    """How many pixels of each of the runs lie in the others, which do not overlap among themselves: int64 [n].

    How many of the others' pixels come before a place is linear between their ends, so two look-ups a run tell it.
    """
    if not len(others):
        return np.zeros(len(runs), np.int64)
    lengths = others[:, 1] - others[:, 0]
    after = np.cumsum(lengths)
    counted = np.column_stack((after - lengths, after)).ravel()
    before = np.interp(runs, others.ravel(), counted)  # exact: slopes are 0 and 1, places below 2^53
    shared: npt.NDArray[np.int64] = (before[:, 1] - before[:, 0]).astype(np.int64)
    return shared


def _encoded(written: dict[str, Any]) -> Mask:
    size, counts = written.get("size"), written.get("counts")
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        raise Malformed("a mask's size is [height, width]")
    height, width = size
    if not all(type(side) is int and 0 < side <= LONGEST_SIDE for side in (height, width)):
        raise Malformed(f"a mask's height and width are whole numbers from 1 to {LONGEST_SIDE}")
    if isinstance(counts, str):
        counts = _decompress(counts)
    if not isinstance(counts, (list, tuple)):
        raise Malformed("a mask's counts are a list of numbers or COCO's compressed string")
    if not all(type(count) is int and 0 <= count <= height * width for count in counts):
        raise Malformed("a mask's counts are whole numbers of pixels")
    if sum(counts) != height * width:
        raise Malformed("a mask's counts add up to height times width")
    ends = np.cumsum(np.array(counts, np.int64))
    return Mask(height, width, _merge_runs(ends[: len(ends) // 2 * 2].reshape(-1, 2)))


def _decompress(text: str) -> list[int]:
    """COCO's string: numbers of five bits a character, lowest first, from the third on less the one two before."""
    counts: list[int] = []
    number = shift = 0
    for character in text:
        bits = ord(character) - _FIRST
        if not 0 <= bits < 64 or shift > 35:  # 2^35 is beyond the largest image
            raise Malformed("a mask's compressed counts are not COCO's")
        number |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            number -= 1 << shift
        counts.append(number + counts[-2] if len(counts) > 2 else number)
        number = shift = 0
    if shift:
        raise Malformed("a mask's compressed counts end within a number")
    return counts


def _rows(written: Sequence[Any]) -> Mask:
    try:
        pixels = np.asarray(written)
    except ValueError:  # rows of different lengths
        pixels = np.empty(0)
    if pixels.ndim != 2 or not pixels.size or max(pixels.shape) > LONGEST_SIDE:
        raise Malformed("a mask's rows are of one length")
    if pixels.dtype.kind not in "biu" or not ((pixels == 0) | (pixels == 1)).all():
        raise Malformed("a mask's rows hold 0 and 1")
    flat = np.concatenate(([0], pixels.ravel(order="F").astype(np.int8), [0]))
    return Mask(pixels.shape[0], pixels.shape[1], np.flatnonzero(np.diff(flat)).reshape(-1, 2))


def _merge_runs(runs: Runs) -> Runs:
    """Merge runs that overlap or touch."""
    runs = runs[runs[:, 0] < runs[:, 1]]
    if not len(runs):
        return runs
    runs = runs[np.argsort(runs[:, 0], kind="stable")]
    reach = np.maximum.accumulate(runs[:, 1])
    apart = np.flatnonzero(runs[1:, 0] > reach[:-1])
    return np.column_stack((runs[np.append(0, apart + 1), 0], reach[np.append(apart, len(runs) - 1)]))
