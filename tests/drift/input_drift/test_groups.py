"""Groups on planted topics: each has its own, what is far from all has none, and the same comes of the same."""

import numpy as np

from ragtide.drift.input_drift.reference import MAX_GROUPS, cluster
from tests.drift.topics.synthetic import around, directions, scattered

TOPICS = np.concatenate([around(directions(8)[topic], 100, topic) for topic in range(4)])


def test_no_group_holds_two_topics_and_what_nobody_asked_is_in_none() -> None:
    groups = cluster(TOPICS, seed=1)
    of = groups.assign(TOPICS)
    held = [set(np.flatnonzero(of == group) // 100) for group in range(groups.outlier)]
    assert all(len(topics) == 1 for topics in held)
    assert set.union(*held) == {0, 1, 2, 3}
    assert (of == groups.outlier).mean() < 0.05
    assert (groups.assign(around(directions(8)[6], 50, 9)) == groups.outlier).all()


def test_the_same_vectors_and_seed_have_the_same_groups() -> None:
    first, second = cluster(TOPICS, seed=3), cluster(TOPICS, seed=3)
    assert np.array_equal(first.centroids, second.centroids)
    assert np.array_equal(first.min_cosines, second.min_cosines)


def test_few_alike_and_many_unlike_questions_have_groups_too() -> None:
    assert cluster(np.repeat(TOPICS[:1], 1_000, axis=0), seed=1).outlier == 1
    assert cluster(TOPICS[:1], seed=1).outlier == 1
    assert cluster(scattered(2_000, 1), seed=1).outlier == MAX_GROUPS
    assert cluster(np.zeros((200, 8), np.float32), seed=1).outlier == 1, "without direction"
