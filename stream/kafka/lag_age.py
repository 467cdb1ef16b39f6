"""Age of the oldest unread record of each group, and retention of its topic."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from ragtide.drift.checks import GroupLag
from ragtide.evaluators.errors import Transient
from ragtide.stream.kafka.broker_check import no_answer_message, partition_counts
from ragtide.stream.kafka.client import client_options
from ragtide.stream.kafka.consumer_groups import GroupPosition, active_groups, group_positions, topics_by_group
from ragtide.stream.settings.sections import KafkaSettings

_RETENTION, _POLICY = "retention.ms", "cleanup.policy"


async def group_lags(kafka: KafkaSettings, clock: Callable[[], float] = time.time) -> list[GroupLag]:
    """Lag age of every group that ever read, in each topic of traces or labels with a retention.

    Raises `Transient` where no broker answers. `clock` gives seconds since 1970.
    """
    known = await partition_counts(kafka)
    groups = topics_by_group(kafka, known)
    read = dict.fromkeys(topic for topics in groups.values() for topic in topics if topic in known)
    retention_s = await retentions(kafka, read)
    deleted = {group: [topic for topic in topics if topic in retention_s] for group, topics in groups.items()}
    if not retention_s:
        return []
    found = await group_positions(kafka, {group: topics for group, topics in deleted.items() if topics}, clock)
    ran = active_groups(found)
    by_topic: dict[tuple[str, str], list[GroupPosition]] = {}
    for one in found:
        if one.group in ran:
            by_topic.setdefault((one.group, one.topic), []).append(one)
    return [GroupLag(group, topic, _oldest(some), retention_s[topic]) for (group, topic), some in by_topic.items()]


async def retentions(kafka: KafkaSettings, topics: Iterable[str]) -> Mapping[str, float]:
    """Retention of each topic in seconds; topics without one, or with an unknown one, are left out."""
    configs = await _configs(kafka, topics)
    retention_ms = {name: int(has.get(_RETENTION) or -1) for name, has in configs.items() if "delete" in _policies(has)}
    return {name: milliseconds / 1000 for name, milliseconds in retention_ms.items() if milliseconds > 0}


async def is_compacted(kafka: KafkaSettings, topic: str) -> bool:
    """Whether the brokers compact the topic; False if unknown.

    A compacted topic keeps only the newest record of each key. Raises `Transient` if no broker answers.
    """
    configs = await _configs(kafka, [topic])
    return "compact" in _policies(configs.get(topic, {}))


async def _configs(kafka: KafkaSettings, topics: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
    """Return the settings of each topic, as far as the brokers tell them."""
    # All of them: asked for some, the embedded broker hangs up.
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic) for topic in topics]
    admin = AIOKafkaAdminClient(**client_options(kafka))
    try:
        await admin.start()
        answers = await admin.describe_configs(resources) if resources else []
    except KafkaError as error:
        raise Transient(no_answer_message(kafka, error)) from None
    finally:
        await admin.close()
    return {name: {entry[0]: entry[1] for entry in entries} for one in answers for *_, name, entries in one.resources}


def _policies(config: Mapping[str, str]) -> Sequence[str]:
    return config.get(_POLICY, "delete").split(",")


def _oldest(some: Sequence[GroupPosition]) -> float | None:
    """None where nobody can tell of any partition in which records wait."""
    ages = [one.lag_s for one in some if one.lag_s is not None]
    unknown = any(one.lag_s is None for one in some)
    oldest = max(ages, default=None)
    return None if unknown and not oldest else oldest
