"""Who belongs to a group changes under load, also without knowing it: nothing is lost, and a zombie never wins."""

import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from ragtide.sinks.clickhouse.database import Database
from tests.chaos.crash_points import PASSED
from tests.chaos.crash_points_process import Ending
from tests.chaos.crash_points_scene import Scene, staged
from tests.chaos.ledger import Sent, make
from tests.infra.forked import Forked
from tests.infra.kafka_node import KafkaNode

pytestmark = [pytest.mark.kafka, pytest.mark.clickhouse, pytest.mark.chaos, pytest.mark.timeout(300)]

COUNT = 600


@pytest.fixture
def scene(kafka: KafkaNode, database: Database, tmp_path: Path) -> Iterator[Scene]:
    with staged(tmp_path, kafka, database, partitions=4) as ready:
        yield ready


def stands_still(scene: Scene, process: Forked) -> None:
    """Wait until it is stopped, not ended."""
    scene.until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED, "a process that stands still")


def traffic(seed: int, count: int = COUNT) -> list[Sent]:
    return make(count, seed, datetime.now(UTC)).messages


def test_workers_join_leave_and_die_under_load(scene: Scene) -> None:
    with scene.steadily(traffic(seed=1, count=20_000)):
        first = scene.start("worker")
        scene.until_owned_by(first)
        second = scene.start("worker")
        scene.until_owned_by(first, second)
        assert first.stop() == 0
        scene.until_owned_by(second)
        third = scene.start("worker")
        scene.until_owned_by(second, third)
        second.kill()
        scene.until_owned_by(third)
    scene.until_all_is_committed()
    jobs = scene.start("jobs")
    scene.until_windows_are_right()
    assert [third.stop(), jobs.stop()] == [0, 0]
    scene.check_what_is_stored()


def test_what_a_zombie_worker_had_in_flight_replaces_nothing_newer(scene: Scene) -> None:
    """It stands still between evaluating and storing, for longer than its session; others do its work meanwhile."""
    scene.send(traffic(seed=2))
    zombie = scene.start("worker", Ending("after evaluating", signal.SIGSTOP))
    stands_still(scene, zombie)
    other, jobs = scene.start("worker"), scene.start("jobs")
    scene.until_all_is_committed()
    scene.send(traffic(seed=3))  # the same traces with other contents and times
    scene.until_all_is_committed()
    scene.until_windows_are_right()

    before = slices_stored(scene)
    zombie.send_signal(signal.SIGCONT)
    scene.until(lambda: slices_stored(scene) > before, "what the zombie had in flight stored")
    scene.until_owned_by(zombie, other)
    assert scene.left() == 0, "the zombie took commits back"
    scene.send(traffic(seed=4)[:100])
    scene.until_all_is_committed()
    scene.until_windows_are_right()
    assert [zombie.stop(), other.stop(), jobs.stop()] == [0, 0, 0]
    scene.check_what_is_stored()


def slices_stored(scene: Scene) -> int:
    """So far; each has marks of its own."""
    return int(scene.database.rows("SELECT uniqExact(mark_id) AS n FROM dirty_windows")[0]["n"])


@pytest.mark.parametrize("point", ["before the roll-up's windows", "windows stored, marks still there"])
def test_a_zombie_roll_up_never_wins(scene: Scene, point: str) -> None:
    """It stands still in its roll-up for longer than its session; another leader stores windows and revises them."""
    scene.send(traffic(seed=5))
    worker = scene.start("worker")
    scene.until_all_is_committed()
    zombie = scene.start("jobs", Ending(point, signal.SIGSTOP))
    stands_still(scene, zombie)
    other = scene.start("jobs")
    scene.until_windows_are_right()
    scene.send(traffic(seed=6))
    scene.until_all_is_committed()
    scene.until_windows_are_right()

    before = windows_of_the_first_leader(scene)
    zombie.send_signal(signal.SIGCONT)
    scene.until_said(zombie, PASSED)
    assert windows_of_the_first_leader(scene) == before, "the zombie won"
    scene.send(traffic(seed=7)[:100])
    scene.until_all_is_committed()
    scene.until_windows_are_right()
    assert [zombie.stop(), other.stop(), worker.stop()] == [0, 0, 0]
    scene.check_what_is_stored()


def windows_of_the_first_leader(scene: Scene) -> int:
    """Those that nobody stored anew."""
    of_first = "SELECT count() AS n FROM windows FINAL WHERE bitShiftRight(version, 32) = 1"
    return int(scene.database.rows(of_first)[0]["n"])
