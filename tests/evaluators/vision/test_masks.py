"""Masks read from rows and from COCO's encoding, against pycocotools and numpy."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from pycocotools import mask as coco

from ragtide.evaluators.vision.errors import Malformed
from ragtide.evaluators.vision.masks import Mask, common, read_mask, union

Pixels = npt.NDArray[np.uint8]
PIXELS = arrays(np.uint8, array_shapes(min_dims=2, max_dims=2, max_side=12), elements=st.integers(0, 1))
PAIRS = array_shapes(min_dims=2, max_dims=2, max_side=12).flatmap(
    lambda shape: st.tuples(*[arrays(np.uint8, shape, elements=st.integers(0, 1))] * 2)
)


def drawn(mask: Mask) -> Pixels:
    flat = np.zeros(mask.height * mask.width, np.uint8)
    for start, end in mask.runs:
        flat[start:end] = 1
    return flat.reshape((mask.height, mask.width), order="F")


def counts(pixels: Pixels) -> list[int]:
    """COCO's, not compressed: lengths of runs by columns, zeros first."""
    lengths, value = [0], 0
    for pixel in pixels.ravel(order="F").tolist():
        if pixel != value:
            value = pixel
            lengths.append(0)
        lengths[-1] += 1
    return lengths


@given(PIXELS)
def test_rows_counts_and_compressed_counts_are_one_mask(pixels: Pixels) -> None:
    size = list(pixels.shape)
    compressed = coco.encode(np.asfortranarray(pixels))["counts"].decode()
    for written in (pixels.tolist(), {"size": size, "counts": counts(pixels)}, {"size": size, "counts": compressed}):
        mask = read_mask(written)
        assert (drawn(mask) == pixels).all()
        assert mask.area == pixels.sum()


def test_a_large_mask_in_compressed_counts() -> None:
    pixels = np.zeros((2_000, 3_000), np.uint8)
    pixels[100:1_900:7, 50:2_900] = 1
    written = coco.encode(np.asfortranarray(pixels))
    mask = read_mask({"size": written["size"], "counts": written["counts"].decode()})
    assert mask.area == coco.area(written)
    assert int(common(mask.runs, mask.runs).sum()) == mask.area


@given(PAIRS)
def test_what_masks_share_and_cover_together(pair: tuple[Pixels, Pixels]) -> None:
    one, other = (read_mask(pixels.tolist()) for pixels in pair)
    assert common(one.runs, other.runs).sum() == (pair[0] & pair[1]).sum()
    both = Mask(one.height, one.width, union([one, other]))
    assert (drawn(both) == (pair[0] | pair[1])).all()
    assert (both.runs[1:, 0] > both.runs[:-1, 1]).all()  # they do not touch


def test_no_masks_cover_nothing() -> None:
    assert len(union([])) == 0
    assert common(union([]), union([])).sum() == 0


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (None, "rows of 0 and 1"),
        ("0110", "rows of 0 and 1"),
        ([], "rows are of one length"),
        ([[]], "rows are of one length"),
        ([0, 1], "rows are of one length"),
        ([[0, 1], [1]], "rows are of one length"),
        ([[[0]]], "rows are of one length"),
        ([[0, 2]], "hold 0 and 1"),
        ([[0, -1]], "hold 0 and 1"),
        ([[0.5, 1]], "hold 0 and 1"),
        ([["a", "b"]], "hold 0 and 1"),
        ([[None, 1]], "hold 0 and 1"),
        ([[10**30, 1]], "hold 0 and 1"),
        ({}, "size is"),
        ({"size": [2], "counts": [2]}, "size is"),
        ({"size": [2, 0], "counts": [0]}, "whole numbers from 1"),
        ({"size": [2, 2.0], "counts": [4]}, "whole numbers from 1"),
        ({"size": [True, 4], "counts": [4]}, "whole numbers from 1"),
        ({"size": [10**9, 10**9], "counts": [10**18]}, "whole numbers from 1"),
        ({"size": [2, 2]}, "counts are a list"),
        ({"size": [2, 2], "counts": [3]}, "add up"),
        ({"size": [2, 2], "counts": [4, 1]}, "add up"),
        ({"size": [2, 2], "counts": [5, -1]}, "whole numbers of pixels"),
        ({"size": [2, 2], "counts": [float("nan")]}, "whole numbers of pixels"),
        ({"size": [2, 2], "counts": ["4"]}, "whole numbers of pixels"),
        ({"size": [2, 2], "counts": ""}, "add up"),
        ({"size": [2, 2], "counts": "\ud800"}, "not COCO's"),
        ({"size": [2, 2], "counts": "é"}, "not COCO's"),
        ({"size": [2, 2], "counts": "P" * 100_000}, "not COCO's"),
        ({"size": [2, 2], "counts": "P"}, "end within"),
    ],
)
def test_what_is_no_mask_is_told(written: Any, says: str) -> None:
    with pytest.raises(Malformed, match=says):
        read_mask(written)


@given(st.text(st.characters(min_codepoint=40, max_codepoint=120), max_size=40))
def test_any_string_is_a_mask_of_its_size_or_malformed(text: str) -> None:
    try:
        mask = read_mask({"size": [5, 7], "counts": text})
    except Malformed:
        return
    assert 0 <= mask.area <= 35
    assert ((mask.runs >= 0) & (mask.runs <= 35)).all()
