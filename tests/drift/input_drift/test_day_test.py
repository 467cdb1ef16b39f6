"""A day against days like it: the rhythm of a day is no difference, and days may differ as much as they always do."""

import numpy as np
import pytest

from ragtide.drift.array_types import Integers
from ragtide.drift.input_drift.classifier_test import ClassifierTest
from ragtide.drift.input_drift.day_test import MIN_DAYS, compare, is_drifted, same_day_kind, usual_aucs
from ragtide.drift.input_drift.source import QuestionSample
from tests.drift.topics.synthetic import around, directions

DAY = 86_400
MONDAY = 20_003 * DAY


def rhythmic(at: Integers, seed: int) -> QuestionSample:
    """Before noon they ask about one topic, afterwards about another."""
    topic = (at % DAY >= DAY // 2).astype(int)
    vectors = np.stack([around(directions(8)[one], 1, seed + number)[0] for number, one in enumerate(topic.tolist())])
    return QuestionSample(at, tuple(f"t{seed}-{number}" for number in range(len(at))), ("",) * len(at), vectors)


def times(mornings: int, evenings: int) -> Integers:
    return np.concatenate([np.arange(mornings) * 60, DAY // 2 + np.arange(evenings) * 60])


def test_another_mix_of_hours_is_no_difference() -> None:
    new, old = rhythmic(times(300, 150), 0), rhythmic(times(150, 300), 10_000)
    even = compare(new, old, by_hour=True)
    assert np.bincount(even.new.at // 3600).tolist() == np.bincount(even.old.at // 3600).tolist()
    assert even.test is not None
    assert even.test.low < 0.5 < even.test.high
    whole = compare(new, old, by_hour=False)
    assert whole.test is not None
    assert whole.test.low > 0.6


def test_the_worst_are_named_once_each() -> None:
    new, old = rhythmic(times(200, 40), 0), rhythmic(times(240, 0), 10_000)
    new.vectors[-30:] = new.vectors[-1]
    found = compare(new, old, by_hour=False).most_unusual(5)
    assert len(set(found)) == 5
    assert all(int(id_.removeprefix("t0-")) >= 200 for id_ in found)


def test_weekends_are_days_of_their_own_kind() -> None:
    week = MONDAY + DAY * np.arange(7)
    assert same_day_kind(week, MONDAY + 12 * DAY).tolist() == [False] * 5 + [True] * 2
    some = [rhythmic(day + times(150, 0), int(day) % 1_000) for day in week[3:6]]
    usual = usual_aucs(some, week[3:6], by_hour=True)
    assert np.isfinite(usual).tolist() == [True, True, False], "a Saturday alone has none to be compared with"


@pytest.mark.parametrize(
    ("area", "error", "usual", "unlike"),
    [
        (0.58, 0.013, [0.50, 0.49, 0.51, 0.50, 0.50], True),  # t = 0.08 / (0.00707 x 1.0954) = 10.3 of 4 degrees
        (0.58, 0.013, [0.50, 0.46, 0.54, 0.50, 0.50], False),  # t = 2.6
        (
            0.58,
            0.020,
            [0.50, 0.49, 0.51, 0.50, 0.50],
            False,
        ),  # 0.06 beyond the margin is 3.0 errors, 3.09 are asked for
        (0.53, 0.001, [0.50, 0.49, 0.51, 0.50, 0.50], False),  # t = 3.9, of which one in 111 days has more
        (0.58, 0.013, [0.50, 0.49, 0.51, np.nan], None),
    ],
)
def test_a_day_is_unlike_for_sure_or_not(area: float, error: float, usual: list[float], unlike: bool | None) -> None:
    assert is_drifted(ClassifierTest(area, error, np.zeros(0)), np.array(usual), 0.02) is unlike


def test_a_wider_margin_is_nobodys_business_either() -> None:
    told, usual = ClassifierTest(0.58, 0.013, np.zeros(0)), np.array([0.50, 0.49, 0.51, 0.50, 0.50])
    assert is_drifted(told, usual, 0.039), "0.041 beyond it are 3.15 errors, 3.09 are asked for"
    assert not is_drifted(told, usual, 0.041), "3.0 errors"


def test_what_was_unlike_stays_so_while_one_in_twenty_is_sure() -> None:
    told, usual = ClassifierTest(0.58, 0.02, np.zeros(0)), np.array([0.50, 0.46, 0.54, 0.50, 0.50])
    assert not is_drifted(told, usual, 0.02)
    assert is_drifted(told, usual, 0.02, already=True), (
        "3.0 errors beyond the margin, and t = 2.6, of which 3 in 100 days have more"
    )


def test_nothing_asked_is_nothing_told() -> None:
    assert is_drifted(None, np.full(MIN_DAYS, 0.5), 0.02) is None
