"""Positions of consumer groups in their topics, from the brokers. Commits nothing and joins no group."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import GroupCoordinatorNotAvailableError, KafkaError

from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.evaluators.spec import Lane
from ragtide.stream.kafka.batches import consumer_of
from ragtide.stream.kafka.broker_check import no_answer_message, partition_counts, topics_read
from ragtide.stream.kafka.client import client_options
from ragtide.stream.kafka.end_offsets import end_offsets
from ragtide.stream.kafka.record_age import oldest_record_times
from ragtide.stream.kafka.shutdown import stop_consumer
from ragtide.stream.settings.sections import KafkaSettings

_TRIES = 25  # a fresh cluster makes its topic of offsets when first asked
_PAUSE_S = 0.2
_FETCH_BYTES = 64 << 10  # of each partition: one record of it is read


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """Position of a group in a partition, in offsets; `group` is empty for a topic without readers.

    `lag` counts records from what was committed, or from the beginning where nothing was; `lag_s` is how long the
    oldest of them has waited by its timestamp, None where nobody can tell. `member`: client and host.
    """

    group: str
    topic: str
    partition: int
    begin: int
    end: int
    committed: int | None
    lag: int | None
    lag_s: float | None
    member: str


@dataclass(frozen=True, slots=True)
class GroupState:
    """Committed offsets of partitions, and their members."""

    committed: Mapping[TopicPartition, int]
    members: Mapping[TopicPartition, str]


_UNKNOWN_GROUP = GroupState({}, {})


def topics_by_group(kafka: KafkaSettings, known: Iterable[str]) -> dict[str, Sequence[str]]:
    """Topics by group: one group per lane, and that of labels if its topic is `known`."""
    known = list(known)
    read = topics_read(kafka, known)
    groups: dict[str, Sequence[str]] = {kafka.group(lane): read for lane in get_args(Lane)}
    if kafka.labels_topic in known:
        groups[kafka.group("labels")] = (kafka.labels_topic,)
    return groups


def active_groups(found: Iterable[GroupPosition]) -> set[str]:
    """Groups with offsets or members."""
    return {one.group for one in found if one.committed is not None or one.member}


async def group_positions(
    kafka: KafkaSettings, topics: Mapping[str, Sequence[str]], clock: Callable[[], float] = time.time
) -> list[GroupPosition]:
    """Positions by group and partition. Raises `Transient`, or `ConfigError` for a missing topic.

    `clock` gives seconds since 1970.
    """
    known = await partition_counts(kafka)
    names = list(dict.fromkeys(name for group in topics.values() for name in group))
    if missing := [name for name in names if name not in known]:
        named = ", ".join(missing)
        raise ConfigError(f"Kafka at {kafka.bootstrap_servers} has no topic {named}: `ragtide topics create` makes it")
    found = [TopicPartition(name, number) for name in names for number in range(known[name])]
    consumer = consumer_of(
        kafka,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=_FETCH_BYTES,
    )
    try:
        await consumer.start()
        consumer.assign(found)
        begin = await consumer.beginning_offsets(found)
        ends = await end_offsets(consumer, begin)
        groups = await read_groups(
            kafka, {group: [at for at in found if at.topic in topics[group]] for group in topics}
        )
        positions: list[GroupPosition] = []
        for group, read in topics.items():
            known_of = groups.get(group, _UNKNOWN_GROUP)
            of_group = [_position(group, at, begin[at], ends[at], known_of) for at in found if at.topic in read]
            positions += await _with_lag_age(consumer, of_group, clock)
        return positions
    except KafkaError as error:
        raise Transient(no_answer_message(kafka, error)) from None
    finally:
        await stop_consumer(consumer)


def _position(group: str, at: TopicPartition, begin: int, end: int, known: GroupState) -> GroupPosition:
    committed = known.committed.get(at)
    lag = max(0, end - max(begin, committed or 0)) if group else None
    lag_s = 0.0 if lag == 0 else None
    return GroupPosition(group, at.topic, at.partition, begin, end, committed, lag, lag_s, known.members.get(at, ""))


async def _with_lag_age(
    consumer: AIOKafkaConsumer, positions: list[GroupPosition], clock: Callable[[], float]
) -> list[GroupPosition]:
    """Add the age of the oldest unread record."""
    behind = {TopicPartition(one.topic, one.partition): one for one in positions if one.lag}
    if not behind:
        return positions
    offsets = {at: max(one.begin, one.committed or 0) for at, one in behind.items()}
    since = await oldest_record_times(consumer, offsets, {at: one.end for at, one in behind.items()})
    now = clock()
    ages = {behind[at]: max(0.0, now - sent) for at, sent in since.items()}
    return [replace(one, lag_s=ages.get(one, one.lag_s)) for one in positions]


async def read_groups(kafka: KafkaSettings, read: Mapping[str, list[TopicPartition]]) -> dict[str, GroupState]:
    """Read committed offsets and members of these partitions for each group. Raises `KafkaError`."""
    admin = AIOKafkaAdminClient(**client_options(kafka))
    try:
        await admin.start()
        return {name: await _read_group(admin, name, found) for name, found in read.items() if name}
    finally:
        await admin.close()


async def _read_group(admin: AIOKafkaAdminClient, name: str, found: list[TopicPartition]) -> GroupState:
    """Partitions are named: the embedded broker's answer for all of them cannot be read."""
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
    committed = {at: entry.offset for at, entry in offsets.items() if entry.offset >= 0}
    return GroupState(committed, _members(described))


def _members(described: Iterable[Any]) -> dict[TopicPartition, str]:
    """Members by partition: none while a group rebalances, or on the embedded broker, which reports none."""
    members = (member for answer in described for group in answer.groups for member in group[5])
    return {
        TopicPartition(topic, number): f"{client}@{host.lstrip('/')}"
        for _, client, host, _, assigned, *_ in members
        if assigned
        for topic, numbers in ConsumerProtocolMemberAssignment.decode(assigned).assignment
        for number in numbers
    }
