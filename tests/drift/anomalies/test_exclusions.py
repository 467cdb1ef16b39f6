"""A new job is a change at first, and how the series is from then on."""

from dataclasses import replace

import numpy as np
import pytest

from ragtide.drift.anomalies.batch import AlarmInterval
from ragtide.drift.anomalies.exclusions import without_recurring
from ragtide.drift.anomalies.learner import BaselineLearner
from ragtide.drift.anomalies.metrics import monitored_metrics
from ragtide.drift.anomalies.references import load_overrides
from ragtide.drift.settings import DriftSettings
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.drift.anomalies.window_fixture import BASE, DAY, EVALUATORS, START, WindowFixture, window
from tests.infra.fresh_database import fresh_database

HOUR = 3600
MIDNIGHT = 200 * DAY
JOB = range(9 * HOUR, 9 * HOUR + 1800)


def nightly(days: int, lasts: int = 2 * HOUR, series: int = 1) -> list[AlarmInterval]:
    """From two o'clock on, a little later each day."""
    begins = [MIDNIGHT + day * DAY + 2 * HOUR + day * 600 for day in range(days)]
    return [AlarmInterval(series, begin, begin + lasts) for begin in begins]


def test_four_days_at_one_time_of_day_are_a_habit() -> None:
    assert without_recurring(nightly(4)) == []
    assert without_recurring(nightly(3)) == nightly(3)
    others = nightly(3, series=2)
    assert without_recurring(nightly(4) + others) == others


def test_long_ones_and_those_that_go_on_are_none() -> None:
    assert without_recurring(nightly(5, lasts=7 * HOUR)) == nightly(5, lasts=7 * HOUR)
    still = [one._replace(until=0) for one in nightly(5)]
    assert without_recurring(still) == still


def test_times_of_day_are_compared_over_midnight() -> None:
    begins = (23.5, 24.2, 23.8, 24.4)
    episodes = [
        AlarmInterval(1, MIDNIGHT + day * DAY + int(begin * HOUR), MIDNIGHT + day * DAY + int(begin * HOUR) + HOUR)
        for day, begin in enumerate(begins)
    ]
    assert without_recurring(episodes) == []
    away = AlarmInterval(1, MIDNIGHT + 12 * HOUR, MIDNIGHT + 13 * HOUR)
    assert without_recurring([*episodes, away]) == [away]


def test_a_job_that_alarmed_on_four_days_is_learned(clickhouse_server: EmbeddedClickHouse) -> None:
    """A fall of 0.2 at nine for half an hour; where it is three days old it is still trouble."""
    end, jobs = START + 4 * DAY, {"three": 3, "four": 4}
    rng = np.random.default_rng(3)
    with fresh_database(clickhouse_server) as database:
        planted = WindowFixture(database)
        for app, days in jobs.items():
            planted.store(
                window("quality.good", at, np.clip(rng.normal(0.6 if job else 0.8, 0.1, 30), 0, 1), version=0, app=app)
                for at in range(end - 6 * DAY, end, BASE)
                if 6 * HOUR <= at % DAY < 14 * HOUR
                for job in [at % DAY in JOB and at >= end - days * DAY]
            )
        (seen,) = planted.scan(end).snapshots
        ids = dict(zip((one.app for one in seen.batch.series), seen.batch.rows.ids.tolist(), strict=True))
        begins = [(ids[app], end - day * DAY + JOB.start) for app, days in jobs.items() for day in range(days, 0, -1)]
        batch = replace(seen.batch, alarm_intervals=[AlarmInterval(id_, begin, begin + HOUR) for id_, begin in begins])
        watched = monitored_metrics(EVALUATORS.values())
        fitter = BaselineLearner(
            database, watched, load_overrides(database), {}, planted.windows, DriftSettings(history_days=14)
        )
        fitted = fitter.learn(batch, end, None)
        week = [fitted.baseline.expected(end + day * DAY + JOB.start + 2 * BASE).level[:, 0] for day in range(7)]
        level = dict(zip(fitted.ids.tolist(), np.min(week, axis=0), strict=True))
        assert level[ids["three"]] == pytest.approx(0.8, abs=0.03)
        assert level[ids["four"]] < 0.74
