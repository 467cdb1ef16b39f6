"""Groups on planted topics: each has its own, what is far from all has none, and the same comes of the same."""

import numpy as np

from drift.questions.clusters import MOST, groups_of
from tests.drift.topics.planted import around, directions, scattered

TOPICS = np.concatenate([around(directions(8)[topic], 100, topic) for topic in range(4)])


def test_no_group_holds_two_topics_and_what_nobody_asked_is_in_none() -> None:
    groups = groups_of(TOPICS, seed=1)
    of = groups.of(TOPICS)
    held = [set(np.flatnonzero(of == group) // 100) for group in range(groups.none)]
    assert all(len(topics) == 1 for topics in held)
    assert set.union(*held) == {0, 1, 2, 3}
    assert (of == groups.none).mean() < 0.05
    assert (groups.of(around(directions(8)[6], 50, 9)) == groups.none).all()


def test_the_same_vectors_and_seed_have_the_same_groups() -> None:
    first, second = groups_of(TOPICS, seed=3), groups_of(TOPICS, seed=3)
    assert np.array_equal(first.centroids, second.centroids)
    assert np.array_equal(first.least_cosines, second.least_cosines)


def test_few_alike_and_many_unlike_questions_have_groups_too() -> None:
    assert groups_of(np.repeat(TOPICS[:1], 1_000, axis=0), seed=1).none == 1
    assert groups_of(TOPICS[:1], seed=1).none == 1
    assert groups_of(scattered(2_000, 1), seed=1).none == MOST
    assert groups_of(np.zeros((200, 8), np.float32), seed=1).none == 1, "without direction"
