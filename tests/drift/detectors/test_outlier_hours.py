"""What is left out of a history, what recurs each week, and what is neither."""

import numpy as np
import pytest

from ragtide.drift.array_types import Flags, Floats
from ragtide.drift.detectors import outlier_hours, run_state, scores, season
from ragtide.drift.detectors.arrays import Scores, cut
from ragtide.drift.detectors.outlier_hours import OddHours
from ragtide.drift.detectors.run_state import Status
from ragtide.drift.detectors.season import Cells
from ragtide.drift.stats.calendar import HOURS
from tests.drift.detectors.worlds import DAY, daily, starts

SUNDAY = 6


def cells(*means: Floats) -> Cells:
    """Of one series with a channel for each of the means, and 100 records a window."""
    records = np.full((1, len(means[0])), 100.0)
    return Cells.of(starts(len(means[0])), records, np.stack([records * mean for mean in means], axis=1))


def odd(*means: Floats) -> OddHours:
    """Of which a record moves a sum by 1 at most."""
    return outlier_hours.find_odd_hours(cells(*means), True, np.ones((1, len(means))))


def usual(seed: int, weeks: int = 2) -> Floats:
    return np.random.default_rng(seed).normal(0.7, 0.01, 7 * weeks * DAY)


def hours(week: int, day: int, first: int, last: int) -> slice:
    at = (7 * week + day) * DAY
    return slice(at + 12 * first, at + 12 * last)


def test_incidents_are_left_out() -> None:
    mean = usual(2)
    mean[hours(0, 5, 2, 5)] -= 0.3
    found = odd(mean)
    assert np.argwhere(found.outliers[0]).tolist() == [[5, 2], [5, 3], [5, 4]]
    assert not found.weekly.any()


def test_incidents_all_over_are_how_the_series_is() -> None:
    rng = np.random.default_rng(3)
    mean = rng.normal(0.7, 0.001, 14 * DAY)
    mean -= np.repeat(rng.random(14 * 24) < 0.25, 12) * 0.3
    assert not odd(mean).outliers.any()


def test_what_comes_on_three_weekdays_of_ten_is_how_that_hour_is() -> None:
    mean = usual(12)
    for day in (0, 3):
        mean[hours(0, day, 2, 3)] -= 0.3
    assert np.argwhere(odd(mean).outliers[0]).tolist() == [[0, 2], [3, 2]]
    mean[hours(1, 1, 2, 3)] -= 0.3
    assert not odd(mean).outliers.any()


def test_what_one_record_explains_is_no_incident() -> None:
    """Always 1, but for one record of 100 a window that was 0."""
    mean = np.ones(14 * DAY)
    mean[1000] -= 0.01
    assert not odd(mean).outliers.any()
    mean[1000] -= 0.09
    assert odd(mean).outliers.sum() == 1


@pytest.mark.parametrize("day", [2, 5, SUNDAY])
@pytest.mark.parametrize("weeks", [2, 3])
def test_what_recurs_every_week_is_the_week_s_own(day: int, weeks: int) -> None:
    """By chance not all weeks alike: the last goes half as far again."""
    mean = usual(4, weeks)
    for week in range(weeks):
        mean[hours(week, day, 2, 4)] -= 0.06 if week == weeks - 1 else 0.04
    found = odd(mean)
    assert np.argwhere(found.weekly[0]).tolist() == [[day, 2], [day, 3]]
    assert not found.outliers.any()


def test_what_one_week_lacks_is_an_incident_in_the_others() -> None:
    mean = usual(5, weeks=3)
    for week in (0, 2):
        mean[hours(week, SUNDAY, 2, 4)] -= 0.1
    found = odd(mean)
    assert np.argwhere(found.outliers[0]).tolist() == [[6, 2], [6, 3], [20, 2], [20, 3]]
    assert not found.weekly.any()


def test_up_in_one_week_and_down_in_another_are_incidents() -> None:
    mean = usual(6)
    mean[hours(0, SUNDAY, 2, 4)] -= 0.1
    mean[hours(1, SUNDAY, 2, 4)] += 0.1
    found = odd(mean)
    assert found.outliers.sum() == 4
    assert not found.weekly.any()


