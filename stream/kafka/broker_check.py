"""Check that the brokers answer and have the topics, with one line for people."""

from collections.abc import Iterable, Mapping, Sequence

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError

from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.stream.kafka.client import client_options
from ragtide.stream.kafka.connection_errors import Address, connection_error
from ragtide.stream.settings.sections import KafkaSettings
from ragtide.stream.settings.topics import PATTERN_MARK


async def partition_counts(kafka: KafkaSettings) -> Mapping[str, int]:
    """Number of partitions by topic; creates no topic.

    Raises `ConfigError` where user, token or certificates are refused, else `Transient`.
    """
    client = AIOKafkaClient(**client_options(kafka))
    try:
        await client.bootstrap()
        cluster = await client.fetch_all_metadata()
        return {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in cluster.topics()}
    except KafkaError as error:
        advertised = [Address(broker.host, broker.port) for broker in client.cluster.brokers()]
        raise await connection_error(kafka, advertised) or Transient(no_answer_message(kafka, error)) from None
    finally:
        await client.close()


def topics_read(kafka: KafkaSettings, known: Iterable[str], entries: Sequence[str] = ()) -> list[str]:
    """Topics of `entries` (default: kafka.topics): all named ones, and the matches of patterns."""
    entries = entries or kafka.topics
    matches = kafka.pattern(*entries).match
    named = [entry for entry in entries if not entry.startswith(PATTERN_MARK)]
    return list(dict.fromkeys([*named, *sorted(topic for topic in known if matches(topic))]))


def no_topics_message(kafka: KafkaSettings, known: Iterable[str]) -> str:
    """Message if all of kafka.topics are patterns and no topic matches; empty if there are topics."""
    if topics_read(kafka, known):
        return ""
    patterns = ", ".join(kafka.topics)
    return f"the brokers at {kafka.bootstrap_servers} have no topic that matches {patterns}{permission_hint(kafka)}"


async def check_topics(kafka: KafkaSettings, command: str = "ragtide topics create") -> str:
    """Check the topics and describe them; raise `Transient` while no broker answers or a topic is missing.

    A missing topic is `Transient`, because it may be created later, by `command`. Other faults are `ConfigError`.
    """
    known = await partition_counts(kafka)
    if message := no_topics_message(kafka, known):
        raise Transient(message)
    read = topics_read(kafka, known)
    if missing := [topic for topic in read if topic not in known]:
        raise Transient(
            f"the brokers at {kafka.bootstrap_servers} have no topic {', '.join(missing)}{permission_hint(kafka)}: "
            f"`{command}` makes it"
        )
    listed = ", ".join(describe_topic(topic, known[topic]) for topic in read)
    return f"Kafka at {kafka.bootstrap_servers}: {listed}"


def check_jobs_topic(topic: str, count: int) -> None:
    """Raise `ConfigError` if a topic with this number of partitions cannot elect a leader."""
    if count > 1:
        raise ConfigError(
            f"{topic} has {count} partitions and needs exactly 1: its owner leads the jobs; "
            "delete it and create it again, or name another with kafka.jobs_topic"
        )


def no_answer_message(kafka: KafkaSettings, error: BaseException) -> str:
    """Message if no broker answers."""
    return f"{unreachable_message(kafka)}: {type(error).__name__}"


def unreachable_message(kafka: KafkaSettings) -> str:
    """Message if no broker answers, and the reason is unknown."""
    return f"no broker answers at {kafka.bootstrap_servers} (kafka.bootstrap_servers)"


def describe_topic(topic: str, count: int) -> str:
    """Describe a topic and its partitions."""
    return f"{topic} ({count} partition{'' if count == 1 else 's'})"


def permission_hint(kafka: KafkaSettings) -> str:
    """Hint at the other reason for a missing topic: brokers hide what a user may not describe."""
    return "" if kafka.security_protocol == "PLAINTEXT" else " (or this user may not describe it)"
