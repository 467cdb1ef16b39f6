"""A whole installation, and how each kind of fault befalls it."""

import signal
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType

import psutil

from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.chaos.harness.schedule import KINDS, Fault
from tests.chaos.harness.spoiled_inserts import SpoiledInserts
from tests.chaos.processes import RAGTIDE, Ragtide
from tests.infra.kafka_node import KafkaNode

_IN_ORDER = (0, -signal.SIGTERM)  # the latter: told before it listened for that, and so before it began anything


class Scene:
    """One worker and one process of jobs, and what they stand on; whatever was started here is killed at the end.

    `ended` says which processes ended by themselves, or not in order when told to. `hostile` sends hostile records.
    """

    def __init__(
        self,
        config: Path,
        clickhouse: EmbeddedClickHouse,
        broker: KafkaNode,
        inserts: SpoiledInserts,
        worker: Sequence[str] = RAGTIDE,
        hostile: Callable[[], None] = lambda: None,
    ) -> None:
        self._config = config
        self._clickhouse = clickhouse
        self._broker = broker
        self._inserts = inserts
        self._program = worker
        self._send_hostile = hostile
        self._started: list[Ragtide] = []
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self.ended: list[str] = []

    def __enter__(self) -> "Scene":
        self._worker, self._jobs = self._new_worker(), self._new_jobs()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in self._started:
            process.kill()

    def suffer(self, faults: Sequence[Fault]) -> None:
        """All of them, each at its time from now; what is broken works again, or starts, when this returns."""
        began = time.monotonic()
        with ThreadPoolExecutor(max(1, len(faults)), thread_name_prefix="fault") as threads:
            for done in [threads.submit(self._suffer, fault, began) for fault in faults]:
                done.result()

    def leave(self) -> None:
        """Worker and jobs end in order."""
        self._stop(self._worker)
        self._stop(self._jobs)

    def befall(self, kind: str) -> AbstractContextManager[None]:
        """A fault that lasts as long as the context."""
        spoiled = self._inserts.spoiling
        how: dict[str, Callable[[], AbstractContextManager[None]]] = {
            "kill_worker": self._worker_killed,
            "stop_worker": self._worker_stopped,
            "stall_worker": lambda: frozen(self._worker.process.pid),
            "zombie_worker": self._worker_undead,
            "second_worker": self._two_workers,
            "kill_jobs": self._jobs_killed,
            "zombie_jobs": self._jobs_undead,
            "kill_clickhouse": self._clickhouse_killed,
            "stall_clickhouse": lambda: frozen(self._clickhouse.pid),
            "kill_broker": self._broker_killed,
            "stall_broker": lambda: frozen(self._broker.pid),
            "hostile_records": self._hostile_sent,
            "insert_answered_with_error": lambda: spoiled("error"),
            "insert_not_answered": lambda: spoiled("silence"),
            "insert_delayed": lambda: spoiled("delay"),
        }
        return how[kind]()

    def _suffer(self, fault: Fault, began: float) -> None:
        time.sleep(max(0.0, began + fault.at_s - time.monotonic()))
        with self._locks[KINDS[fault.kind].target], self.befall(fault.kind):
            time.sleep(fault.for_s)

    @contextmanager
    def _worker_killed(self) -> Iterator[None]:
        self._kill(self._worker)
        yield
        self._worker = self._new_worker()

    @contextmanager
    def _worker_stopped(self) -> Iterator[None]:
        self._stop(self._worker)
        yield
        self._worker = self._new_worker()

    @contextmanager
    def _worker_undead(self) -> Iterator[None]:
        """Its stand-in takes its partitions over; then it wakes up, with what it was at, and is told to stop."""
        undead, self._worker = self._worker, self._new_worker()
        with frozen(undead.process.pid):
            yield
        self._stop(undead)

    @contextmanager
    def _two_workers(self) -> Iterator[None]:
        second = self._new_worker()
        yield
        self._stop(second)

    @contextmanager
    def _jobs_killed(self) -> Iterator[None]:
        self._kill(self._jobs)
        yield
        self._jobs = self._new_jobs()

    @contextmanager
    def _jobs_undead(self) -> Iterator[None]:
        undead, self._jobs = self._jobs, self._new_jobs()
        with frozen(undead.process.pid):
            yield
        self._stop(undead)

    @contextmanager
    def _clickhouse_killed(self) -> Iterator[None]:
        self._clickhouse.kill()
        yield
        self._clickhouse.start()

    @contextmanager
    def _broker_killed(self) -> Iterator[None]:
        self._broker.kill()
        yield
        self._broker.restart()

    @contextmanager
    def _hostile_sent(self) -> Iterator[None]:
        self._send_hostile()
        yield

    def _new_worker(self) -> Ragtide:
        return self._new("worker", "--lane", "fast", program=self._program)

    def _new_jobs(self) -> Ragtide:
        return self._new("jobs", program=RAGTIDE)

    def _new(self, *arguments: str, program: Sequence[str]) -> Ragtide:
        log = self._config.with_name(f"{arguments[0]}-{len(self._started)}.log")
        started = Ragtide(*arguments, config=self._config, log=log, program=program)
        self._started.append(started)
        return started

    def _kill(self, process: Ragtide) -> None:
        if self._lives(process):
            process.kill()

    def _stop(self, process: Ragtide) -> None:
        if not self._lives(process):
            return
        try:
            status = process.stop()
        except subprocess.TimeoutExpired:
            self.ended.append(f"{process.name} did not end when told to")
            return
        if status not in _IN_ORDER:
            self.ended.append(f"{process.name}, told to end, did so with {status}")

    def _lives(self, process: Ragtide) -> bool:
        status = process.process.poll()
        if status is not None:
            self.ended.append(f"{process.name} ended by itself with {status}")
        return status is None


@contextmanager
def frozen(pid: int | None) -> Iterator[None]:
    """SIGSTOP: it does nothing, and its connections stay open. A zombie, where its session runs out meanwhile."""
    process = psutil.Process(pid)
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)
