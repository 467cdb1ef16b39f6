"""Polygons: shapely checks that they are simple. Common areas are computed from their edges, in predictable time.

GEOS, behind shapely, takes 50 us for each place where two outlines cross, so two combs of 400 teeth take it a minute.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ragtide.evaluators.vision.errors import Malformed, TooLarge

Floats = npt.NDArray[np.float64]
MOST_VERTICES = 2_000  # of one polygon
MOST_EDGE_PAIRS = 10_000_000
_AT_ONCE = 200_000  # edge pairs: some 20 MB


def read_polygon(points: Sequence[tuple[float, float]]) -> Floats:
    """Return the corners, float64 [n, 2]. The last may repeat the first.

    Raises `Malformed` if edges cross or coincide.
    """
    import shapely

    if len(points) > 1 and points[0] == points[-1]:
        points = points[:-1]
    if len(points) < 3:
        raise Malformed("a polygon has three corners or more")
    if len(points) > MOST_VERTICES:
        raise TooLarge
    corners = np.array(points, np.float64)
    if not shapely.is_valid(shapely.polygons(corners)):
        raise Malformed("a polygon's edges do not cross or coincide")
    return corners


def areas(polygons: Sequence[Floats]) -> Floats:
    """Return the areas of simple polygons: float64 [n]."""
    return np.array([_area(_edges(polygon, float(polygon[:, 1].min()))) for polygon in polygons])


def areas_in_common(polygons: Sequence[Floats], others: Sequence[Floats]) -> Floats:
    """Return the common area of each pair of simple polygons: float64 [len(polygons), len(others)].

    Raises `TooLarge` for too many edges.
    """
    found = np.zeros((len(polygons), len(others)))
    if not found.size:
        return found
    low, high = _corners_of_bounds(polygons)
    other_low, other_high = _corners_of_bounds(others)
    near = np.all((low[:, None] < other_high) & (other_low < high[:, None]), axis=2)
    sizes, other_sizes = np.array([len(p) for p in polygons]), np.array([len(p) for p in others])
    if (near * sizes[:, None] * other_sizes).sum() > MOST_EDGE_PAIRS:
        raise TooLarge
    floor = float(min(low[:, 1].min(), other_low[:, 1].min()))
    edges = [_edges(polygon, floor) for polygon in polygons]
    for column, other in enumerate(others):
        rows = np.flatnonzero(near[:, column])
        if len(rows):
            found[rows, column] = np.abs(_common_areas([edges[row] for row in rows], _edges(other, floor)))
    return found


def _corners_of_bounds(polygons: Sequence[Floats]) -> tuple[Floats, Floats]:
    return np.array([p.min(axis=0) for p in polygons]), np.array([p.max(axis=0) for p in polygons])


def _edges(corners: Floats, floor: float) -> Floats:
    """Return edges from left to right with heights over the floor, [n, 5]: x, height, x, height, -1 if reversed, else
    1.

    Vertical edges have nothing below them and are left out.
    """
    ends = np.column_stack((corners, np.roll(corners, -1, axis=0))) - np.array([0.0, floor, 0.0, floor])
    ends = ends[ends[:, 0] != ends[:, 2]]
    turned = ends[:, 0] > ends[:, 2]
    ends[turned] = ends[turned][:, [2, 3, 0, 1]]
    return np.column_stack((ends, np.where(turned, -1.0, 1.0)))


def _area(edges: Floats) -> float:
    left, low, right, high, sign = edges.T
    return float(abs((sign * (right - left) * (low + high) / 2).sum()))


def _common_areas(polygons: Sequence[Floats], other: Floats) -> Floats:
    """Return signed common areas: float64 [len(polygons)].

    A polygon is the signed sum of the areas below its edges. The common area of two is the signed sum, over pairs of
    edges, of the area below both: the integral of the lower one where both exist.
    """
    edges = np.concatenate(polygons)
    below = np.zeros(len(edges))
    step = max(1, _AT_ONCE // len(edges))
    for start in range(0, len(other), step):
        below += _below_both(edges, other[start : start + step])
    return np.add.reduceat(below, np.cumsum([0, *(len(polygon) for polygon in polygons[:-1])]))


def _below_both(edges: Floats, others: Floats) -> Floats:
    """Return for each edge the signed sum of the areas below it and each of the others: float64 [len(edges)]."""
    left = np.maximum(edges[:, None, 0], others[:, 0])
    right = np.minimum(edges[:, None, 2], others[:, 2])
    width = np.maximum(right - left, 0.0)
    at_left, at_right = _height(edges[:, None], left), _height(edges[:, None], right)
    over_left, over_right = at_left - _height(others, left), at_right - _height(others, right)
    # The integral of the lower one is that of the edge less that of what it has over the other.
    excess = np.maximum(over_left, 0.0) + np.maximum(over_right, 0.0)
    spread = np.abs(over_left) + np.abs(over_right)
    crossing = over_left * over_right < 0.0
    share = np.divide(excess, spread, out=np.ones_like(excess), where=crossing)
    area = width * (at_left + at_right - excess * share) / 2
    signed: Floats = (area * others[:, 4]).sum(axis=1) * edges[:, 4]
    return signed


def _height(edges: Floats, x: Floats) -> Floats:
    left, low, right, high = (edges[..., place] for place in range(4))
    return low + (x - left) * ((high - low) / (right - left))
