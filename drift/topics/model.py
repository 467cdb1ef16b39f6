"""A topic model: where the topics of one application's questions lie, and what they are called. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt

from ragtide.evaluators.spec import Vectors

SEGMENT = "topic"
OTHER = "other"  # a question that is in no topic
_DIGITS = 6  # of a cosine: what the order of adding up may change lies far below


@dataclass(frozen=True, slots=True, eq=False)
class Topic:
    """Questions that mean much the same. Its id and its name never change, and are never given to another."""

    id: int
    name: str
    centroid: npt.NDArray[np.float32]  # [dimension], of length 1
    min_cosine: float  # between the centroid and what is of this topic
    questions: int  # of those that the model was fitted on; 0: retired


@dataclass(frozen=True, slots=True, eq=False)
class TopicModel:
    """The topics of an application, as one encoder sees its questions. `topics` holds the retired ones, too."""

    app: str
    encoder: str  # name and revision; vectors of two encoders never compare
    version: int
    fitted_at: datetime
    questions: int  # that it was fitted on
    topics: tuple[Topic, ...]

    @property
    def active(self) -> tuple[Topic, ...]:
        """The topics that questions are placed in."""
        return tuple(topic for topic in self.topics if topic.questions)

    def assign(self, vectors: Vectors) -> list[str]:
        """The topic of each question by its vector [n, dimension]: the nearest that reaches so far, else `other`.

        The same vector has the same topic, whichever others it comes with. Empty names where the model has no topic.
        """
        topics = self.active
        if not topics:
            return [""] * len(vectors)
        cosines = cosines_of(vectors, np.stack([topic.centroid for topic in topics]))
        reached = np.where(cosines >= [topic.min_cosine for topic in topics], cosines, -np.inf)
        nearest = reached.argmax(axis=1)
        return [topics[at].name if np.isfinite(reached[row, at]) else OTHER for row, at in enumerate(nearest.tolist())]


def cosines_of(vectors: Vectors, centroids: Vectors) -> npt.NDArray[np.float64]:
    """Of each vector with each centroid [n, topics]; 0 for a vector without direction."""
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    cosines = wide @ centroids.T.astype(np.float64) / np.maximum(lengths, 1e-12)
    return np.asarray(cosines, np.float64).round(_DIGITS)


def principal_components(vectors: Vectors, dimensions: int) -> npt.NDArray[np.float64]:
    """The vectors along the directions in which they vary most [n, dimensions]; each direction's sign is fixed."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    directions = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :dimensions]
    largest = np.abs(directions).argmax(axis=0)
    directions *= np.sign(directions[largest, np.arange(directions.shape[1])])
    return np.asarray(centred @ directions, np.float64)


def centroid_of(vectors: Vectors) -> npt.NDArray[np.float32]:
    """The direction in which most of these lie, of length 1."""
    mean = vectors.mean(axis=0, dtype=np.float64)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12), np.float32)


def min_cosine_of(vectors: Vectors, centroid: npt.NDArray[np.float32], left_out: float) -> float:
    """Which all but a share `left_out` of the vectors reach."""
    cosines: Sequence[float] = cosines_of(vectors, centroid[None])[:, 0].tolist()
    return float(np.quantile(cosines, left_out))
