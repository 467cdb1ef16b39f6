"""One seed: an installation of its own, a producer and faults at the same time, and the verdict once all is quiet."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.chaos.harness.hostile import HOSTILE, Hostile, offsets_taken, send_hostile
from tests.chaos.harness.model import EVALUATOR_TASKS, EVALUATORS, SEGMENTS, SIZES_S, expected
from tests.chaos.harness.scene import Scene
from tests.chaos.harness.schedule import schedule
from tests.chaos.harness.spoiled_inserts import SpoiledInserts
from tests.chaos.harness.traffic import Ledger, Poison, Sent, ledger
from tests.chaos.harness.verdict import Verdict, judge
from tests.chaos.processes import RAGTIDE
from tests.failures.site import Sections, Site
from tests.infra.fresh_database import fresh_database
from tests.infra.kafka_clients import consumer_of, producer_of
from tests.infra.kafka_node import KafkaNode

MESSAGES_A_SECOND = 150
PARTITIONS = 3
_LOOK_S = 0.5
_CHUNK = 10  # messages
# Everything at once and in little pieces: sessions run out soon, blocks are small, inserts are given up after seconds.
SECTIONS: Sections = {
    "kafka": {"session_timeout_s": 4.0, "heartbeat_s": 1.0, "rebalance_timeout_s": 5.0},
    "worker": {"slice_records": 50, "block_rows": 500, "block_wait_ms": 100, "drain_s": 3.0},
    "evaluators": {"enabled": list(EVALUATORS)},
    "evaluators.tasks": {id_: list(tasks) for id_, tasks in EVALUATOR_TASKS.items()},
    "clickhouse": {"timeout_s": 5.0},
    "windows": {"sizes_s": list(SIZES_S)},
    "windows.segments": SEGMENTS,
    "rules": {"min_sample": 1_000_000},  # no problems: only windows are looked at
}


@dataclass(frozen=True, slots=True)
class Stage:
    """What installations stand on, seeds one after the other; kept where a seed's faults kill and restart it."""

    directory: Path
    broker: KafkaNode
    clickhouse: EmbeddedClickHouse

    def within(self, name: str) -> "Stage":
        """The same, with a new folder for settings and logs."""
        (self.directory / name).mkdir()
        return replace(self, directory=self.directory / name)


@dataclass(slots=True)
class Trial:
    """An installation under way: what was sent to it, and what becomes of that."""

    site: Site
    database: Database
    inserts: SpoiledInserts
    scene: Scene
    sent: int = 0
    hostile: list[Hostile] = field(default_factory=list)

    def send(self, messages: Sequence[Sent | Poison], seconds: float = 0.0) -> None:
        """Each once, in order, evenly over so many seconds; the brokers have them when this returns."""
        asyncio.run(_send(self.site.broker.bootstrap, self.site.topic, messages, seconds))
        self.sent += len(messages)

    def send_hostile(self) -> None:
        """One batch of every hostile kind, in a partition after the other; the brokers have them when this returns."""
        number = len(self.hostile)
        partition = number // len(HOSTILE) % PARTITIONS
        self.hostile += send_hostile(self.site.broker.bootstrap, self.site.topic, partition, number)

    def stored(self) -> int:
        """How many traces there are so far."""
        return int(self.database.rows("SELECT uniqExact(trace_id) AS n FROM traces")[0]["n"])

    def unread(self) -> int:
        """How many of the messages no worker committed; all, while the brokers do not say."""
        sent = self.sent + len(self.hostile) // len(HOSTILE) * offsets_taken()
        with suppress(KafkaError, OSError):
            return max(0, sent - self.site.committed())
        return sent

    def verdict(self, of: Ledger, drain_s: float = 150, settle_s: float = 90) -> Verdict:
        """Once everything is read, windows have come to rest (or not, in time), worker and jobs are stopped."""
        wanted = expected(of, self.hostile)
        until(lambda: self.unread() == 0, drain_s)
        unread = self.unread()
        until(lambda: judge(self.database, wanted).clean, settle_s)
        self.scene.leave()
        verdict = judge(self.database, wanted)
        verdict.unread, verdict.ended = unread, self.scene.ended
        letters = asyncio.run(_letters(self.site.broker.bootstrap, self.site.dead_topic))
        verdict.lost += len({poison.message() for poison in of.poison} - {letter.value for letter in letters})
        verdict.lost += len(set(self.hostile) - {_hostile_of(letter) for letter in letters})
        return verdict


@contextmanager
def trial(
    stage: Stage, worker: Sequence[str] = RAGTIDE, tables: Callable[[Database], None] = lambda _: None
) -> Iterator[Trial]:
    """A new installation on the stage, at work; `tables` may change its tables first."""
    with fresh_database(stage.clickhouse) as database, SpoiledInserts(database.settings) as inserts:
        tables(database)
        site = Site(stage.directory, stage.broker, inserts.settings, SECTIONS, PARTITIONS)
        scene = Scene(site.config, stage.clickhouse, stage.broker, inserts, worker, lambda: made.send_hostile())
        made = Trial(site, database, inserts, scene)
        with site.up(), scene:
            yield made


def run_seed(stage: Stage, seed: int, seconds: float) -> Verdict:
    """Faults of this seed for so long, and its traffic meanwhile, of which some is stored before the first fault."""
    of = ledger(seed, int(seconds * MESSAGES_A_SECOND), datetime.now(UTC))
    first = len(of.messages) // 10
    with trial(stage) as running, ThreadPoolExecutor(1, thread_name_prefix="producer") as thread:
        running.send(of.messages[:first])
        assert until(lambda: running.stored() > 0, 60), f"nothing is stored: see {stage.directory}"
        producing = thread.submit(running.send, of.messages[first:], seconds)
        running.scene.suffer(schedule(seed, seconds))
        producing.result()
        return running.verdict(of)


async def _send(bootstrap: str, topic: str, messages: Sequence[Sent | Poison], seconds: float) -> None:
    async with producer_of(bootstrap, enable_idempotence=True, request_timeout_ms=120_000) as producer:
        began, waiting = time.monotonic(), []
        for number, message in enumerate(messages):
            if number % _CHUNK == 0:
                await asyncio.sleep(max(0.0, began + seconds * number / len(messages) - time.monotonic()))
            waiting.append(await producer.send(topic, message.message(), key=message.key))
        await asyncio.gather(*waiting)


async def _letters(bootstrap: str, topic: str) -> list[Any]:
    """Every record that its one partition holds now."""
    async with consumer_of(bootstrap, auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        end = (await consumer.end_offsets([partition]))[partition]
        found: list[Any] = []
        while await consumer.position(partition) < end:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                found += records
        return found


def _hostile_of(letter: Any) -> Hostile:
    """What a dead letter says of itself."""
    told = {name: value.decode() for name, value in letter.headers if name.startswith("dlq.")}
    return Hostile(int(told["dlq.partition"]), int(told["dlq.offset"]), told["dlq.reason"])


def until(done: Callable[[], bool], timeout_s: float) -> bool:
    """Whether it came in time."""
    deadline = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_S)
    return True
