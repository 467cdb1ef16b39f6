"""How far every consumer group is in its topics, as the brokers have it; nothing is committed and no group joined."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import GroupCoordinatorNotAvailableError, KafkaError

from evaluators.errors import ConfigError, Transient
from stream.configuration.sections import KafkaSettings
from stream.kafka.brokers import no_answer, partitions
from stream.kafka.client import client_options
from stream.kafka.ends import end_offsets

_TRIES = 25  # a fresh cluster makes its topic of offsets when first asked
_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class Standing:
    """A partition, and where a group is in it. Offsets; `group` is empty for a topic that none reads.

    `lag` counts records from what was committed, or from the beginning where nothing was. `member`: client and host.
    """

    group: str
    topic: str
    partition: int
    begin: int
    end: int
    committed: int | None
    lag: int | None
    member: str


@dataclass(frozen=True, slots=True)
class _Group:
    committed: Mapping[TopicPartition, int]
    members: Mapping[TopicPartition, str]


async def standings(kafka: KafkaSettings, topics: Mapping[str, Sequence[str]]) -> list[Standing]:
    """Of each group's topics, by group and partition. Raises `Transient`, or `ConfigError` for a missing topic."""
    known = await partitions(kafka)
    names = list(dict.fromkeys(name for group in topics.values() for name in group))
    if missing := [name for name in names if name not in known]:
        raise ConfigError(f"Kafka at {kafka.bootstrap_servers} has no topic {', '.join(missing)}; see `ragwatch check`")
    found = [TopicPartition(name, number) for name in names for number in range(known[name])]
    try:
        begin, ends = await _bounds(kafka, found)
        groups = await _groups(kafka, {group: [at for at in found if at.topic in topics[group]] for group in topics})
    except KafkaError as error:
        raise Transient(no_answer(kafka, error)) from None
    nobody = _Group({}, {})
    return [
        _standing(group, at, begin[at], ends[at], groups.get(group, nobody))
        for group, read in topics.items()
        for at in found
        if at.topic in read
    ]


def _standing(group: str, at: TopicPartition, begin: int, end: int, known: _Group) -> Standing:
    committed = known.committed.get(at)
    lag = max(0, end - max(begin, committed or 0)) if group else None
    return Standing(group, at.topic, at.partition, begin, end, committed, lag, known.members.get(at, ""))


async def _bounds(
    kafka: KafkaSettings, found: list[TopicPartition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Beginnings and ends."""
    consumer = AIOKafkaConsumer(group_id=None, enable_auto_commit=False, **client_options(kafka))
    try:
        await consumer.start()
        consumer.assign(found)
        begin = await consumer.beginning_offsets(found)
        return begin, await end_offsets(consumer, begin)
    finally:
        await consumer.stop()


async def _groups(kafka: KafkaSettings, read: Mapping[str, list[TopicPartition]]) -> dict[str, _Group]:
    admin = AIOKafkaAdminClient(**client_options(kafka))
    try:
        await admin.start()
        return {name: await _group(admin, name, found) for name, found in read.items() if name}
    finally:
        await admin.close()


async def _group(admin: AIOKafkaAdminClient, name: str, found: list[TopicPartition]) -> _Group:
    """Partitions are named: asked for all, the embedded broker answers what cannot be read."""
    for attempt in range(_TRIES):
        try:
            offsets = await admin.list_consumer_group_offsets(name, partitions=found)
            described = await admin.describe_consumer_groups([name])
        except GroupCoordinatorNotAvailableError:
            if attempt == _TRIES - 1:
                raise
            await asyncio.sleep(_PAUSE_S)
        else:
            break
    committed = {at: place.offset for at, place in offsets.items() if place.offset >= 0}
    return _Group(committed, _members(described))


def _members(described: Iterable[Any]) -> dict[TopicPartition, str]:
    """Who has which partition: nobody while a group rebalances, and on the embedded broker, which does not tell."""
    members = (member for answer in described for group in answer.groups for member in group[5])
    return {
        TopicPartition(topic, number): f"{client}@{host.lstrip('/')}"
        for _, client, host, _, assigned, *_ in members
        if assigned
        for topic, numbers in ConsumerProtocolMemberAssignment.decode(assigned).assignment
        for number in numbers
    }
