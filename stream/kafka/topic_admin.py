"""Create topics; existing ones stay as they are, and differences are reported."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.stream.kafka.broker_check import no_answer_message
from ragtide.stream.kafka.client import client_options
from ragtide.stream.settings.otel import OtelSettings
from ragtide.stream.settings.sections import KafkaSettings

_TIMEOUT_MS = 10_000
_RETENTION = "retention.ms"
_MOST_REPLICAS = 3
COMPACTED: Mapping[str, str] = {"cleanup.policy": "compact"}


class TopicSpec(NamedTuple):
    """Properties of a new topic; `configs` are Kafka's own names and values."""

    partitions: int
    replicas: int
    configs: Mapping[str, str]


class TopicResult(NamedTuple):
    """A topic, whether it was created now, and how it differs from its spec; empty: not at all."""

    topic: str
    is_new: bool
    differences: tuple[str, ...]


async def create_topics(kafka: KafkaSettings, wanted: Mapping[str, TopicSpec]) -> list[TopicResult]:
    """Create missing topics. Raises `ConfigError` if brokers refuse one, `Transient` if none answers."""
    admin = AIOKafkaAdminClient(**client_options(kafka))
    try:
        await admin.start()
        made = await _create(admin, wanted)
        there = {each["topic"]: each["partitions"] for each in await admin.describe_topics(list(wanted))}
        return [
            TopicResult(name, name in made, () if name in made else await _differences(admin, name, shape, there[name]))
            for name, shape in wanted.items()
        ]
    except (KafkaError, TimeoutError) as error:
        raise Transient(no_answer_message(kafka, error)) from None
    finally:
        await admin.close()


async def create_compacted(kafka: KafkaSettings, topic: str) -> None:
    """Create a compacted topic with one partition and up to three replicas, if it is missing.

    Raises `ConfigError` if brokers refuse it, `Transient` if none answers.
    """
    admin = AIOKafkaAdminClient(**client_options(kafka))
    try:
        await admin.start()
        brokers = len((await admin.describe_cluster())["brokers"])
        await _create(admin, {topic: TopicSpec(1, min(_MOST_REPLICAS, brokers), COMPACTED)})
    except (KafkaError, TimeoutError) as error:
        raise Transient(no_answer_message(kafka, error)) from None
    finally:
        await admin.close()


async def _create(admin: AIOKafkaAdminClient, wanted: Mapping[str, TopicSpec]) -> set[str]:
    topics = [
        NewTopic(name, shape.partitions, shape.replicas, topic_configs=dict(shape.configs))
        for name, shape in wanted.items()
    ]
    answer = await admin.create_topics(topics, timeout_ms=_TIMEOUT_MS)
    made = set()
    for name, code, *messages in answer.topic_errors:
        if not code:
            made.add(name)
        elif for_code(code) is not TopicAlreadyExistsError:
            reason = next(filter(None, messages), for_code(code).__name__)
            raise ConfigError(f"the brokers refuse to create topic {name}: {reason}")
    return made


async def _differences(
    admin: AIOKafkaAdminClient, name: str, shape: TopicSpec, found: Sequence[Mapping[str, Any]]
) -> tuple[str, ...]:
    config = {"partitions": str(len(found)), "replicas": str(min(len(one["replicas"]) for one in found))}
    wanted_config = {"partitions": str(shape.partitions), "replicas": str(shape.replicas), **shape.configs}
    if shape.configs:
        resource = ConfigResource(ConfigResourceType.TOPIC, name, configs=dict.fromkeys(shape.configs, ""))
        for answer in await admin.describe_configs([resource]):
            for *_, entries in answer.resources:
                config |= {entry[0]: entry[1] for entry in entries}
    return tuple(
        f"{key} {config.get(key, 'unknown')} instead of {value}"
        for key, value in wanted_config.items()
        if config.get(key) != value
    )


def wanted_topics(
    kafka: KafkaSettings, named: Sequence[str], partitions: int, replicas: int, retention_ms: int | None
) -> dict[str, TopicSpec]:
    """Specs of every topic that ragtide reads by name or writes; the jobs' topic has exactly one partition.

    Topics of problems and insights are compacted, so that they keep the latest state of each.
    """
    configs = {"max.message.bytes": str(kafka.largest_request)}
    if retention_ms is not None:
        configs[_RETENTION] = str(retention_ms)
    shapes = {name: TopicSpec(partitions, replicas, configs) for name in named}
    shapes |= {name: TopicSpec(1, replicas, configs) for name in (kafka.dead_letter_topic, kafka.labels_topic) if name}
    shapes |= {name: TopicSpec(1, replicas, COMPACTED) for name in kafka.state_topics}
    return {**shapes, kafka.jobs_topic: TopicSpec(1, replicas, {})}


def wanted_export_topic(
    kafka: KafkaSettings, topic: str, partitions: int, replicas: int, retention_ms: int | None
) -> dict[str, TopicSpec]:
    """Spec of the topic of scores as OpenTelemetry events, if there is one."""
    configs = {"max.message.bytes": str(kafka.largest_request)}
    if retention_ms is not None:
        configs[_RETENTION] = str(retention_ms)
    return {topic: TopicSpec(partitions, replicas, configs)} if topic else {}


def wanted_span_topics(
    kafka: KafkaSettings, otel: OtelSettings, partitions: int, replicas: int, retention_ms: int | None
) -> dict[str, TopicSpec]:
    """Specs of the topics of stage assemble. Timestamps of kafka.spans_topic are the brokers': they complete traces."""
    configs = {"max.message.bytes": str(kafka.largest_request)}
    if retention_ms is not None:
        configs[_RETENTION] = str(retention_ms)
    shapes = {name: TopicSpec(partitions, replicas, configs) for name in (*otel.topics, *otel.log_topics)}
    own = TopicSpec(partitions, replicas, {**configs, "message.timestamp.type": "LogAppendTime"})
    return {**shapes, kafka.spans_topic: own}
