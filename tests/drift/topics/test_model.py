"""Questions are placed in the nearest topic that reaches so far; ids and names go on over refits."""

from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.drift.topics.fit import match_topics
from ragtide.drift.topics.model import OTHER_TOPIC, Topic, TopicModel, centroid_of, min_cosine_of


def unit(*numbers: float) -> npt.NDArray[np.float32]:
    found = np.array(numbers, np.float32)
    return found / np.linalg.norm(found)


def topic(id_: int, centroid: npt.NDArray[np.float32], least: float = 0.9, questions: int = 10) -> Topic:
    return Topic(id_, f"t{id_}", centroid, least, questions)


def model(*topics: Topic) -> TopicModel:
    return TopicModel("shop", "e@1", 1, datetime(2026, 1, 1, tzinfo=UTC), 100, topics)


def test_the_nearest_topic_that_reaches_so_far() -> None:
    found = model(topic(1, unit(1, 0)), topic(2, unit(0, 1), least=0.5), topic(3, unit(1, -1), questions=0))
    # cos of (1, 0.1) with t1 is 0.995; of (1, 0.7) 0.82 with t1, too far, and 0.57 with t2; of (1, 0.5) 0.89 and 0.45;
    # t3 is retired
    vectors = np.array([[1, 0.1], [1, 0.7], [1, 0.5], [1, -1]], np.float32)
    assert found.assign(vectors) == ["t1", "t2", OTHER_TOPIC, OTHER_TOPIC]


def test_a_model_without_topics_names_none() -> None:
    assert model(topic(1, unit(1, 0), questions=0)).assign(np.ones((2, 2), np.float32)) == ["", ""]


@given(st.integers(0, 999), st.integers(1, 40))
def test_a_question_has_one_topic_whatever_it_comes_with(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    centroids = rng.normal(size=(7, 16)).astype(np.float32)
    found = model(*(topic(i, unit(*row), least=0.2) for i, row in enumerate(centroids, start=1)))
    vectors = rng.normal(size=(40, 16)).astype(np.float32)
    parts = [name for at in range(0, 40, size) for name in found.assign(vectors[at : at + size])]
    assert parts == found.assign(vectors)


def test_a_topic_reaches_as_far_as_its_questions() -> None:
    vectors = np.stack([unit(1, 0), unit(1, 0), unit(1, 0), unit(0, 1)])
    centroid = centroid_of(vectors)
    assert centroid == pytest.approx(unit(3, 1))
    assert min_cosine_of(vectors, centroid, 0.0) == pytest.approx(1 / np.sqrt(10), abs=1e-6)
    assert min_cosine_of(vectors, centroid, 0.5) == pytest.approx(3 / np.sqrt(10), abs=1e-6)


def test_all_topics_go_on_where_greed_would_lose_one() -> None:
    """The first is nearest to both; only one of the two assignments keeps both above the floor."""
    old = [topic(1, unit(1, 0.0)), topic(2, unit(1, 0.55))]
    fresh = np.stack([unit(1, 0.05), unit(1, -0.4)])
    assert [one and one.id for one in match_topics(fresh, old)] == [2, 1]


def test_below_the_floor_a_topic_is_new() -> None:
    old = [topic(1, unit(1, 0)), topic(2, unit(0, 1))]
    assert match_topics(np.stack([unit(1, 0.8)]), old) == [None]  # cos 0.78 and 0.62
    assert match_topics(np.stack([unit(1, 0.7)]), old) == [old[0]]  # cos 0.82


def test_a_retired_topic_comes_back_and_takes_nobodys_place() -> None:
    old = [topic(1, unit(1, 0), questions=0), topic(2, unit(1, 0.3))]
    nearer_to_the_retired = np.stack([unit(1, 0.1)])
    assert [one and one.id for one in match_topics(nearer_to_the_retired, old)] == [2]
    both = np.stack([unit(1, 0.1), unit(1, 0.35)])
    assert [one and one.id for one in match_topics(both, old)] == [1, 2]


def test_nothing_continues_nothing() -> None:
    assert match_topics(np.stack([unit(1, 0)]), []) == [None]
    assert match_topics(np.zeros((0, 2), np.float32), [topic(1, unit(1, 0))]) == []
