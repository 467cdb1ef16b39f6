"""How far every consumer group is in its topics, as the brokers have it; nothing is committed and no group joined."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import GroupCoordinatorNotAvailableError, KafkaError

from evaluators.errors import ConfigError, Transient
from evaluators.spec import Lane
from stream.configuration.sections import KafkaSettings
from stream.kafka.brokers import no_answer, partitions, topics_read
from stream.kafka.client import client_options
from stream.kafka.ending import end
from stream.kafka.ends import end_offsets
from stream.kafka.waiting import waiting_since

_TRIES = 25  # a fresh cluster makes its topic of offsets when first asked
_PAUSE_S = 0.2
_FETCH_BYTES = 64 << 10  # of each partition: one record of it is looked at


@dataclass(frozen=True, slots=True)
class Standing:
    """A partition, and where a group is in it. Offsets; `group` is empty for a topic that none reads.

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
class _Group:
    committed: Mapping[TopicPartition, int]
    members: Mapping[TopicPartition, str]


_NOBODY = _Group({}, {})


def groups_of(kafka: KafkaSettings, known: Iterable[str]) -> dict[str, Sequence[str]]:
    """Which topics each group of workers reads, one per lane, and that of labels where their topic is `known`."""
    known = list(known)
    read = topics_read(kafka, known)
    groups: dict[str, Sequence[str]] = {kafka.group(lane): read for lane in get_args(Lane)}
    if kafka.labels_topic in known:
        groups[kafka.group("labels")] = (kafka.labels_topic,)
    return groups


def that_ran(found: Iterable[Standing]) -> set[str]:
    """The groups of which offsets or members are known."""
    return {one.group for one in found if one.committed is not None or one.member}


async def standings(
    kafka: KafkaSettings, topics: Mapping[str, Sequence[str]], clock: Callable[[], float] = time.time
) -> list[Standing]:
    """Of each group's topics, by group and partition. Raises `Transient`, or `ConfigError` for a missing topic.

    `clock` gives seconds since 1970.
    """
    known = await partitions(kafka)
    names = list(dict.fromkeys(name for group in topics.values() for name in group))
    if missing := [name for name in names if name not in known]:
        named = ", ".join(missing)
        raise ConfigError(f"Kafka at {kafka.bootstrap_servers} has no topic {named}: `ragwatch topics create` makes it")
    found = [TopicPartition(name, number) for name in names for number in range(known[name])]
    options = {"enable_auto_commit": False, "auto_offset_reset": "earliest", "max_partition_fetch_bytes": _FETCH_BYTES}
    consumer = AIOKafkaConsumer(group_id=None, **options, **client_options(kafka))
    try:
        await consumer.start()
        consumer.assign(found)
        begin = await consumer.beginning_offsets(found)
        ends = await end_offsets(consumer, begin)
        groups = await _groups(kafka, {group: [at for at in found if at.topic in topics[group]] for group in topics})
        stand: list[Standing] = []
        for group, read in topics.items():
            known_of = groups.get(group, _NOBODY)
            told = [_standing(group, at, begin[at], ends[at], known_of) for at in found if at.topic in read]
            stand += await _aged(consumer, told, clock)
        return stand
    except KafkaError as error:
        raise Transient(no_answer(kafka, error)) from None
    finally:
        await end(consumer)


def _standing(group: str, at: TopicPartition, begin: int, end: int, known: _Group) -> Standing:
    committed = known.committed.get(at)
    lag = max(0, end - max(begin, committed or 0)) if group else None
    lag_s = 0.0 if lag == 0 else None
    return Standing(group, at.topic, at.partition, begin, end, committed, lag, lag_s, known.members.get(at, ""))


async def _aged(consumer: AIOKafkaConsumer, stand: list[Standing], clock: Callable[[], float]) -> list[Standing]:
    """The same, with how long the oldest record has waited where some do."""
    behind = {TopicPartition(one.topic, one.partition): one for one in stand if one.lag}
    if not behind:
        return stand
    places = {at: max(one.begin, one.committed or 0) for at, one in behind.items()}
    since = await waiting_since(consumer, places, {at: one.end for at, one in behind.items()})
    now = clock()
    ages = {behind[at]: max(0.0, now - sent) for at, sent in since.items()}
    return [replace(one, lag_s=ages.get(one, one.lag_s)) for one in stand]


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
