"""Whether the brokers answer and have the topics, said in one line."""

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError

from evaluators.errors import Transient
from stream.kafka_client import client_options
from stream.sections import KafkaSettings


async def check_topics(kafka: KafkaSettings) -> str:
    """What was reached; raises `Transient` while no broker answers or a topic does not exist, `ConfigError` for files.

    A topic that does not exist yet is waited for: whoever makes it may start after us.
    """
    client = AIOKafkaClient(**client_options(kafka))
    try:
        await client.bootstrap()
        await client.set_topics(kafka.topics)
        known = client.cluster.topics()
        partitions = {topic: len(client.cluster.partitions_for_topic(topic) or ()) for topic in kafka.topics}
    except KafkaError as error:
        raise Transient(
            f"no broker answers at {kafka.bootstrap_servers} (kafka.bootstrap_servers): {type(error).__name__}"
        ) from None
    finally:
        await client.close()
    missing = [topic for topic in kafka.topics if topic not in known]
    if missing:
        raise Transient(f"the brokers at {kafka.bootstrap_servers} have no topic {', '.join(missing)}: create it")
    told = ", ".join(f"{topic} ({count} partitions)" for topic, count in partitions.items())
    return f"Kafka at {kafka.bootstrap_servers}: {told}"
