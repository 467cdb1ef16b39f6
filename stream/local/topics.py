"""Topics on a fresh broker."""

from collections.abc import Mapping

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.settings.loader import Settings
from ragtide.stream.settings.sections import KafkaSettings
from ragtide.stream.settings.topics import PATTERN_MARK

_TIMEOUT_MS = 10_000
_PARTITIONS = 2  # of a topic of traces, on one machine


def topics_of(kafka: KafkaSettings) -> dict[str, int]:
    """Every topic that ragtide reads or writes, and its number of partitions here."""
    others = [kafka.dead_letter_topic, kafka.jobs_topic, *filter(None, [kafka.labels_topic]), *kafka.state_topics]
    named = [entry for entry in kafka.topics if not entry.startswith(PATTERN_MARK)]
    return {**dict.fromkeys(named, _PARTITIONS), **dict.fromkeys(others, 1)}


def span_topics_of(settings: Settings) -> dict[str, int]:
    """Every topic that stage `assemble` alone reads, and its number of partitions here."""
    otel = settings.otel
    return dict.fromkeys((*otel.topics, *otel.log_topics, settings.kafka.spans_topic), _PARTITIONS)


async def create_topics(bootstrap: str, partitions: Mapping[str, int]) -> None:
    """Create missing topics with the given partitions; raise ConfigError on failure."""
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic
    from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        await client.start()
        wanted = [NewTopic(name, count, 1) for name, count in partitions.items()]
        response = await client.create_topics(wanted, timeout_ms=_TIMEOUT_MS)
    except KafkaError as error:
        raise ConfigError(f"cannot create topics on {bootstrap}: {type(error).__name__}") from error
    finally:
        await client.close()
    for name, code, *_ in response.topic_errors:
        if code and for_code(code) is not TopicAlreadyExistsError:
            raise ConfigError(f"cannot create the topic {name} on {bootstrap}: {for_code(code).__name__}")
