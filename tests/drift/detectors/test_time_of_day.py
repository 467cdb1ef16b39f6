"""Moments of the day with levels of their own: found where days make a habit of it, by hand and to the end."""

import numpy as np
import pytest

from ragtide.drift.array_types import Flags, Floats
from ragtide.drift.detectors import proportions, run_state, scores, time_of_day
from ragtide.drift.detectors.arrays import Rates, Scores, cut
from ragtide.drift.detectors.time_of_day import RecurringTicks, TimeOfDayFit
from ragtide.drift.stats.calendar import HOUR_S
from tests.drift.detectors.worlds import DAY, MONDAY, daily, starts

AT = np.arange(21 * DAY)
WEEKDAY, MOMENT = AT // DAY % 7, AT % DAY
SINGLE = time_of_day.DAY_KINDS  # the group of Mondays; those of the other days follow


def learned(fall: Floats, seed: int = 1, noise: float = 0.01, days: int = 14) -> TimeOfDayFit:
    """One channel of means about 0, 100 records a window, less `fall` [T]; hours are known to have the level 0."""
    fall = fall[: days * DAY]
    mean = np.random.default_rng(seed).normal(0, noise, len(fall)) - fall
    records = np.full((1, len(fall)), 100.0)
    nothing = np.zeros((1, 1, len(fall)))
    return time_of_day.fit_time_of_day(starts(len(fall)), records, (records * mean)[:, None], nothing, np.ones((1, 1)))


def own(found: RecurringTicks) -> dict[tuple[int, int], tuple[float, float]]:
    """Level and variance by group and moment."""
    rows = zip(found.moment[0, 0].tolist(), found.level[0, 0], found.variance[0, 0], strict=True)
    return {divmod(at, DAY): (float(level), float(variance)) for at, level, variance in rows if at >= 0}


def job(first: int, last: int, *, on: Flags = AT >= 0, fall: float = 0.1) -> Floats:
    """A fall of the mean between two moments of the day."""
    return fall * (on & (first <= MOMENT) & (last > MOMENT)).astype(np.float64)


def test_a_daily_job_has_moments_of_its_own() -> None:
    found = own(learned(job(28, 33)).recurring)
    assert set(found) == {(kind, moment) for kind in (0, 1) for moment in range(28, 33)}
    assert [level for level, _ in found.values()] == pytest.approx([-0.1] * 10, abs=0.015)


