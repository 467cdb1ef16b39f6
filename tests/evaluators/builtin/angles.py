"""An encoder whose cosines are known: texts are unit vectors of given angles."""

from collections.abc import Mapping, Sequence

import numpy as np

from ragtide.evaluators.spec import Vectors


class Angles:
    """Gives each text the unit vector of an angle, in degrees: the cosine of two texts is that of their difference."""

    revision, dimension = "angles@1", 2

    def __init__(self, angles: Mapping[str, float]) -> None:
        self.angles = angles
        self.calls: list[list[str]] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        radians = np.radians([self.angles[text] for text in texts])
        return np.stack((np.cos(radians), np.sin(radians)), axis=1).astype(np.float32)

    def count_tokens(self, texts: Sequence[str]) -> int:
        return len(texts)


def cosine(degrees: float) -> float:
    return float(np.cos(np.radians(degrees)))
