"""When windows close, are revised and freeze; who may write them; which rows they are made of."""

from typing import Any

import pytest

from ragtide.drift.jobs import server_time
from ragtide.drift.settings import WindowSettings
from ragtide.drift.windows import dirty
from ragtide.drift.windows.contents import base_contents
from ragtide.drift.windows.metrics import metrics_by_name
from ragtide.drift.windows.moved_traces import tombstone_moved_traces
from ragtide.drift.windows.scope import WHOLE_MINUTES, Scope, WindowKey
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.sample import embedding
from tests.drift.world import World, score_row, trace_row, version

pytestmark = pytest.mark.clickhouse


def windows(database: Database, size_s: int = 60, metric: str = "quality.good") -> list[dict[str, Any]]:
    return database.rows(
        "SELECT * FROM windows FINAL WHERE size_s = {size_s:UInt32} AND metric = {metric:String} AND segment = '' "
        "ORDER BY run_id, start, fingerprint, model",
        {"size_s": size_s, "metric": metric},
    )


def pending(database: Database) -> int:
    return int(database.rows("SELECT count() AS n FROM dirty_windows FINAL WHERE done = 0")[0]["n"])


def test_a_window_is_open_until_the_watermark_passes_its_end(database: Database) -> None:
    world = World(database)
    world.scores(0, [0.5, 0.7])
    world.advance(59)
    assert windows(database) == []
    assert pending(database) == 1
    world.advance(60)
    (window,) = windows(database)
    assert (window["scored"], window["revision"], window["state"], window["late"]) == (2, 1, "closed", 0)
    assert window["sum"] == pytest.approx(1.2)
    assert pending(database) == 0


def test_parts_of_other_minutes_are_not_read(database: Database) -> None:
    """Or a roll-up takes the longer the more was stored before it: FINAL alone reads every part of every day."""
    world = World(database)
    world.scores(0, [0.5])
    world.scores(120, [0.7])
    minute = int(world.at(120).timestamp())
    scope = Scope(60, ("live",), minute, minute + 60, (), (WindowKey("live", "shop", "prod", minute),))
    contents = base_contents(scope, metrics_by_name(world.evaluators), {}, revised=False)
    told = database.rows(f"EXPLAIN indexes = 1 {contents}", settings=WHOLE_MINUTES)
    read = [str(*row.values()).strip(" │") for row in told]
    assert read.count("Parts: 1/2") == read.count("Min-Max") > 0


def test_late_rows_revise_and_are_counted(database: Database) -> None:
    world = World(database)
    world.scores(0, [0.5])
    world.progress(60)
    world.jobs.run_cycle(server_time(database))  # late is what was stored after that
    world.scores(10, [0.7, 0.9])
    world.watch(70)
    (window,) = windows(database)
    assert (window["scored"], window["late"], window["revision"], window["state"]) == (3, 2, 2, "revised")
    world.watch(80)
    assert windows(database)[0]["revision"] == 2


def test_the_same_rows_once_more_change_nothing(database: Database) -> None:
    """A redelivery after a crash: same keys, same versions."""
    world = World(database)
    rows = world.scores(0, [0.5, 0.7])
    world.advance(60)
    world.store(rows)
    world.advance(61)
    assert pending(database) == 0
    assert windows(database)[0]["revision"] == 1


def test_rows_that_are_written_once_more_are_late_ones_where_another_one_is(database: Database) -> None:
    """They do not tell when they first came, and alone they revise nothing."""
    world = World(database)
    rows = world.scores(0, [0.5, 0.7])
    world.progress(60)
    world.jobs.run_cycle(server_time(database))
    world.store(rows)
    world.watch(70)
    assert [(w["late"], w["revision"]) for w in windows(database)] == [(0, 1)]
    world.scores(10, [0.9])
    world.watch(80)
    assert [(w["scored"], w["late"], w["revision"]) for w in windows(database)] == [(3, 3, 2)]


