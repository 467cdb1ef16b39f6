"""Workers and jobs that end at every step, by kill -9 and by SIGTERM: what is stored in the end is what was sent.

On each installation one worker is killed at a point, the next gets SIGTERM at the same point, a third goes on; then the
same happens to the jobs.
"""

import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.chaos.crash_points import HELD, JOBS, POINTS, WORKER
from tests.chaos.crash_points_process import Ending, Part
from tests.chaos.crash_points_scene import Scene, staged
from tests.chaos.ledger import MINUTE, Sent, make
from tests.infra.forked import Forked
from tests.infra.fresh_database import fresh_database
from tests.infra.kafka_node import KafkaNode

pytestmark = [pytest.mark.kafka, pytest.mark.clickhouse, pytest.mark.chaos, pytest.mark.timeout(300)]

COUNT = 600
POISON = [b'{"broken": %d, ' % number for number in range(6)]
AT_ONCE = 4  # stories: most of the time each waits for a session to run out
ENDED = [-signal.SIGKILL, 0, 0]  # the killed, the stopped and the last
EVENTS = "SELECT app, metric, event FROM problem_events FINAL"


@dataclass(frozen=True)
class Told:
    """How processes ended, and how many records were left to do where the first one did."""

    scene: Scene
    workers: list[int]
    left: int
    jobs: list[int]


def traffic(seed: int) -> list[Sent]:
    """Some traces come again with other contents, six of them a minute later; the answers of one app are blank."""
    messages = make(COUNT, seed, datetime.now(UTC)).messages
    moved = [replace(sent, time=sent.time + MINUTE) for sent in messages[:6]]
    blank = [Sent(f"blank-{number}", "broken", messages[0].time, 1.0, 0) for number in range(40)]
    return [*messages, *blank, *moved]


def story(scene: Scene, seed: int, worker_point: str, jobs_point: str) -> Told:
    """Ends once all is stored; raises where that does not come."""
    scene.send(traffic(seed), POISON)
    workers, left, worker = ended_twice(scene, "worker", worker_point)
    scene.until_all_is_committed()
    leaders, _, jobs = ended_twice(scene, "jobs", jobs_point)
    scene.until_windows_are_right()
    scene.until(lambda: bool(scene.database.rows(EVENTS)), "a problem")
    return Told(scene, [*workers, worker.stop()], left, [*leaders, jobs.stop()])


def ended_twice(scene: Scene, part: Part, point: str) -> tuple[list[int], int, Forked]:
    """How the first two ended, what was left where the first one did, and the third, which goes on."""
    statuses, left = [], []
    process = scene.start(part, Ending(point, signal.SIGKILL))
    for then in (Ending(point, signal.SIGTERM), None):
        if POINTS[point].in_rebalance:
            scene.until_said(process, HELD)
        else:
            process.wait()
        left.append(scene.left())
        successor = scene.start(part, then)
        statuses.append(process.wait())
        process = successor
    return statuses, left[0], process


@pytest.fixture(scope="module")
def stories(
    kafka: KafkaNode, clickhouse_server: EmbeddedClickHouse, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Told]]]:
    """By either of their two points."""
    folder = tmp_path_factory.mktemp("crash-points")
    with ExitStack() as stack:
        databases = [stack.enter_context(fresh_database(clickhouse_server)) for _ in WORKER]
        scenes = [
            stack.enter_context(staged(folder / str(number), kafka, database, block_rows=480))
            for number, database in enumerate(databases)
        ]
        pool = stack.enter_context(ThreadPoolExecutor(AT_ONCE))
        told: dict[str, Future[Told]] = {}
        for seed, (scene, *points) in enumerate(zip(scenes, WORKER, JOBS, strict=True)):
            told |= dict.fromkeys(points, pool.submit(story, scene, seed, *points))
        yield told


@pytest.mark.parametrize("point", WORKER)
def test_a_worker_that_ends_at_any_step_loses_and_doubles_nothing(stories: dict[str, Future[Told]], point: str) -> None:
    told = stories[point].result()
    assert told.workers == ENDED
    assert told.left > 0, "killed too late to prove anything"
    told.scene.check_what_is_stored()


@pytest.mark.parametrize("point", JOBS)
def test_jobs_that_end_at_any_step_leave_right_windows_and_each_problem_once(
    stories: dict[str, Future[Told]], point: str
) -> None:
    told = stories[point].result()
    assert told.jobs == ENDED
    told.scene.check_what_is_stored()
    events = [tuple(row.values()) for row in told.scene.database.rows(EVENTS)]
    assert events == [("broken", "operations.empty_answer", "opened")]
