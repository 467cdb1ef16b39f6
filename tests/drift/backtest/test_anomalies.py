"""Settings of detectors, tried on past windows, tell what the job told as it went along, on the real engine."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from ragtide.drift.backtest.anomalies import simulate_anomalies
from ragtide.drift.backtest.run import diff_with_raised
from ragtide.drift.backtest.simulate import SimulatedProblem
from ragtide.drift.detection_settings import AppDrift
from ragtide.drift.jobs import JobContext
from ragtide.drift.leadership import Term
from ragtide.drift.settings import DriftSettings, JobSettings, RuleSettings
from ragtide.drift.stats import calendar
from ragtide.drift.windows.segments import SegmentValues
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.drift.anomalies.test_daily_drift import HISTORY, LAST, METRIC, SHARES
from tests.drift.anomalies.test_daily_drift import rows as days
from tests.drift.anomalies.window_fixture import BASE, DAY, EVALUATORS, WindowFixture, WindowRow, window
from tests.drift.backtest.contract import counts, raised_summaries, simulated_summaries
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse
MIDNIGHT = LAST + DAY
FIRST = MIDNIGHT - 2 * 3600
ONSET = FIRST + 3600
BACK = MIDNIGHT
UNTIL = MIDNIGHT + 3 * 3600
TICKS = [*range(ONSET, ONSET + 1800, BASE), BACK, MIDNIGHT + 3600, *range(BACK + 4800, BACK + 7200, BASE), UNTIL]
LOOKS = [FIRST, FIRST, *TICKS]  # at every tick where something may be told
RULES = RuleSettings(update_every_s=0)
SETTINGS = DriftSettings(history_days=HISTORY)


def windows(first: int, end: int) -> Iterator[WindowRow]:
    """Scores of apps that stay, fall for an hour, or get another model; languages; a day is told of `drifts`."""
    for at in range(first, end, BASE):
        rng = np.random.default_rng(at - LAST + 2 * DAY)
        bad = ONSET <= at < BACK
        for app, mean in {"stays": 0.8, "drifts": 0.8, "falls": 0.65 if bad else 0.8}.items():
            yield window(METRIC, at, np.clip(rng.normal(mean, 0.1, 40), 0, 1), version=0, app=app)
        came, mean = ("m2", 0.65) if at >= ONSET else ("m1", 0.8)
        yield window(METRIC, at, np.clip(rng.normal(mean, 0.1, 40), 0, 1), version=0, app="switches")._replace(
            model=came
        )
        german = 24 if bad else 6
        yield window("inputs.question_language", at, {"en": 60 - german, "de": german}, version=0, app="falls")


@pytest.fixture(scope="module")
def planted(clickhouse_server: EmbeddedClickHouse) -> Iterator[WindowFixture]:
    """What the job told, that began to look at `FIRST`."""
    with fresh_database(clickhouse_server) as database:
        planted = WindowFixture(database, settings=SETTINGS)
        starts = [LAST - (HISTORY - index) * DAY for index in range(HISTORY + 1)]
        shares = dict(zip(starts, SHARES["drifts"], strict=True))
        planted.store(row for row in days("drifts", shares) if row.size_s == DAY)
        planted.store(windows(FIRST - DAY - 12 * 3600, FIRST))
        term = Term(1, calendar.utc(FIRST))
        jobs = JobContext(database, EVALUATORS, planted.windows, RULES, JobSettings(), term, drift=SETTINGS)
        for before, at in pairwise(LOOKS):
            planted.store(windows(before, at))
            planted.close(at)
            jobs.scan_for_changes(calendar.utc(at))
        yield planted


def simulate(planted: WindowFixture, settings: DriftSettings = SETTINGS, first: int = FIRST) -> list[SimulatedProblem]:
    none, hours = SegmentValues({}), list[tuple[int, int]]()
    args = (planted.database, EVALUATORS, settings, RULES, planted.windows, none, first, UNTIL)
    found = list(simulate_anomalies(*args, lambda *done: hours.append(done)))
    assert hours[-1][0] == hours[-1][1] > 0
    return found


def test_the_same_settings_would_have_told_what_the_job_told_and_nothing_is_written(planted: WindowFixture) -> None:
    before = counts(planted.database)
    found = simulate(planted)
    assert simulated_summaries(found) == raised_summaries(planted.database)
    assert counts(planted.database) == before
    assert {(one.app, one.metric, one.rule, one.state) for one in found} == {
        ("falls", METRIC, "change_point", "resolved"),
        ("falls", "inputs.question_language", "input_drift", "resolved"),
        ("switches", METRIC, "change_point", "open"),
        ("drifts", METRIC, "drift", "open"),
    }
    against = diff_with_raised(planted.database, found, calendar.utc(FIRST), calendar.utc(UNTIL), detectors=True)
    assert (against.new, against.gone) == ((), ())
    (day,) = (one for one in found if one.rule == "drift")
    assert day.openings == [calendar.utc(MIDNIGHT + 3600)], "once no late window changes it any more"


def test_other_settings_and_other_times_tell_otherwise(planted: WindowFixture) -> None:
    off = AppDrift(enabled=False)
    own = {"falls": AppDrift(margin=20.0), "drifts": off, "switches": off}
    wide = SETTINGS.model_copy(update={"apps": own})
    assert simulate(planted, wide) == []
    for detectors, gone in ((True, ["drift", "change_point", "change_point", "input_drift"]), (False, [])):
        against = diff_with_raised(planted.database, [], calendar.utc(FIRST), calendar.utc(UNTIL), detectors=detectors)
        assert sorted(one.kinds[0] for one in against.gone) == sorted(gone)
    fleet = SETTINGS.model_copy(update={"fleet_run_days": 1.0, "ignore": ("inputs.question_language",)})
    assert {(one.app, one.rule) for one in simulate(planted, fleet)} == {
        ("falls", "change_point"),
        ("switches", "change_point"),
        ("drifts", "drift"),
    }
    assert [one.app for one in simulate(planted, first=UNTIL - 600)] == ["switches"], "the others were over by then"