def test_a_key_that_a_window_had_and_has_no_more_becomes_zero(database: Database) -> None:
    world = World(database, windows=WindowSettings(out_of_orderness_s=0, segments={"tenant": ("a", "b")}))
    at = world.at(5)
    world.store([score_row(at, "one", {"good": 0.5}, model="m1", segments={"tenant": "a"})])
    world.advance(60)
    world.store([score_row(at, "one", {"good": 0.5}, model="m2", segments={"tenant": "b"})])
    world.advance(61)
    gone, there = windows(database)
    assert (gone["model"], gone["scored"], gone["seen"], gone["bins"], gone["min"]) == ("m1", 0, 0, {}, None)
    assert (there["model"], there["scored"], there["seen"]) == ("m2", 1, 1)
    cut = database.rows(
        "SELECT segment_value, model, scored, revision FROM windows FINAL "
        "WHERE size_s = 60 AND segment = 'tenant' AND metric = 'quality.good' ORDER BY segment_value"
    )
    assert [tuple(row.values()) for row in cut] == [("a", "m1", 0, 2), ("b", "m2", 1, 1)]


def test_a_row_that_moved_within_its_minute_leaves_its_window(database: Database) -> None:
    """Two versions in two parts: an index on time must not hide the newer one from FINAL."""
    world = World(database, windows=WindowSettings(base_s=10, sizes_s=(60,), out_of_orderness_s=0))
    world.store([score_row(world.at(5), "one", {"good": 0.5})])
    world.advance(60)
    world.store([score_row(world.at(55), "one", {"good": 0.5})])
    world.advance(61)
    found = {int((w["start"] - world.start).total_seconds()): w["scored"] for w in windows(database, 10)}
    assert found == {0: 0, 50: 1}
    assert [w["scored"] for w in windows(database, 60)] == [1]


def test_hours_are_made_of_minutes_and_close_when_they_end(database: Database) -> None:
    world = World(database)
    world.scores(0, [0.25, 0.75])
    world.scores(1800, [0.75])
    world.advance(3599)
    assert windows(database, 3600) == []
    world.advance(3600)
    (hour,) = windows(database, 3600)
    assert (hour["scored"], hour["bins"], hour["min"], hour["max"]) == (3, {25: 1, 75: 2}, 0.25, 0.75)
    world.scores(1801, [0.5])
    world.advance(3601)
    (hour,) = windows(database, 3600)
    assert (hour["scored"], hour["revision"], hour["state"]) == (4, 2, "revised")


def test_after_the_allowed_lateness_numbers_are_revised_and_frozen(database: Database) -> None:
    world = World(database, windows=WindowSettings(out_of_orderness_s=0, allowed_lateness_s=300))
    world.scores(0, [0.5])
    world.advance(60)
    world.advance(361)
    world.scores(10, [0.7])  # late by more than five minutes
    world.scores(100, [0.7])  # a window that was never there, by less than five minutes after its end
    world.advance(362)
    first, second = windows(database)
    assert (first["scored"], first["revision"], first["state"]) == (2, 2, "frozen")
    assert (second["scored"], second["revision"], second["state"]) == (1, 1, "closed")


def test_what_comes_in_a_backlog_is_not_frozen(database: Database) -> None:
    """Jobs, or workers, were away for longer than the allowed lateness: nothing was late."""
    world = World(database, windows=WindowSettings(out_of_orderness_s=0, allowed_lateness_s=300))
    world.scores(0, [0.5])
    world.advance(60)
    world.scores(120, [0.5])
    world.advance(3600)
    assert [w["state"] for w in windows(database)] == ["closed", "closed"]


def test_a_zombies_roll_up_never_wins(database: Database) -> None:
    world = World(database)
    world.scores(0, [0.5])
    zombie = world.elect()
    world.advance(60)
    epoch = world.term.epoch
    world.scores(1, [0.9])
    zombie.run_cycle(world.at(61))  # sees the late row, stores two records with its old epoch, takes the mark back
    stored = database.rows("SELECT scored, version FROM windows WHERE size_s = 60 AND metric = 'quality.good'")
    assert {(row["scored"], row["version"] >> 32) for row in stored} >= {(1, epoch), (2, epoch - 1)}
    assert pending(database) == 0
    assert windows(database)[0]["scored"] == 1  # the zombie lost ...
    world.watch(62)
    assert windows(database)[0]["scored"] == 2  # ... and what it wanted to say is said by the leader
    assert world.watch(63).rollup.marks == 0


def test_marks_of_a_lane_that_nobody_runs_hold_up_no_other(database: Database) -> None:
    world = World(database)
    for second in (0, 60):
        world.store([score_row(world.at(second), f"judged{second}", {"near": 0.5})], "judge", traces=False)
    world.scores(120, [0.5])
    world.advance(180)
    assert [row["scored"] for row in windows(database)] == [1]
    assert pending(database) == 2  # they wait for their lane
    world.scores(121, [0.7])
    (handed,) = dirty.pending_windows(database, world.term, ["fast"], limit=2)
    assert (handed.lane, handed.window.start) == ("fast", int(world.at(120).timestamp()))


