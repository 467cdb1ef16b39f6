"""A job that fails again and again, or ends too few runs, is a problem until it does better."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from click.testing import CliRunner

from ragtide.drift.checks.job_health import JobFailures, JobsBehind
from ragtide.drift.job_history import JobRun, load_runs
from ragtide.drift.leadership import Term
from ragtide.drift.settings import JobSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.cli import jobs as cli
from tests.drift.world import World

pytestmark = pytest.mark.clickhouse
EVERY_S = {"watch": 10.0, "drift": 60.0}
HOUR = 3600


def record_runs(world: World, job: str, seconds: Sequence[float], *, why: str = "", took_s: float = 1.0) -> None:
    rows = [JobRun(job, world.term.epoch, world.at(second), took_s, why) for second in seconds]
    world.database.insert("job_history", rows)


def run_check(world: World, second: float, *, led_s: float = 60, every_s: dict[str, float] | None = None) -> list[str]:
    term = Term(world.term.epoch, world.at(second) - timedelta(seconds=led_s))
    names = EVERY_S if every_s is None else every_s
    now, settings = world.at(second), JobSettings(failing_runs=3)
    found = [world.check(check, now, term=term, jobs=settings) for check in (JobFailures(names), JobsBehind(names))]
    return [f"{event.event} {event.segment_value}" for one in found for event in one.events]


def test_runs_in_a_row_that_failed_are_a_problem_until_as_many_went_well(database: Database) -> None:
    world = World(database)
    record_runs(world, "watch", [0, 10], why="no answer")
    record_runs(world, "drift", [0, 60, 120])
    assert run_check(world, 15) == []
    record_runs(world, "watch", [20], why="ValueError")
    assert run_check(world, 25) == ["opened watch"]
    assert run_check(world, 25) == [], "told again, or by the next leader, it is known"
    (problem,) = world.open()
    assert (problem.type, problem.aspect, problem.app, problem.severity) == ("runtime", "jobs", "", "critical")
    assert problem.code == "P0203 Scaling"
    assert problem.attributes["reasons"] == ["no answer (runs: 2)", "ValueError (runs: 1)"]
    assert "Job watch failed its last 3 runs (since " in problem.description
    assert problem.description.endswith(" Latest error: ValueError.")
    assert "ragtide jobs runs --failed" in problem.actions[0]
    record_runs(world, "watch", [30, 40])
    assert run_check(world, 45) == [], "one of the last three failed"
    record_runs(world, "watch", [50])
    assert run_check(world, 55) == ["resolved watch"]


def test_a_job_that_ends_too_few_runs_is_behind_until_it_keeps_up(database: Database) -> None:
    world = World(database)
    record_runs(world, "drift", range(0, HOUR, 150), took_s=149)  # 23 of 60 end within the hour
    assert run_check(world, HOUR, every_s={"drift": 60.0}) == [], "a leader of a minute cannot tell"
    assert run_check(world, HOUR, led_s=HOUR, every_s={"drift": 60.0}) == ["opened drift"]
    (problem,) = world.open()
    assert problem.attributes["value"] == pytest.approx(24 / 60)
    assert (problem.attributes["sample_size"], problem.attributes["longest_s"]) == (60, 149)
    record_runs(world, "drift", range(HOUR, 2 * HOUR, 90))  # 40 of 60: more than half, not yet three quarters
    assert run_check(world, 2 * HOUR, led_s=HOUR, every_s={"drift": 60.0}) == []
    record_runs(world, "drift", range(2 * HOUR, 3 * HOUR, 75))  # 48 of 60
    assert run_check(world, 3 * HOUR, led_s=HOUR, every_s={"drift": 60.0}) == ["resolved drift"]


def test_a_job_that_hangs_is_behind_and_one_that_is_not_scheduled_any_more_has_no_problem(database: Database) -> None:
    world = World(database)
    record_runs(world, "drift", range(0, HOUR, 60))
    assert run_check(world, 2 * HOUR, led_s=HOUR) == ["opened watch", "opened drift"]
    assert [one.attributes["longest_s"] for one in world.open()] == [None, None]
    assert run_check(world, 2 * HOUR, led_s=0, every_s={"watch": 10.0}) == ["resolved drift"]


def test_runs_are_listed_newest_first_and_shown(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(database)
    record_runs(world, "watch", [0, 10, 20])
    record_runs(world, "drift", [5], why="no answer", took_s=2.5)
    newest = load_runs(database, world.start, most=2)
    assert [(run.job, (run.started_at - world.start).total_seconds()) for run in newest] == [
        ("watch", 20),
        ("watch", 10),
        ("drift", 5),
    ]
    assert [run.took_s for run in load_runs(database, world.start, failed=True, most=9)] == [2.5]
    assert load_runs(database, world.at(21), most=9) == []
    settings = database.settings
    monkeypatch.setenv("RAGTIDE_CLICKHOUSE__URL", settings.url)
    monkeypatch.setenv("RAGTIDE_CLICKHOUSE__PASSWORD", settings.password.get_secret_value())
    monkeypatch.setenv("RAGTIDE_CLICKHOUSE__DATABASE", settings.database)
    shown = CliRunner().invoke(cli.command, ["runs", "--job", "drift"], catch_exceptions=False).output
    started = f"{world.at(5):%Y-%m-%d %H:%M:%S}"
    assert shown.splitlines()[1].split() == ["drift", *started.split(), "2.500", "-", "-", "no", "answer"]