def test_where_hours_are_off_at_any_time_two_weeks_meet_by_chance() -> None:
    """Every day has two bad hours somewhere; on both Tuesdays the same ones."""
    mean = usual(6)
    for day in range(14):
        first = 10 if day % 7 == 1 else (5 * day) % 9
        mean[hours(day // 7, day % 7, first, first + 2)] -= 0.1
    assert not odd(mean).weekly.any()
    mean = usual(6)
    for week in (0, 1):
        mean[hours(week, 1, 10, 12)] -= 0.1
    assert np.argwhere(odd(mean).weekly[0]).tolist() == [[1, 10], [1, 11]]


def test_an_incident_in_the_week_s_own_hour_is_left_out() -> None:
    """In one of three weeks, the job of Sunday nights fell by 0.3 instead of 0.04."""
    mean = usual(7, weeks=3)
    for week, fall in enumerate((0.04, 0.3, 0.04)):
        mean[hours(week, SUNDAY, 2, 4)] -= fall
    found = odd(mean)
    assert np.argwhere(found.outliers[0]).tolist() == [[13, 2], [13, 3]]
    level = season.levels(cells(mean).excluding(found.outliers), True, found.weekly)[0, 0]
    assert level[[day * HOURS + hour for day in (5, SUNDAY) for hour in (2, 3)]] == pytest.approx(
        [0.7, 0.7, 0.66, 0.66], abs=0.005
    )


def test_one_week_is_not_every_week() -> None:
    mean = usual(8, weeks=1)
    mean[hours(0, SUNDAY, 2, 4)] -= 0.1
    found = odd(mean)
    assert found.outliers.sum() == 2
    assert not found.weekly.any()


def test_channels_share_the_week_s_own_hours() -> None:
    moved, still = usual(9), usual(10)
    for week in (0, 1):
        moved[hours(week, SUNDAY, 2, 4)] -= 0.05
    still[hours(1, SUNDAY, 3, 4)] += 0.2  # is an incident, whatever recurs in the other channel
    found = odd(moved, still)
    assert np.argwhere(found.weekly[0]).tolist() == [[SUNDAY, 2], [SUNDAY, 3]]
    assert np.argwhere(found.outliers[0]).tolist() == [[13, 3]]


SERIES = 40
JOB = slice(20 * DAY + 24, 20 * DAY + 48)  # of the third week


def third_weekend(fall: float, seed: int) -> tuple[Flags, Status]:
    """All alarms, and the reading when the job is done that on Sundays from 2 to 4 asks ten times as much and is
    answered worse: by 0.05 in the history, by `fall` now.
    """
    rng, at = np.random.default_rng(seed), np.arange(21 * DAY)
    job = (at // DAY % 7 == SUNDAY) & (at % DAY >= 24) & (at % DAY < 48)
    n = np.where(job, 400, 40) * np.ones((SERIES, 1))
    level = 0.7 + 0.05 * daily(len(at)) - job * np.where(at < 14 * DAY, 0.05, fall)
    mean = rng.normal(level, 0.15 / np.sqrt(n))
    batch = Scores(starts(len(at)), n, n * mean, 0.15**2 * rng.chisquare(n - 1) + n * mean**2)
    baseline = scores.fit(cut(batch, slice(0, 14 * DAY)))
    state = run_state.start_state(baseline)
    until = scores.run(baseline, state, cut(batch, slice(19 * DAY, JOB.stop))).alarm
    reading = run_state.detector_status(baseline, state)
    since = scores.run(baseline, state, cut(batch, slice(JOB.stop, None))).alarm
    return np.concatenate([until, since], axis=1), reading


@pytest.mark.parametrize("seed", range(3))
def test_the_weekly_job_is_no_news(seed: int) -> None:
    alarm, _ = third_weekend(0.05, seed)
    assert not alarm.any()


def test_a_change_of_the_weekly_job_is() -> None:
    alarm, found = third_weekend(0.15, seed=3)
    assert not alarm[:, : JOB.start - 19 * DAY].any()
    assert found.alarm.all()
    assert set(found.direction.tolist()) == {-1}
    assert (found.onset >= starts(21 * DAY)[JOB.start - 6]).all()  # of an alternative that had begun by chance
    assert found.expected == pytest.approx(0.65 + 0.05 * np.sin(2 * np.pi * 3 / 24), abs=0.02)