def test_a_mark_that_comes_during_a_roll_up_stays(database: Database) -> None:
    world = World(database)
    rows = world.scores(0, [0.5])
    late = score_row(world.at(1), "late", {"good": 0.9})

    class Interrupted(Database):
        def insert(self, table: str, rows: Any) -> None:
            if table == "dirty_windows" and not self.__dict__.get("done"):
                self.__dict__["done"] = True
                world.store([late])
            super().insert(table, rows)

    world.jobs.database = Interrupted(database.settings)
    world.jobs._slow_at = world.at(60)
    world.advance(60)
    assert pending(database) == 1
    world.watch(61)
    assert windows(database)[0]["scored"] == len(rows) + 1
    world.jobs.database.close()


def test_a_series_waits_for_its_own_lane_and_for_fast(database: Database) -> None:
    world = World(database)
    world.scores(0, [0.5], name="a")
    rows = [score_row(world.at(0), "a-0", {"near": 0.5}, evaluator="meaning")]
    world.store(rows, "model", traces=False)
    world.progress(60)
    world.progress(30, lane="model")
    world.watch(61)
    assert len(windows(database)) == 1
    assert windows(database, metric="meaning.near") == []
    world.progress(60, lane="model")
    world.watch(62)
    (near,) = windows(database, metric="meaning.near")
    assert (near["scored"], near["seen"]) == (1, 1)
    world.scores(1, [0.6])  # a late trace, not scored by the model lane yet: it was seen
    world.watch(63)
    (near,) = windows(database, metric="meaning.near")
    assert (near["scored"], near["seen"], near["revision"]) == (1, 2, 2)


def test_a_run_closes_when_it_is_complete_whatever_live_does(database: Database) -> None:
    world = World(database)
    rows = [score_row(world.at(0), "r", {"good": 0.5}, run_id="replayed")]
    world.store(rows)
    world.advance(7200)
    assert windows(database) == []
    run = "INSERT INTO runs (run_id, state, version) VALUES ('replayed', '{}', {})"
    database.command(run.format("started", 1))
    world.advance(7201)
    assert windows(database) == []
    database.command(run.format("completed", 2))
    world.advance(7202)
    (window,) = windows(database)
    assert (window["run_id"], window["scored"], window["state"]) == ("replayed", 1, "closed")
    assert [w["run_id"] for w in windows(database, 3600)] == ["replayed"]
    assert world.problems() == []


def test_a_stuck_partition_is_waited_for_and_then_said_to_be_missing(database: Database) -> None:
    world = World(database, windows=WindowSettings(out_of_orderness_s=0, heartbeat_timeout_s=10, stuck_wait_s=60))
    world.scores(0, [0.5])
    world.progress(30, partition=1, heartbeat_s=30)
    world.progress(100)
    world.watch(100)
    assert windows(database) == []
    world.progress(101)
    world.watch(101)
    (window,) = windows(database)
    assert window["incomplete"] == 1
    world.progress(102, partition=1)  # it is back
    world.scores(40, [0.7])
    world.advance(103)
    (window,) = windows(database)
    assert (window["scored"], window["incomplete"], window["state"]) == (2, 0, "revised")


def test_the_watermark_is_stored_and_never_goes_back(database: Database) -> None:
    world = World(database)
    world.advance(600)
    world.elect()
    world.progress(60)  # a worker that started anew says what it knows
    assert world.watch(601).rollup.lane_watermarks["fast"].at == world.at(600)


def test_segments_are_cut_for_primary_metrics_only(database: Database) -> None:
    world = World(database, windows=WindowSettings(out_of_orderness_s=0, segments={"tenant": ("a",)}))
    values = {"good": 0.5, "other": 0.5}
    world.store(
        [
            score_row(world.at(i), f"t{i}", values, segments={"tenant": tenant} if tenant else {})
            for i, tenant in enumerate(["a", "a", "b", "c", ""])
        ]
    )
    world.advance(60)
    cut = database.rows(
        "SELECT metric, segment, segment_value, seen, scored FROM windows FINAL WHERE size_s = 60 AND evaluator = "
        "'quality' ORDER BY metric, segment, segment_value"
    )
    assert [tuple(row.values()) for row in cut] == [
        ("quality.good", "", "", 5, 5),
        ("quality.good", "tenant", "__other__", 2, 2),
        ("quality.good", "tenant", "a", 2, 2),
        ("quality.other", "", "", 5, 5),
    ]


