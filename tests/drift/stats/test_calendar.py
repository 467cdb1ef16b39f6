"""When batches learn their baselines: once a day each, and few at a time; and which days are weekends."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest

from ragtide.drift.stats import calendar


@pytest.mark.parametrize("tick_s", [300, 240, 7, 3600])
def test_each_batch_learns_once_a_day_on_a_tick(tick_s: int) -> None:
    first, days = calendar.ceil(1_790_000_123, tick_s), 5
    for number in (0, 1, 17, 288, 300):
        at, learnt = first, []
        while at < first + days * calendar.DAY_S:
            at = calendar.next_fit(number, at, tick_s)
            assert calendar.next_fit(number, at, tick_s) == at
            assert calendar.next_fit(number, at - tick_s + 1, tick_s) == at
            learnt.append(at)
            at += tick_s
        assert len(learnt) in (days, days + 1)
        assert all(one % tick_s == 0 for one in learnt)
        assert all(abs(later - one - calendar.DAY_S) < tick_s for one, later in pairwise(learnt))


def test_no_two_of_a_days_batches_learn_in_the_same_five_minutes() -> None:
    for first in (0, 5, 1000):
        learnt = Counter(calendar.next_fit(number, 0, 300) for number in range(first, first + 288))
        assert max(learnt.values()) == 1
    busiest = Counter(calendar.next_fit(number, 0, 300) // calendar.HOUR_S for number in range(100))
    assert max(busiest.values()) <= 6  # of 100 batches four an hour is the mean


def test_weekends_are_those_of_the_calendar() -> None:
    days = np.arange(-400, 800, dtype=np.int64)
    known = [(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=int(day))).weekday() for day in days]
    assert calendar.weekday_of(days).tolist() == known
    last_second = calendar.DAY_S * (days + 1) - 1
    assert calendar.is_weekend(last_second).tolist() == [weekday in (5, 6) for weekday in known]
    assert [calendar.is_weekend(int(at)) for at in last_second] == calendar.is_weekend(last_second).tolist()
