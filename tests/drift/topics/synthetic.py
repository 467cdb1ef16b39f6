"""Questions about planted topics, as vectors around a direction each, and in words."""

import numpy as np
import numpy.typing as npt

from ragtide.evaluators.spec import Vectors

DIMENSION = 48


def directions(count: int, seed: int = 7) -> Vectors:
    """Unit vectors at right angles [count, 48]."""
    found = np.linalg.qr(np.random.default_rng(seed).normal(size=(DIMENSION, DIMENSION)))[0]
    return found[:count].astype(np.float32)


def around(direction: Vectors, count: int, seed: int, spread: float = 0.07) -> Vectors:
    """Unit vectors near a direction: at the default spread with a cosine of about 0.9 [count, 48]."""
    found = direction + np.random.default_rng(seed).normal(scale=spread, size=(count, DIMENSION))
    return _unit(found)


def scattered(count: int, seed: int) -> Vectors:
    """Unit vectors of no direction in particular [count, 48]."""
    found = np.random.default_rng(seed).normal(size=(count, DIMENSION))
    return _unit(found)


def _unit(vectors: npt.NDArray[np.float64]) -> Vectors:
    unit: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit
