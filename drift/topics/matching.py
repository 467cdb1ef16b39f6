"""New topics take the ids and names of the old ones that they continue. Pure."""

from collections.abc import Sequence

import numpy as np

from drift.topics.model import Topic, cosines_of
from evaluators.spec import Vectors

FLOOR = 0.8  # least cosine of two centroids of one topic; those of different topics lie near 0.4


def continued(centroids: Vectors, known: Sequence[Topic], floor: float = FLOOR) -> list[Topic | None]:
    """The known topic that each centroid [n, dimension] continues, each at most once; None: it is new.

    Of all assignments that one whose cosines are greatest in sum (Kuhn 1955). Topics in use go before retired ones: one
    that comes back has its name again, but takes nobody's.
    """
    found: list[Topic | None] = [None] * len(centroids)
    for some in ([topic for topic in known if topic.questions], [topic for topic in known if not topic.questions]):
        free = [at for at, topic in enumerate(found) if topic is None]
        if free and some:
            for at, topic in _assigned(centroids[free], some, floor):
                found[free[at]] = topic
    return found


def _assigned(centroids: Vectors, known: Sequence[Topic], floor: float) -> list[tuple[int, Topic]]:
    from scipy.optimize import linear_sum_assignment

    cosines = cosines_of(centroids, np.stack([topic.centroid for topic in known]))
    worth = np.where(cosines >= floor, cosines, 0.0)  # what is no match must not draw one away
    rows, columns = linear_sum_assignment(worth, maximize=True)
    return [(row, known[at]) for row, at in zip(rows.tolist(), columns.tolist(), strict=True) if worth[row, at] > 0]
