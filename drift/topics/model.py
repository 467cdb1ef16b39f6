"""A topic model: centroids and names of the topics of one application's questions. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt

from ragtide.evaluators.spec import Vectors

TOPIC = "topic"
OTHER_TOPIC = "other"  # the topic of questions that belong to none
_DIGITS = 6  # of a cosine: the order of summation changes later ones only


@dataclass(frozen=True, slots=True, eq=False)
class Topic:
    """Questions of similar meaning. Id and name never change and are never reused."""

    id: int
    name: str
    centroid: npt.NDArray[np.float32]  # [dimension], of length 1
    min_cosine: float  # of a question with the centroid
    questions: int  # in the fit; 0: retired


@dataclass(frozen=True, slots=True, eq=False)
class TopicModel:
    """The topics of an application for one encoder; `topics` includes retired ones."""

    app: str
    encoder: str  # name and revision; vectors of two encoders are not comparable
    version: int
    fitted_at: datetime
    questions: int  # in the fit
    topics: tuple[Topic, ...]

    @property
    def active(self) -> tuple[Topic, ...]:
        """Topics that are assigned to questions."""
        return tuple(topic for topic in self.topics if topic.questions)

    def assign(self, vectors: Vectors) -> list[str]:
        """Return the topic of each vector [n, dimension]: the nearest within its radius, else `other`.

        The topic of a vector does not depend on the others. Names are empty if the model has no topic.
        """
        topics = self.active
        if not topics:
            return [""] * len(vectors)
        cosines = cosines_of(vectors, np.stack([topic.centroid for topic in topics]))
        reached = np.where(cosines >= [topic.min_cosine for topic in topics], cosines, -np.inf)
        nearest = reached.argmax(axis=1)
        return [
            topics[at].name if np.isfinite(reached[row, at]) else OTHER_TOPIC for row, at in enumerate(nearest.tolist())
        ]


def cosines_of(vectors: Vectors, centroids: Vectors) -> npt.NDArray[np.float64]:
    """Return the cosine of each vector with each centroid [n, topics]; 0 for a zero vector."""
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    cosines = wide @ centroids.T.astype(np.float64) / np.maximum(lengths, 1e-12)
    return np.asarray(cosines, np.float64).round(_DIGITS)


def principal_components(vectors: Vectors, dimensions: int) -> npt.NDArray[np.float64]:
    """Project vectors on their principal components [n, dimensions]; the sign of each component is fixed."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    directions = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :dimensions]
    largest = np.abs(directions).argmax(axis=0)
    directions *= np.sign(directions[largest, np.arange(directions.shape[1])])
    return np.asarray(centred @ directions, np.float64)


def centroid_of(vectors: Vectors) -> npt.NDArray[np.float32]:
    """Return the mean direction, of length 1."""
    mean = vectors.mean(axis=0, dtype=np.float64)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12), np.float32)


def min_cosine_of(vectors: Vectors, centroid: npt.NDArray[np.float32], left_out: float) -> float:
    """Return the cosine with the centroid that all but a share `left_out` of the vectors reach."""
    cosines: Sequence[float] = cosines_of(vectors, centroid[None])[:, 0].tolist()
    return float(np.quantile(cosines, left_out))
