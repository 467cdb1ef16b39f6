"""Settings of detectors, tried on what users asked, tell what the job told as it went along, on the real engine."""

from collections.abc import Iterator

import pytest

from benchmarks.questions.world import DAY_S, HOUR_S
from ragtide.drift.backtest.input_drift import simulate_input_drift
from ragtide.drift.backtest.run import diff_with_raised
from ragtide.drift.backtest.simulate import SimulatedProblem
from ragtide.drift.detection_settings import AppDrift
from ragtide.drift.input_drift.check import InputDriftCheck
from ragtide.drift.input_drift.reference import TICK_S
from ragtide.drift.leadership import Term
from ragtide.drift.settings import DriftSettings, WindowSettings
from ragtide.drift.stats import calendar
from ragtide.drift.windows.watermark import WatermarkRow
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.rows import ProgressRow
from tests.drift.backtest.contract import counts, raised_summaries, simulated_summaries
from tests.drift.input_drift.test_check import CHANGED, RULES, SETTINGS, START, store, world
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse
BACK = CHANGED + DAY_S
FIRST = CHANGED - HOUR_S
UNTIL = START + 3 * DAY_S + HOUR_S
LOOKS = (
    *(FIRST, CHANGED),
    *range(CHANGED + TICK_S, CHANGED + 12 * HOUR_S, TICK_S),
    *(BACK, UNTIL - HOUR_S - TICK_S, UNTIL - HOUR_S, UNTIL),
)  # at every tick where something may be told


@pytest.fixture(scope="module")
def planted(clickhouse_server: EmbeddedClickHouse) -> Iterator[InputDriftCheck]:
    """What the job told."""
    with fresh_database(clickhouse_server) as database:
        term = Term(1, calendar.utc(FIRST))
        watch = InputDriftCheck(database, SETTINGS, RULES, WindowSettings(), term)
        done = START - 8 * DAY_S
        for at in LOOKS:
            store(database, "shop", world(1, BACK), done, at)
            done, now = at, calendar.utc(at)
            database.insert("watermarks", [WatermarkRow(lane, "t", now) for lane in ("fast", "model")])
            database.insert("progress", [ProgressRow(lane, "t", 0, "w", now, 1, 0) for lane in ("fast", "model")])
            watch.run(now)
        yield watch


def simulate(planted: InputDriftCheck, settings: DriftSettings, hours: int) -> list[SimulatedProblem]:
    done = list[tuple[int, int]]()
    args = (planted.database, settings, RULES, WindowSettings(), FIRST, FIRST + hours * HOUR_S)
    found = list(simulate_input_drift(*args, lambda *hour: done.append(hour)))
    assert done[-1] == (hours + 1, hours + 1), "and the look at the beginning"
    return found


def test_the_same_settings_would_have_told_what_the_job_told_and_nothing_is_written(planted: InputDriftCheck) -> None:
    before = counts(planted.database)
    found = simulate(planted, SETTINGS, (UNTIL - FIRST) // HOUR_S)
    assert simulated_summaries(found) == raised_summaries(planted.database)
    assert counts(planted.database) == before
    (one,) = found
    assert (one.rule, one.metric) == ("input_drift", "inputs.question_meaning")
    assert one.openings == [calendar.utc(CHANGED + 2 * HOUR_S + TICK_S)]
    assert one.resolved_at == calendar.utc(UNTIL - HOUR_S), "once a whole day was as usual"
    against = diff_with_raised(planted.database, found, calendar.utc(FIRST), calendar.utc(UNTIL), detectors=True)
    assert (against.new, against.gone) == ((), ())


def test_applications_whose_questions_are_not_watched_have_no_problem(planted: InputDriftCheck) -> None:
    for own in (AppDrift(enabled=False), AppDrift(margin=30.0)):
        assert simulate(planted, SETTINGS.model_copy(update={"apps": {"shop": own}}), hours=6) == []
