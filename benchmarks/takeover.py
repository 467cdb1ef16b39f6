"""How long partitions wait for a new owner when theirs is killed, against plain aiokafka consumers.

`python -m benchmarks.takeover [--rounds 3]`: Apache Kafka on loopback, four partitions under a trickle, sessions as in
the default settings. Two members of either group; one of each is killed (kill -9) at the same moment. Seconds until the
commits of every partition pass the end that it had then.
"""

import argparse
import asyncio
import contextlib
import logging
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import GroupCoordinatorNotAvailableError

from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.stream.settings.sections import KafkaSettings
from tests.failures.site import Sections, Site
from tests.infra.fresh_database import fresh_database
from tests.infra.kafka_node import KafkaNode
from tests.stream.core.traffic import committed, trace

PARTITIONS = 4
GOAL_S = 20.0
TRICKLE_S = 0.05  # between two records of a partition
DEFAULT = KafkaSettings()
SESSION = {"session_timeout_s": DEFAULT.session_timeout_s, "heartbeat_s": DEFAULT.heartbeat_s}
SESSION |= {"rebalance_timeout_s": DEFAULT.rebalance_timeout_s, "commit_interval_s": DEFAULT.commit_interval_s}
SECTIONS: Sections = {"kafka": SESSION, "evaluators": {"enabled": ["inputs"]}}


async def member(bootstrap: str, topic: str, group: str) -> None:
    """A plain consumer that commits every batch; runs until it is killed."""
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=int(DEFAULT.session_timeout_s * 1000),
        heartbeat_interval_ms=int(DEFAULT.heartbeat_s * 1000),
        rebalance_timeout_ms=int(DEFAULT.rebalance_timeout_s * 1000),
    )
    await consumer.start()
    while True:
        if await consumer.getmany(timeout_ms=500):
            await consumer.commit()


@contextlib.contextmanager
def trickle(bootstrap: str, topic: str) -> Iterator[None]:
    """Traces to every partition meanwhile."""
    over = threading.Event()

    async def produce() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
        await producer.start()
        for number in count():
            if over.is_set():
                break
            for partition in range(PARTITIONS):
                value = trace(f"{partition}-{number}", time=datetime.now(UTC).isoformat())
                await producer.send(topic, value, partition=partition)
            await asyncio.sleep(TRICKLE_S)
        await producer.stop()

    thread = threading.Thread(target=lambda: asyncio.run(produce()))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


async def members_with_partitions(bootstrap: str, group: str) -> int:
    """How many of the group's members own some."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        described = await admin.describe_consumer_groups([group])
    except GroupCoordinatorNotAvailableError:  # a fresh node makes its topic of offsets when first asked
        return 0
    finally:
        await admin.close()
    assigned = [one[4] for answer in described for found in answer.groups for one in found[5]]
    return sum(bool(each and ConsumerProtocolMemberAssignment.decode(each).assignment) for each in assigned)


async def ends(bootstrap: str, topic: str) -> dict[int, int]:
    """Where each partition ends."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
    await consumer.start()
    try:
        found = await consumer.end_offsets([TopicPartition(topic, number) for number in range(PARTITIONS)])
    finally:
        await consumer.stop()
    return {partition.partition: end for partition, end in found.items()}


def measured(site: Site) -> dict[str, float]:
    """Seconds by group, of one kill."""
    bootstrap, topic = site.broker.bootstrap, site.topic
    plain = f"{topic}-plain"
    command = [sys.executable, "-m", "benchmarks.takeover", "--member", bootstrap, topic, plain]
    with site.up(), contextlib.ExitStack() as stack:
        consumers = [subprocess.Popen(command) for _ in range(2)]
        for consumer in consumers:
            stack.callback(consumer.kill)
        workers = [site.worker(), site.worker()]
        stack.enter_context(trickle(bootstrap, topic))
        groups = {"ragtide": f"{topic}-fast", "aiokafka": plain}
        while any(asyncio.run(members_with_partitions(bootstrap, group)) < 2 for group in groups.values()):
            time.sleep(0.5)
        time.sleep(2 * DEFAULT.heartbeat_s)
        at_kill = asyncio.run(ends(bootstrap, topic))
        killed_at = time.monotonic()
        workers[0].process.kill()
        consumers[0].kill()
        seconds: dict[str, float] = {}
        while len(seconds) < len(groups):
            for name in groups.keys() - seconds.keys():
                done = committed(site.broker, groups[name], topic, PARTITIONS)
                if all(done[partition] > end for partition, end in at_kill.items()):
                    seconds[name] = time.monotonic() - killed_at
        return seconds


def main() -> int:
    """0 where the slowest takeover took no longer than `GOAL_S`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--member", nargs=3, metavar=("BOOTSTRAP", "TOPIC", "GROUP"), help="be a plain consumer")
    chosen = parser.parse_args()
    if chosen.member:
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # it tells of every rebalance
        asyncio.run(member(*chosen.member))
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        with KafkaNode(folder / "kafka") as node, EmbeddedClickHouse(folder / "clickhouse") as server:
            slowest = {"ragtide": 0.0, "aiokafka": 0.0}
            for number in range(chosen.rounds):
                own = folder / str(number)
                own.mkdir()
                with fresh_database(server) as database:
                    seconds = measured(Site(own, node, database.settings, SECTIONS, PARTITIONS))
                print("  ".join(f"{name} {seconds[name]:5.1f} s" for name in slowest), flush=True)
                slowest = {name: max(slowest[name], seconds[name]) for name in slowest}
    ours, theirs = slowest["ragtide"], slowest["aiokafka"]
    print(f"slowest of {chosen.rounds}: {ours:.1f} s against {theirs:.1f} s of plain consumers, {ours / theirs:.2f}")
    print(f"goal {GOAL_S:g} s: {'reached' if ours <= GOAL_S else 'missed'}")
    return 0 if ours <= GOAL_S else 1


if __name__ == "__main__":
    sys.exit(main())
