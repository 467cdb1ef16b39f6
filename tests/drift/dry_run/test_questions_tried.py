"""Settings of detectors, tried on what users asked, tell what the job told as it went along, on the real engine."""

from collections.abc import Iterator

import pytest

from benchmarks.questions.world import DAY_S, HOUR_S
from drift.dry_run.compared import compared
from drift.dry_run.questions import try_questions
from drift.dry_run.would_be import WouldBe
from drift.leadership import Term
from drift.per_app import AppDrift
from drift.questions.learning import TICK_S
from drift.questions.watching import QuestionWatch
from drift.settings import DriftSettings, WindowSettings
from drift.watching import grid
from drift.windows.watermark import WatermarkRow
from sinks.clickhouse.embedded import EmbeddedClickHouse
from sinks.rows import ProgressRow
from tests.drift.dry_run.contract import counts, raised, would_be
from tests.drift.questions.test_watching import CHANGED, RULES, SETTINGS, START, store, world
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse
BACK = CHANGED + DAY_S
FIRST = CHANGED - HOUR_S
UNTIL = START + 3 * DAY_S + HOUR_S
LOOKS = (
    *(FIRST, CHANGED),
    *range(CHANGED + 4 * HOUR_S - TICK_S, CHANGED + 5 * HOUR_S, TICK_S),
    *(BACK, UNTIL - HOUR_S - TICK_S, UNTIL - HOUR_S, UNTIL),
)  # at every tick where something may be told


@pytest.fixture(scope="module")
def planted(clickhouse_server: EmbeddedClickHouse) -> Iterator[QuestionWatch]:
    """What the job told."""
    with fresh_database(clickhouse_server) as database:
        term = Term(1, grid.time(FIRST))
        watch = QuestionWatch(database, SETTINGS, RULES, WindowSettings(), term)
        done = START - 8 * DAY_S
        for at in LOOKS:
            store(database, "shop", world(1, BACK), done, at)
            done, now = at, grid.time(at)
            database.insert("watermarks", [WatermarkRow(lane, "t", now) for lane in ("fast", "model")])
            database.insert("progress", [ProgressRow(lane, "t", 0, "w", now, 1, 0) for lane in ("fast", "model")])
            watch.run(now)
        yield watch


def tried(planted: QuestionWatch, settings: DriftSettings, hours: int) -> list[WouldBe]:
    done = list[tuple[int, int]]()
    args = (planted.database, settings, RULES, WindowSettings(), FIRST, FIRST + hours * HOUR_S)
    found = list(try_questions(*args, lambda *hour: done.append(hour)))
    assert done[-1] == (hours + 1, hours + 1), "and the look at the beginning"
    return found


def test_the_same_settings_would_have_told_what_the_job_told_and_nothing_is_written(planted: QuestionWatch) -> None:
    before = counts(planted.database)
    found = tried(planted, SETTINGS, (UNTIL - FIRST) // HOUR_S)
    assert would_be(found) == raised(planted.database)
    assert counts(planted.database) == before
    (one,) = found
    assert (one.rule, one.metric) == ("input_drift", "inputs.question_meaning")
    assert one.openings == [grid.time(CHANGED + 4 * HOUR_S + TICK_S)]
    assert one.resolved_at == grid.time(UNTIL - HOUR_S), "once a whole day was as usual"
    against = compared(planted.database, found, grid.time(FIRST), grid.time(UNTIL), detectors=True)
    assert (against.new, against.gone) == ((), ())


def test_applications_whose_questions_are_not_watched_have_no_problem(planted: QuestionWatch) -> None:
    for own in (AppDrift(enabled=False), AppDrift(margin=30.0)):
        assert tried(planted, SETTINGS.model_copy(update={"apps": {"shop": own}}), hours=6) == []
