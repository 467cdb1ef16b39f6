"""Group questions by meaning: spherical k-means over a reference (Dhillon and Modha 2001). Pure.

Each question of the reference belongs to a group. A later question belongs to the nearest group, or to none if it lies
farther from the centroid than 99 % of the group's reference. So new kinds of questions show as outliers.
"""

from dataclasses import dataclass

import numpy as np

from ragtide.drift.detectors.arrays import Floats, Integers
from ragtide.drift.topics.model import centroid_of, cosines_of, min_cosine_of
from ragtide.evaluators.spec import Vectors

MAX_GROUPS = 12
_MIN_SIZE = 50  # mean number of questions of a group, at least
_OUTLIER_SHARE = 0.01  # of a group's reference that counts as outliers
_ROUNDS = 50


@dataclass(frozen=True, slots=True, eq=False)
class QuestionGroups:
    """Centroids [k, dimension] of length 1, and the minimum cosine [k] of a group's questions."""

    centroids: Vectors
    least_cosines: Floats

    @property
    def outlier(self) -> int:
        """Number of the group of outliers."""
        return len(self.centroids)

    def assign(self, vectors: Vectors) -> Integers:
        """Return the group of each question [n, dimension], from 0 on, or `outlier`."""
        if not len(vectors):
            return np.empty(0, np.int64)
        cosines = cosines_of(vectors, self.centroids)
        nearest = cosines.argmax(axis=1)
        reached = cosines[np.arange(len(nearest)), nearest] >= self.least_cosines[nearest]
        return np.where(reached, nearest, self.outlier).astype(np.int64)


def cluster(vectors: Vectors, seed: int) -> QuestionGroups:
    """Cluster questions [n, dimension] in 1 to 12 groups; deterministic for the same vectors and seed."""
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    most = min(MAX_GROUPS, max(len(vectors) // _MIN_SIZE, 1))
    centroids = _initial_centroids(units, most, np.random.default_rng(seed))
    nearest = np.full(len(units), -1)
    for _ in range(_ROUNDS):
        before, nearest = nearest, cosines_of(units, centroids).argmax(axis=1)
        if np.array_equal(before, nearest):
            break
        centroids = np.stack([centroid_of(units[nearest == one]) for one in np.unique(nearest)])
    nearest = cosines_of(units, centroids).argmax(axis=1)
    kept = np.unique(nearest)
    least = [min_cosine_of(units[nearest == one], centroids[one], _OUTLIER_SHARE) for one in kept]
    return QuestionGroups(centroids[kept], np.array(least))


def _initial_centroids(units: Vectors, most: int, rng: np.random.Generator) -> Vectors:
    """Sample questions far from each other (k-means++, Arthur and Vassilvitskii 2007)."""
    chosen = [int(rng.integers(len(units)))]
    distance = 1 - cosines_of(units, units[chosen])[:, 0]
    while len(chosen) < most and (weights := np.maximum(distance, 0.0)).any():
        chosen.append(int(rng.choice(len(units), p=weights / weights.sum())))
        distance = np.minimum(distance, 1 - cosines_of(units, units[chosen[-1:]])[:, 0])
    return units[chosen]
