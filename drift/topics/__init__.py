"""Find topics of users' questions: a job fits a versioned model, which assigns each new trace its topic.

>>> import numpy as np
>>> questions = np.array([[1.0, 0.0], [0.8, 0.6]], np.float32)
>>> cosines_of(questions, centroid_of(questions)[None]).round(2).tolist()
[[0.95], [0.95]]
"""

from ragtide.drift.topics.clusters import NO_CLUSTER, find_clusters_apart, missing_package
from ragtide.drift.topics.fit import fit_topics
from ragtide.drift.topics.model import (
    OTHER_TOPIC,
    TOPIC,
    TopicModel,
    centroid_of,
    cosines_of,
    min_cosine_of,
    principal_components,
)
from ragtide.drift.topics.source import ENCODED_VECTOR, START_OF_MINUTE, decode_vectors, minute_counts
from ragtide.drift.topics.store import (
    TopicModelView,
    current_models,
    fitted_at,
    load_newest_models,
    newest_model_version,
)

__all__ = [
    "ENCODED_VECTOR",
    "NO_CLUSTER",
    "OTHER_TOPIC",
    "START_OF_MINUTE",
    "TOPIC",
    "TopicModel",
    "TopicModelView",
    "centroid_of",
    "cosines_of",
    "current_models",
    "decode_vectors",
    "find_clusters_apart",
    "fit_topics",
    "fitted_at",
    "load_newest_models",
    "min_cosine_of",
    "minute_counts",
    "missing_package",
    "newest_model_version",
    "principal_components",
]
