"""How long the oldest record waits for each group, beside how long the brokers keep it."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from drift.kinds.retention import Wait
from evaluators.errors import Transient
from stream.configuration.sections import KafkaSettings
from stream.kafka.brokers import no_answer, partitions
from stream.kafka.client import client_options
from stream.kafka.standing import Standing, groups_of, standings, that_ran

_RETENTION, _POLICY = "retention.ms", "cleanup.policy"


async def waits(kafka: KafkaSettings, clock: Callable[[], float] = time.time) -> list[Wait]:
    """Of every group that ever read, in each topic of traces or labels from which records are deleted.

    Raises `Transient` where no broker answers. `clock` gives seconds since 1970.
    """
    known = await partitions(kafka)
    groups = groups_of(kafka, known)
    read = dict.fromkeys(topic for topics in groups.values() for topic in topics if topic in known)
    kept_s = await retentions(kafka, read)
    deleted = {group: [topic for topic in topics if topic in kept_s] for group, topics in groups.items()}
    if not kept_s:
        return []
    found = await standings(kafka, {group: topics for group, topics in deleted.items() if topics}, clock)
    ran = that_ran(found)
    places: dict[tuple[str, str], list[Standing]] = {}
    for one in found:
        if one.group in ran:
            places.setdefault((one.group, one.topic), []).append(one)
    return [Wait(group, topic, _oldest(some), kept_s[topic]) for (group, topic), some in places.items()]


async def retentions(kafka: KafkaSettings, topics: Iterable[str]) -> Mapping[str, float]:
    """Seconds that the brokers keep records of each topic; left out where for ever, or where they do not say."""
    # All of them: asked for some, the embedded broker hangs up.
    asked = [ConfigResource(ConfigResourceType.TOPIC, topic) for topic in topics]
    admin = AIOKafkaAdminClient(**client_options(kafka))
    try:
        await admin.start()
        answers = await admin.describe_configs(asked) if asked else []
    except KafkaError as error:
        raise Transient(no_answer(kafka, error)) from None
    finally:
        await admin.close()
    said = {name: {entry[0]: entry[1] for entry in entries} for one in answers for *_, name, entries in one.resources}
    kept = {
        name: int(has.get(_RETENTION) or -1) for name, has in said.items() if "delete" in has.get(_POLICY, "delete")
    }
    return {name: milliseconds / 1000 for name, milliseconds in kept.items() if milliseconds > 0}


def _oldest(some: Sequence[Standing]) -> float | None:
    """None where nobody can tell of any partition in which records wait."""
    ages = [one.lag_s for one in some if one.lag_s is not None]
    unknown = any(one.lag_s is None for one in some)
    oldest = max(ages, default=None)
    return None if unknown and not oldest else oldest
