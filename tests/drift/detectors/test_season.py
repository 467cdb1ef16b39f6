"""Levels by hour and kind of day: by hand, and on seasons that are known."""

import numpy as np
import pytest

from ragtide.drift.array_types import Floats, Integers
from ragtide.drift.detectors import season
from ragtide.drift.stats.calendar import HOURS, WEEKDAYS
from tests.drift.detectors.worlds import DAY, MONDAY, starts


def cells(mean: Floats, n: float = 100.0) -> season.Cells:
    """Of one series with one channel."""
    records = np.full((1, len(mean)), n)
    return season.Cells.of(starts(len(mean)), records, (records * mean)[:, None])


WEEKLY = np.zeros((1, WEEKDAYS, HOURS), bool)
STEPS = WEEKLY.reshape(1, 1, season.SLOTS)


def hours(windows: int) -> Integers:
    return np.arange(windows) // 12 % 24


def test_cells_are_hours_of_days() -> None:
    """A history that begins at 22:30 has six windows in its first hour, and none before."""
    start = starts(DAY)[: 6 + 12 + 1] + int(22.5 * 3600)
    n = np.full((1, len(start)), 2.0)
    found = season.Cells.of(start, n, 3 * n[:, None])
    assert found.days.tolist() == [MONDAY // 86_400, MONDAY // 86_400 + 1]
    assert found.records[0, 0, 21:].tolist() == [0, 12, 24]
    assert found.records[0, 1, :2].tolist() == [2, 0]
    assert found.sums[0, 0, 0, 22:].tolist() == [36, 72]


def test_between_hour_centres_the_level_is_a_line() -> None:
    """Level 0 at 10:30, 12 at 11:30: the middle of a window that begins at 10:30 is a 24th of the way."""
    level = np.zeros((1, 1, season.SLOTS))
    level[0, 0, 11] = 12.0
    at = MONDAY + np.array([10 * 3600 + 1800, 10 * 3600 + 3300, 11 * 3600 + 1500])
    assert [float(season.expected(level, STEPS, at[i : i + 1], 300)[0, 0, 0]) for i in range(3)] == pytest.approx(
        [0.5, 5.5, 11.5]
    )


def test_saturday_begins_between_two_levels() -> None:
    level = np.zeros((1, 1, season.SLOTS))
    level[0, 0, 5 * HOURS :] = 1.0
    saturday = MONDAY + 5 * 86_400
    assert season.expected(level, STEPS, np.array([saturday - 3600]), 300)[0, 0, 0] == 0
    assert season.expected(level, STEPS, np.array([saturday - 150]), 300)[0, 0, 0] == pytest.approx(0.5)
    assert season.expected(level, STEPS, np.array([saturday + 3600]), 300)[0, 0, 0] == 1


def test_a_season_that_all_days_share_is_learned_whole() -> None:
    shape = np.where(hours(14 * DAY) < 12, 0.6, 0.8)
    found = season.levels(cells(shape), seasonal=True, weekly=WEEKLY)[0, 0]
    assert found == pytest.approx(np.tile(np.where(np.arange(24) < 12, 0.6, 0.8), 7))


def test_weekends_have_a_level_of_their_own() -> None:
    weekend = np.arange(14 * DAY) // DAY % 7 >= 5
    shape = np.where(weekend, np.where(hours(14 * DAY) < 12, 0.2, 0.3), 0.8)
    found = season.levels(cells(shape), seasonal=True, weekly=WEEKLY)[0, 0]
    assert found[: 5 * 24] == pytest.approx(np.full(5 * 24, 0.8))
    assert found[5 * 24 :] == pytest.approx(np.tile(np.repeat([0.2, 0.3], 12), 2))


def test_hours_that_differ_by_chance_are_shrunk_to_one_level() -> None:
    rng = np.random.default_rng(1)
    chance = np.repeat(rng.normal(0.7, 0.01, 14 * 24), 12)
    found = season.levels(cells(chance), seasonal=True, weekly=WEEKLY)[0, 0]
    plain = chance.reshape(14, DAY).mean(axis=0)
    assert np.std(found) < 0.35 * np.std(plain)
    assert found.mean() == pytest.approx(chance.mean(), abs=1e-3)


def test_with_less_than_a_season_the_level_is_one_number() -> None:
    shape = np.where(hours(2 * DAY) < 12, 0.6, 0.8)
    assert season.levels(cells(shape), seasonal=False, weekly=WEEKLY)[0, 0] == pytest.approx(np.full(168, 0.7))


def test_a_burst_is_one_day_s_opinion() -> None:
    """An hour with a hundred times the records, at another level, moves the level of its hour by a 14th at most."""
    mean, n = np.full(14 * DAY, 0.7), np.full((1, 14 * DAY), 100.0)
    mean[:12], n[0, :12] = 0.3, 10_000.0
    found = season.levels(season.Cells.of(starts(14 * DAY), n, (n * mean)[:, None]), seasonal=True, weekly=WEEKLY)
    assert np.abs(found - 0.7).max() < 0.4 / 14 * 1.01


def test_what_a_window_was_expected_to_be_does_not_know_its_day() -> None:
    day = np.repeat(np.arange(4.0), DAY)
    found = season.out_of_sample(cells(day), False, WEEKLY, starts(4 * DAY), 300)[0, 0]
    assert found.reshape(4, DAY)[:, 7] == pytest.approx([2.0, 5 / 3, 4 / 3, 1.0])  # the mean of the other three


def test_an_hour_of_the_week_of_its_own_is_not_told_to_others() -> None:
    """0.7, but for Sundays from 2 to 3: 0.5 and 0.6, of which the second has three times the records."""
    mean, n = np.full(14 * DAY, 0.7), np.full((1, 14 * DAY), 100.0)
    for sunday, level, records in ((6, 0.5, 100.0), (13, 0.6, 300.0)):
        at = slice(sunday * DAY + 24, sunday * DAY + 36)
        mean[at], n[0, at] = level, records
    weekly = WEEKLY.copy()
    weekly[0, 6, 2] = True
    some, sunday_at_two = season.Cells.of(starts(14 * DAY), n, (n * mean)[:, None]), 6 * 24 + 2
    found = season.levels(some, True, weekly)[0, 0]
    assert found[sunday_at_two] == pytest.approx((0.5 + 3 * 0.6) / 4)
    assert np.delete(found, sunday_at_two) == pytest.approx(np.full(167, 0.7))
    others = season.out_of_sample(some, True, weekly, starts(14 * DAY), 300)[0, 0]
    # Each week expects what the other one had, from 2 sharp on.
    assert others[6 * DAY + 23 : 6 * DAY + 37] == pytest.approx(np.array([0.7, *[0.6] * 12, 0.7]))
    assert others[13 * DAY + 23 : 13 * DAY + 37] == pytest.approx(np.array([0.7, *[0.5] * 12, 0.7]))