def test_a_trace_sent_again_with_another_time_counts_once(database: Database) -> None:
    world = World(database)
    world.store([score_row(world.at(5), "moved", {"good": 0.5}, version=version(10))])
    world.advance(60)
    world.store([score_row(world.at(125), "moved", {"good": 0.5}, version=version(20))])
    world.jobs._slow_at = None
    world.advance(180)
    assert [(w["scored"], w["seen"]) for w in windows(database)] == [(0, 0), (1, 1)]
    # the slow lane hands in what it scored of the first message
    late = score_row(world.at(5), "moved", {"near": 0.5}, evaluator="meaning", version=version(10))
    world.store([late], "model", traces=False)
    world.progress(180, lane="model")
    world.watch(181)
    assert windows(database, metric="meaning.near") == []
    assert database.rows("SELECT count() AS n FROM traces FINAL")[0]["n"] == 1


def test_a_trace_sent_again_with_another_time_has_one_vector(database: Database) -> None:
    world = World(database)
    first, second = (
        embedding("moved", run_id="live", app="shop", time=world.at(seconds), version=version(offset))
        for seconds, offset in ((5, 10), (125, 20))
    )
    for row in (first, second):
        world.store([score_row(row.time, "moved", {"good": 0.5}, version=row.version)])
    database.insert("embeddings", [first, second])
    assert tombstone_moved_traces(database, 60, world.at(180)) == 1
    world.advance(240)
    assert database.rows("SELECT count() AS n FROM embeddings FINAL") == [{"n": 1}]
    database.insert("embeddings", [first])  # a slow lane hands in what it has of the first message
    left = database.rows("SELECT time, version FROM embeddings FINAL")
    assert left == [{"time": second.time, "version": version(20)}]


def test_probes_have_windows_of_their_own(database: Database) -> None:
    world = World(database)
    world.store(
        [score_row(world.at(1), "p", {"good": 0.1}, run_id="probe"), score_row(world.at(2), "l", {"good": 0.9})]
    )
    world.advance(60)
    live, probe = windows(database)
    assert (live["run_id"], live["scored"], probe["run_id"], probe["scored"]) == ("live", 1, "probe", 1)


def test_an_evaluator_that_the_jobs_do_not_know_is_rolled_up_all_the_same(database: Database) -> None:
    world = World(database)
    world.store([score_row(world.at(1), "x", {"strange": 12.5}, evaluator="plugin")])
    world.advance(60)
    (window,) = windows(database, metric="plugin.strange")
    assert (window["scored"], window["sum"]) == (1, 12.5)


def test_seen_counts_traces_and_not_versions(database: Database) -> None:
    world = World(database)
    row = score_row(world.at(1), "one", {"good": 0.5})
    world.store([row])
    database.insert("traces", [trace_row(row)._replace(version=row.version + 1)])
    world.advance(60)
    assert windows(database)[0]["seen"] == 1


def test_a_trace_that_moved_far_is_found_within_the_hour(database: Database) -> None:
    world = World(database)
    database.command(
        "INSERT INTO traces (run_id, app, environment, time, trace_id, version, ingested_at) VALUES "
        "('live', 'shop', 'prod', {old:DateTime64(3, 'UTC')}, 'moved', 10, {old:DateTime64(3, 'UTC')}), "
        "('live', 'other', 'prod', {near:DateTime64(3, 'UTC')}, 'shared', 11, {near:DateTime64(3, 'UTC')})",
        {"old": world.at(-5 * 86400), "near": world.at(-600)},
    )
    assert tombstone_moved_traces(database, 60, world.at(0)) == 0
    world.store([score_row(world.at(5), name, {"good": 0.5}, version=20) for name in ("moved", "shared")])
    assert tombstone_moved_traces(database, 60, world.at(60)) == 1  # another app, the same day
    assert tombstone_moved_traces(database, 60, world.at(120)) == 0
    assert tombstone_moved_traces(database, 60, world.at(3600)) == 1
    assert tombstone_moved_traces(database, 60, world.at(3 * 3600)) == 0
    left = database.rows("SELECT app, trace_id, time FROM traces FINAL ORDER BY trace_id")
    assert [tuple(row.values()) for row in left] == [("shop", "moved", world.at(5)), ("shop", "shared", world.at(5))]
