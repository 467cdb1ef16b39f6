"""Whether the brokers answer and have the topics, said in one line."""

from collections.abc import Mapping

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError

from evaluators.errors import Transient
from stream.configuration.sections import KafkaSettings
from stream.kafka.client import client_options


async def partitions(kafka: KafkaSettings) -> Mapping[str, int]:
    """How many partitions each topic has; asks in a way that makes no topic. Raises `Transient`, or `ConfigError`."""
    client = AIOKafkaClient(**client_options(kafka))
    try:
        await client.bootstrap()
        cluster = await client.fetch_all_metadata()
        return {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in cluster.topics()}
    except KafkaError as error:
        raise Transient(
            f"no broker answers at {kafka.bootstrap_servers} (kafka.bootstrap_servers): {type(error).__name__}"
        ) from None
    finally:
        await client.close()


async def check_topics(kafka: KafkaSettings) -> str:
    """What was reached; raises `Transient` while no broker answers or a topic does not exist, `ConfigError` for files.

    A topic that does not exist yet is waited for: whoever makes it may start after us.
    """
    known = await partitions(kafka)
    if missing := [topic for topic in kafka.topics if topic not in known]:
        raise Transient(f"the brokers at {kafka.bootstrap_servers} have no topic {', '.join(missing)}: create it")
    told = ", ".join(counted(topic, known[topic]) for topic in kafka.topics)
    return f"Kafka at {kafka.bootstrap_servers}: {told}"


def counted(topic: str, count: int) -> str:
    """A topic and its partitions, as people read it."""
    return f"{topic} ({count} partition{'' if count == 1 else 's'})"