def test_level_and_variance_by_hand() -> None:
    """On ten weekdays falls of 0.1 and 0.2 by turns: 0.15, and from the others' mean each is 0.05 * 10 / 9 away."""
    turns = np.where(AT // DAY % 2, 0.2, 0.1)
    turns[WEEKDAY == 4] = 0.15
    found = own(learned(turns * (job(28, 29) > 0) * (WEEKDAY < 5), seed=2, noise=0.001).recurring)
    level, variance = found[0, 28]
    assert level == pytest.approx(-0.15, abs=0.001)
    assert variance == pytest.approx((8 / 10) * (0.05 * 10 / 9) ** 2 / 0.001**2, rel=0.1)


def test_unseen_are_the_other_days() -> None:
    habits = learned(job(28, 29, on=WEEKDAY < 5))
    mean = np.random.default_rng(1).normal(0, 0.01, 14 * DAY) - job(28, 29, on=WEEKDAY < 5)[: 14 * DAY]
    weekdays = [day * DAY + 28 for day in range(14) if day % 7 < 5]
    others = (mean[weekdays].sum() - mean[weekdays[3]]) / 9
    assert habits.out_of_sample[0, 0, weekdays[3]] == pytest.approx(others, abs=1e-9)
    weekend = [day * DAY + 28 for day in (5, 6, 12, 13)]
    assert habits.out_of_sample[0, 0, weekend[0]] == pytest.approx(mean[weekend[1:]].mean(), abs=1e-9)
    assert habits.out_of_sample[0, 0, 100] == 0
    assert habits.variance[0, 0, weekdays[3]] == pytest.approx(own(habits.recurring)[0, 28][1], rel=1e-3)
    assert (np.delete(habits.variance, weekdays + weekend, axis=2) == 1).all()


def test_one_day_s_trouble_is_no_habit() -> None:
    assert not own(learned(job(28, 40, on=AT // DAY == 8, fall=0.5)).recurring)


def test_what_never_varies_may_have_a_job() -> None:
    found = own(learned(job(28, 33), noise=0.0).recurring)
    assert {moment for _, moment in found} == set(range(28, 33))
    assert all(level == pytest.approx(-0.1) for level, _ in found.values())


def test_a_job_of_one_day_of_the_week_is_its_own() -> None:
    found = own(learned(job(28, 33, on=WEEKDAY == 2, fall=0.2)).recurring)
    assert set(found) == {(SINGLE + 2, moment) for moment in range(28, 33)}
    monday = learned(job(28, 33, on=WEEKDAY == 2)).recurring.expected(MONDAY + 28 * 300, np.zeros((1, 1)))
    assert (float(monday.level[0, 0]), float(monday.variance[0, 0])) == (0, 1)


def test_where_bursts_come_at_any_minute_two_weeks_meet_by_chance() -> None:
    """One of every day, on both Wednesdays at the same minute."""
    bursts = np.zeros(len(AT))
    for day in range(14):
        bursts[day * DAY + (100 if day % 7 == 2 else 17 * day)] = 0.2
    assert not [group for group, _ in own(learned(bursts).recurring) if group >= SINGLE]


def test_where_days_stray_so_they_may_before_and_after() -> None:
    """The job is one of three, at this moment."""
    found = own(learned(job(100, 101, on=AT // DAY % 3 == 0)).recurring)
    assert set(found) == {(kind, moment) for kind in (0, 1) for moment in range(98, 103)}
    assert len({variance for _, variance in found.values()}) == 1
    assert found[0, 100][1] > 10


def test_what_one_record_does_now_and_then_is_no_habit() -> None:
    """One of the hundred records went as far as it can, on three days of ten at this moment."""
    assert not own(learned(job(100, 101, on=AT // DAY % 7 == 1, fall=0.01), noise=0.001).recurring)
    assert not own(learned(job(100, 101, on=AT // DAY % 3 == 0, fall=0.01), noise=0.001).recurring)


def test_weekends_that_were_not_seen_are_as_weekdays() -> None:
    """And a Saturday that was seen says whether they are."""
    on = {moment for kind, moment in own(learned(job(28, 33), days=5).recurring) if kind == 1}
    assert on == set(range(28, 33))
    assert {kind for kind, _ in own(learned(job(28, 33), days=6).recurring)} == {0, 1}
    assert {kind for kind, _ in own(learned(job(28, 33, on=WEEKDAY < 5), days=6).recurring)} == {0}


def test_no_more_than_are_kept_the_clearest() -> None:
    falls = job(0, 150) + job(200, 230, fall=0.5)
    found = own(learned(falls).recurring)
    assert len(found) == time_of_day.MAX_TICKS
    assert {(kind, moment) for kind in (0, 1) for moment in range(200, 230)} <= set(found)


def test_a_moment_covers_windows_that_are_shorter() -> None:
    found = learned(job(28, 29)).recurring
    levels = [
        float(found.expected(MONDAY + 28 * 300 + second, np.zeros((1, 1))).level[0, 0]) for second in (-60, 0, 240, 300)
    ]
    assert levels == [0, own(found)[0, 28][0], own(found)[0, 28][0], 0]


SERIES = 6
JOBS = {  # falls [T] of a job that is over within the hour
    "on the hour": job(24, 30),
    "across the hour": job(33, 39, fall=0.2),
    "on workdays": job(105, 108, on=WEEKDAY < 5, fall=0.15),
    "over midnight": job(286, 288) + job(0, 3),
}


def scored(fall: Floats, seed: int) -> Scores:
    rng = np.random.default_rng(seed)
    n = rng.integers(100, 200, (SERIES, len(AT)))
    mean = rng.normal(0.8 + 0.03 * daily(len(AT)) - fall, 0.12 / np.sqrt(n))
    return Scores(starts(len(AT)), n, n * mean, 0.12**2 * rng.chisquare(n - 1) + n * mean**2)


def alarms(batch: Scores) -> Flags:
    """Of the third week, by a baseline of two."""
    baseline = scores.fit(cut(batch, slice(0, 14 * DAY)))
    return scores.run(baseline, run_state.start_state(baseline), cut(batch, slice(14 * DAY, None))).alarm


@pytest.mark.parametrize("name", JOBS)
def test_a_job_within_the_hour_is_no_news(name: str) -> None:
    assert not alarms(scored(JOBS[name], seed=3)).any()


def test_a_job_that_is_not_punctual_is_no_news() -> None:
    rng, fall = np.random.default_rng(4), np.zeros(len(AT))
    for day in range(21):
        first = day * DAY + 28 + rng.integers(0, 3)
        fall[first : first + 5] = rng.uniform(0.06, 0.14)
    assert not alarms(scored(fall, seed=5)).any()


def test_a_job_that_becomes_worse_is_news_and_so_is_all_else() -> None:
    worse = job(24, 30) + 0.15 * ((AT >= 16 * DAY) & (MOMENT >= 24) & (MOMENT < 30))
    found = alarms(scored(worse, seed=6))
    assert not found[:, : 2 * DAY + 24].any()
    assert found[:, 2 * DAY + 24 : 2 * DAY + 30].any(axis=1).all()
    elsewhere = alarms(scored(job(24, 30) + 0.1 * (AT >= 16 * DAY + 100), seed=7))
    assert elsewhere[:, 2 * DAY + 100 : 2 * DAY + 103].any(axis=1).all()


def test_failures_of_a_job_are_no_news() -> None:
    rng = np.random.default_rng(8)
    n = rng.integers(100, 200, (SERIES, len(AT)))
    batch = Rates(starts(len(AT)), n, rng.binomial(n, 0.05 + job(28, 31, fall=0.15)))
    baseline = proportions.fit_rates(cut(batch, slice(0, 14 * DAY)))
    watched = proportions.run_rates(baseline, run_state.start_state(baseline), cut(batch, slice(14 * DAY, None)))
    assert not watched.alarm.any()
    level = baseline.expected(MONDAY + 29 * HOUR_S // 12).level
    assert level[:, 0] == pytest.approx(np.full(SERIES, 0.2), abs=0.05)
