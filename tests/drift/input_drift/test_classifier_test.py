"""The two-sample test on samples whose difference is known, and on such that have none."""

import numpy as np
import pytest

from ragtide.drift.input_drift.classifier_test import MIN_QUESTIONS, ClassifierTest, classifier_test, same_questions
from ragtide.evaluators.spec import Vectors
from tests.drift.topics.synthetic import around, directions


def asked(counts: tuple[int, ...], seed: int) -> Vectors:
    """So many questions about each of some topics."""
    some = [around(directions(8)[topic], n, 10 * seed + topic, 0.1) for topic, n in enumerate(counts)]
    return np.concatenate(some)


def told(new: Vectors, old: Vectors) -> ClassifierTest:
    found = classifier_test(new, old, seed=1)
    assert found is not None
    return found


def test_a_new_topic_of_a_fifth_is_an_area_of_half_and_a_tenth() -> None:
    """It alone is told from the old ones: 0.2 x 1 + 0.8 x 0.5 of the pairs."""
    found = told(asked((200, 200, 100), seed=1), asked((250, 250), seed=2))
    assert found.low < 0.6 < found.high
    assert found.low > 0.55
    assert np.argsort(-found.log_odds)[:100].min() >= 400, "the new topic comes first"
    again = told(asked((200, 200, 100), seed=1), asked((250, 250), seed=2))
    assert (again.auc, again.error) == (found.auc, found.error)


def test_the_interval_holds_a_half_nearly_always_where_nothing_differs() -> None:
    some = [told(asked((80, 40), seed=2 * seed), asked((80, 40), seed=2 * seed + 1)) for seed in range(20)]
    assert sum(one.low <= 0.5 <= one.high for one in some) >= 17
    assert np.mean([one.auc for one in some]) == pytest.approx(0.5, abs=0.02)


def test_a_client_that_asks_one_question_all_day_is_no_evidence() -> None:
    new, old = asked((250, 250), seed=3), asked((250, 250), seed=4)
    new[:200] = around(directions(8)[5], 1, 5)
    found = told(new, old)
    assert found.low < 0.5


def test_too_few_tell_nothing_and_neither_does_one_question() -> None:
    assert classifier_test(asked((MIN_QUESTIONS - 1,), 1), asked((500,), 2), 1) is None
    assert classifier_test(np.tile(around(directions(1)[0], 1, 1), (200, 1)), asked((200,), 2), 1) is None


def test_vectors_that_are_all_alike_are_not_apart() -> None:
    same = np.repeat(around(directions(1)[0], 1, 1), 200, axis=0)
    assert classifier_test(same, same, 1) is None
    assert same_questions(np.concatenate([same[:2], asked((1,), 3), same[:1]])).tolist() == [0, 0, 1, 0]
