"""A lane that is a static member comes back without a rebalance: the group's generation stays; names are for one."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from ragtide.stream.settings.sections import KafkaSettings
from tests.infra.kafka_node import KafkaNode
from tests.stream.core.loop import in_loop
from tests.stream.core.traffic import Lane, eventually, make_topics, send, trace

pytestmark = pytest.mark.kafka


@asynccontextmanager
async def another_member(
    kafka: KafkaNode, topic: str, group: str, name: str | None = None
) -> AsyncIterator[AIOKafkaConsumer]:
    """Who takes its share of the topic and goes on while others are away; `name`: it is static."""
    member = AIOKafkaConsumer(
        topic,
        bootstrap_servers=kafka.bootstrap,
        group_id=group,
        enable_auto_commit=False,
        group_instance_id=name,
        heartbeat_interval_ms=500,
        partition_assignment_strategy=[RoundRobinPartitionAssignor],
    )

    async def poll() -> None:
        while True:
            await member.getmany(timeout_ms=100)

    await member.start()
    polling = asyncio.create_task(poll())
    try:
        yield member
    finally:
        polling.cancel()
        with suppress(asyncio.CancelledError):
            await polling
        await member.stop()


def stores_more(lane: Lane, than: int) -> bool:
    return len(lane.traces()) > than


@in_loop
async def comes_back(kafka: KafkaNode, lane: Lane) -> None:
    async def until(what: Callable[[], bool]) -> None:
        await asyncio.to_thread(eventually, what, 20, lane.logs)

    async with another_member(kafka, lane.topic, lane.group) as other:
        await until(lambda: len(other.assignment()) == 1)
        before = (other._coordinator.generation, other.assignment())
        for end in (lane.terminate, lane.kill):
            await asyncio.to_thread(end)
            await asyncio.to_thread(lane.start)
            await until(lane.is_at_work)
            stored = len(lane.traces())
            await asyncio.to_thread(send, kafka, lane.topic, [(None, trace(f"t{n}")) for n in range(20)])
            await until(partial(stores_more, lane, stored))
        assert (other._coordinator.generation, other.assignment()) == before


@in_loop
async def is_robbed_and_robs(kafka: KafkaNode, lane: Lane, name: str) -> None:
    """A member has another id each time that it joins, and joins once more when the other one has its place."""
    stored = len(lane.traces())
    async with another_member(kafka, lane.topic, lane.group, name) as other:
        ids = set()

        def joined_thrice() -> bool:
            ids.add(other._coordinator.member_id)
            return len(ids - {""}) >= 3

        await asyncio.to_thread(eventually, joined_thrice, 30, lane.logs)
    await asyncio.to_thread(send, kafka, lane.topic, [(None, trace(f"r{n}")) for n in range(20)])
    await asyncio.to_thread(eventually, partial(stores_more, lane, stored), 30, lane.logs)


def test_a_restart_causes_no_rebalance_and_two_of_one_name_rob_each_other(kafka: KafkaNode, tmp_path: Path) -> None:
    topic = f"rag.{uuid.uuid4().hex[:8]}"
    make_topics(kafka, {topic: 2, f"{topic}.dead": 1})
    settings = {"group_instance_id": "worker-0", "session_timeout_s": 40.0}
    with Lane(kafka, tmp_path, topic, kafka=settings) as lane:
        eventually(lane.is_at_work, 40, lane.logs)
        comes_back(kafka, lane)
        is_robbed_and_robs(kafka, lane, "worker-0-fast")


@in_loop
async def test_who_asks_by_an_identity_that_another_took_joins_with_a_new_one(kafka: KafkaNode) -> None:
    topic = f"rag.{uuid.uuid4().hex[:8]}"
    await asyncio.to_thread(make_topics, kafka, {topic: 1})
    async with another_member(kafka, topic, topic, "worker-0") as first:
        lost = first._coordinator.member_id
        async with another_member(kafka, topic, topic, "worker-0"):
            first._coordinator.request_rejoin()  # before a heartbeat tells: the broker answers FENCED_INSTANCE_ID
            await asyncio.to_thread(eventually, lambda: first._coordinator.member_id not in ("", lost), 30)


def test_each_lane_has_a_name_of_its_own() -> None:
    assert KafkaSettings(group_instance_id="pod-3").instance("fast") == "pod-3-fast"
    assert KafkaSettings().instance("fast") is None
