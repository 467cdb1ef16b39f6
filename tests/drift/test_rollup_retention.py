"""What becomes of windows where those that they are made of, or the scores, were deleted."""

import pytest

from ragtide.drift.settings import WindowSettings
from ragtide.sinks.clickhouse.database import Database
from tests.drift.test_rollup_states import pending, windows
from tests.drift.world import World, score_row

pytestmark = pytest.mark.clickhouse
_DAY = 86400


def test_an_hour_outlives_its_minutes_and_is_revised_from_the_scores(database: Database) -> None:
    """`replay --run live` reaches back further than minutes are kept."""
    world = World(database, windows=WindowSettings(out_of_orderness_s=0, segments={"tenant": ("a",)}))
    for second in (0, 60, 120):
        world.scores(second, [0.5], segments={"tenant": "a"})
    world.advance(3600)
    world.advance(31 * _DAY)
    database.command("ALTER TABLE windows DELETE WHERE size_s = 60 SETTINGS mutations_sync = 1")  # as their TTL does
    world.scores(10, [0.7], segments={"tenant": "a"})
    world.watch(31 * _DAY)
    (hour,), (day,) = windows(database, 3600), windows(database, _DAY)
    assert (hour["scored"], hour["seen"], hour["bins"], hour["revision"]) == (4, 4, {50: 3, 70: 1}, 2)
    assert (day["scored"], day["bins"], day["revision"]) == (4, {50: 3, 70: 1}, 2)
    cut = (
        "SELECT size_s, scored FROM windows FINAL WHERE segment = 'tenant' AND metric = 'quality.good' ORDER BY size_s"
    )
    assert database.rows(cut) == [{"size_s": size_s, "scored": 4} for size_s in (3600, _DAY)]
    assert pending(database) == 0


def test_what_comes_after_the_scores_of_its_day_were_deleted_changes_no_window(database: Database) -> None:
    world = World(database)
    for second in (0, 60, 120):
        world.scores(second, [0.5])
    world.advance(3600)
    world.advance(91 * _DAY)
    for gone in ("windows DELETE WHERE size_s = 60", "scores DELETE WHERE true", "traces DELETE WHERE true"):
        database.command(f"ALTER TABLE {gone} SETTINGS mutations_sync = 1")
    world.scores(10, [0.7])
    report = world.watch(91 * _DAY)
    assert (report.rollup.marks, report.rollup.expired, report.rollup.waiting) == (1, 1, 0)
    assert windows(database, 60) == []
    assert [(w["scored"], w["revision"]) for size_s in (3600, _DAY) for w in windows(database, size_s)] == [(3, 1)] * 2
    assert pending(database) == 0


def test_a_replays_windows_are_kept_from_when_they_were_written(database: Database) -> None:
    world = World(database)
    world.store([score_row(world.at(second), f"r{second}", {"good": 0.5}, run_id="replayed") for second in (0, 60)])
    database.command("INSERT INTO runs (run_id, state, version) VALUES ('replayed', 'completed', 1)")
    world.advance(91 * _DAY)
    assert [w["scored"] for w in windows(database, 60)] == [1, 1]
    assert [w["scored"] for w in windows(database, 3600)] == [2]
