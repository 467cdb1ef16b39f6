"""Areas that polygons have in common, against shapely."""

import math

import numpy as np
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ragtide.evaluators.vision.errors import Malformed, TooLarge
from ragtide.evaluators.vision.polygons import MOST_VERTICES, Floats, areas, areas_in_common, read_polygon

SQUARE = [(0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 4.0)]


@st.composite
def stars(draw: st.DrawFn) -> Floats:
    """Simple polygons, few of them convex: corners in the order of their angles round a place inside."""
    turns = sorted(draw(st.lists(st.integers(0, 359), min_size=3, max_size=12, unique=True)))
    x, y = draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
    lengths = [draw(st.integers(1, 6)) for _ in turns]
    corners = np.array(
        [
            (x + r * math.cos(math.radians(turn)), y + r * math.sin(math.radians(turn)))
            for turn, r in zip(turns, lengths, strict=True)
        ]
    )
    assume(shapely.is_valid(shapely.polygons(corners)))
    return corners if draw(st.booleans()) else corners[::-1]


@settings(deadline=None)
@given(st.lists(stars(), max_size=3), st.lists(stars(), max_size=3))
def test_areas_are_those_of_shapely(some: list[Floats], others: list[Floats]) -> None:
    found = areas_in_common(some, others)
    assert found.shape == (len(some), len(others))
    for row, one in enumerate(some):
        for column, other in enumerate(others):
            both = shapely.area(shapely.intersection(shapely.polygons(one), shapely.polygons(other)))
            assert found[row, column] == pytest.approx(both, abs=1e-9)
    assert areas(some) == pytest.approx([shapely.area(shapely.polygons(one)) for one in some], abs=1e-9)


def test_whole_numbers_give_whole_areas() -> None:
    """An L of 10 and a square of 16 share 3: no IoU is a rounding below its threshold."""
    angle = read_polygon([(3, -1), (7, -1), (7, 1), (4, 1), (4, 3), (3, 3)])
    square = read_polygon(SQUARE)
    assert areas([angle, square]).tolist() == [10.0, 16.0]
    assert areas_in_common([angle], [square]).tolist() == [[3.0]]


def test_far_from_zero_nothing_is_lost() -> None:
    far = np.array(SQUARE) + 1e6
    assert areas_in_common([far], [far + 1.0]).tolist() == [[9.0]]


@pytest.mark.parametrize(
    "corners",
    [
        [(0, 0), (2, 2), (2, 0), (0, 2)],  # a bow tie
        [(0, 0), (1, 1), (2, 2)],
        [(0, 0), (4, 0), (4, 4), (2, 0), (0, 4)],  # touches itself in a corner
    ],
)
def test_edges_that_cross_or_coincide_are_told(corners: list[tuple[float, float]]) -> None:
    with pytest.raises(Malformed, match="edges do not cross or coincide"):
        read_polygon(corners)


def test_fewer_than_three_corners_are_none() -> None:
    for corners in ([], [(0.0, 0.0)], [(0.0, 0.0), (1.0, 1.0)], [(0.0, 0.0), (1.0, 1.0), (0.0, 0.0)], [(1.0, 1.0)] * 3):
        with pytest.raises(Malformed, match="three corners"):
            read_polygon(corners)
    assert len(read_polygon([*SQUARE, SQUARE[0]])) == 4


def test_combs_that_cross_everywhere_take_no_longer_than_their_edges_say() -> None:
    """1,600 edges each: GEOS takes minutes for the half million crossings."""
    teeth = 800
    points = [point for tooth in range(teeth) for point in ((tooth, 0.0), (tooth + 0.5, teeth))]
    comb = np.array([*points, (teeth, -1.0), (0.0, -1.0)])
    [[both]] = areas_in_common([comb], [comb[:, ::-1]]).tolist()
    assert both == pytest.approx(teeth * teeth / 4, rel=1e-3)  # a quarter of the square: half of it is teeth, twice


def test_too_many_edges_are_refused() -> None:
    turns = np.linspace(0, 2 * np.pi, MOST_VERTICES, endpoint=False)
    circle = np.column_stack((np.cos(turns), np.sin(turns)))
    assert areas_in_common([circle], [circle]) == pytest.approx(np.pi, rel=1e-4)
    with pytest.raises(TooLarge):
        areas_in_common([circle] * 2, [circle] * 2)
    with pytest.raises(TooLarge):
        read_polygon([(x, y) for x, y in np.repeat(circle, 2, axis=0)])
    apart = [circle[::10] + 10 * place for place in range(20)]  # 16 million pairs of edges, most of them far apart
    assert areas_in_common(apart, apart).sum() == pytest.approx(20 * np.pi, rel=1e-3)
