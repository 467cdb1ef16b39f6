"""Every client of ours, by every way of proving who it is: consumer, producer, admin, metadata, group, commands."""

import asyncio
import random
import time
import uuid
from collections.abc import Callable
from contextlib import aclosing
from itertools import islice
from typing import Any

import pytest
from click.testing import CliRunner

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.settings import ClickHouseSettings
from ragtide.stream.cli import main
from ragtide.stream.connectivity_checks import ConnectivityCheck, run_checks
from ragtide.stream.ingest.records import DeadLetter, StoredRecord
from ragtide.stream.kafka.broker_check import check_topics
from ragtide.stream.kafka.consumer_groups import group_positions
from ragtide.stream.kafka.leader import KafkaLeadership
from ragtide.stream.replay.topic import TopicSource
from ragtide.stream.settings.environment import variable_of
from ragtide.stream.settings.loader import Loaded, Settings
from ragtide.stream.settings.sections import KafkaSettings
from ragtide.stream.worker.dead_letters import DeadLetters
from tests.infra.secured_certificates import KEY_PASSWORD
from tests.infra.secured_node import BYSTANDER, SecuredNode
from tests.stream.core.traffic import eventually, make_topics, read, send, trace

pytestmark = pytest.mark.kafka

RECORDS = 10
WAYS: dict[str, Callable[[SecuredNode], dict[str, Any]]] = {
    "PLAIN": lambda node: node.by_user("PLAIN"),
    "SCRAM-SHA-256": lambda node: node.by_user("SCRAM-SHA-256"),
    "SCRAM-SHA-512": lambda node: node.by_user("SCRAM-SHA-512"),
    "OAUTHBEARER": lambda node: node.by_token(),
    "certificate": lambda node: node.by_certificate(),
    "certificate with a locked key": lambda node: {
        **node.by_certificate(),
        "ssl_key_file": str(node.certificates.locked_key),
        "ssl_key_password": KEY_PASSWORD,
    },
    "PLAIN without TLS": lambda node: node.in_the_clear(),
}


@pytest.fixture(scope="module")
def names(secured: SecuredNode) -> dict[str, Any]:
    """Topics with records."""
    topic = f"rag.{uuid.uuid4().hex[:8]}"
    make_topics(secured, {topic: 1, **dict.fromkeys((f"{topic}.dead-{n}" for n in range(len(WAYS))), 1)})
    send(secured, topic, [(None, trace(f"t{n}")) for n in range(RECORDS)])
    return {
        "topics": [topic],
        "dead_letter_topic": f"{topic}.dead-0",
        "group_prefix": topic,
    }


async def _used(kafka: KafkaSettings) -> list[bytes | None]:
    """The traces that a replay reads, after every other client had its turn."""
    [topic] = kafka.topics
    assert await check_topics(kafka) == f"Kafka at {kafka.bootstrap_servers}: {topic} (1 partition)"
    [standing] = await group_positions(kafka, {kafka.group("fast"): [topic]})
    assert (standing.end, standing.lag) == (RECORDS, RECORDS)
    letters = DeadLetters(kafka, "fast", random.Random(1))
    await letters.start()
    await letters.send([DeadLetter(StoredRecord(topic, 0, 3, 1, b"key", b"bad", []), "not_json", "decode", "")])
    await letters.stop()
    source = TopicSource(kafka, [topic], None, ahead_s=0, late_s=0, batch_records=100)
    found: list[bytes | None] = []
    async with aclosing(source.read({})) as batches:
        async for batch in batches:
            found += [record.value for record in batch.records]
    return found


@pytest.mark.parametrize("way", WAYS)
def test_every_client_gets_in(secured: SecuredNode, names: dict[str, Any], way: str) -> None:
    own = {"dead_letter_topic": f"{names['topics'][0]}.dead-{list(WAYS).index(way)}"}
    kafka = KafkaSettings.model_validate({**WAYS[way](secured), **names, **own})
    assert len(asyncio.run(_used(kafka))) == RECORDS
    [letter] = read(secured, kafka.dead_letter_topic, 1)
    assert (letter.key, letter.value) == (b"key", b"bad")


@pytest.mark.parametrize("way", ["SCRAM-SHA-512", "OAUTHBEARER"])
def test_a_process_stands_for_election_and_makes_the_topic_of_jobs(
    secured: SecuredNode, names: dict[str, Any], way: str
) -> None:
    own = {"jobs_topic": f"jobs-{uuid.uuid4().hex[:8]}", "group_prefix": uuid.uuid4().hex[:8]}
    kafka = KafkaSettings.model_validate({**WAYS[way](secured), **names, **own})
    leadership = KafkaLeadership(kafka, Database(ClickHouseSettings()))

    def member() -> str:
        [standing] = asyncio.run(group_positions(kafka, {kafka.group("jobs"): [kafka.jobs_topic]}))
        return standing.member

    leadership.start()
    try:
        time.sleep(1.0)
        eventually(lambda: not leadership.trouble() and bool(member()), 20, leadership.trouble)
    finally:
        leadership.stop()


@pytest.mark.parametrize("way", ["SCRAM-SHA-256", "OAUTHBEARER", "certificate"])
def test_the_commands_get_in(secured: SecuredNode, names: dict[str, Any], way: str) -> None:
    settings = {**WAYS[way](secured), **names, "topics": names["topics"][0]}
    variables = {variable_of(("kafka", name)): value for name, value in settings.items()}
    own = names["topics"][0] + ".jobs-" + way
    make_topics(secured, {own: 1})
    told = CliRunner().invoke(main, ["topics"], env={"RAGTIDE_CONFIG": None, **variables, JOBS_TOPIC: own})
    assert told.exit_code == 0, told.output
    assert names["dead_letter_topic"] in told.output


JOBS_TOPIC = variable_of(("kafka", "jobs_topic"))


def kafka_checks(kafka: dict[str, Any]) -> list[ConnectivityCheck]:
    loaded = Loaded(Settings(kafka=KafkaSettings.model_validate(kafka)), {}, None)
    return [check for check in islice(run_checks(loaded), 4) if check.name.startswith("kafka")]


def test_topics_that_a_user_may_not_see_are_not_said_to_be_missing(secured: SecuredNode, names: dict[str, Any]) -> None:
    assert kafka_checks({**secured.by_user("PLAIN"), **names})[0].ok
    unseen = kafka_checks({**secured.by_user("PLAIN"), **names, "sasl_username": BYSTANDER})
    assert [check.ok for check in unseen] == [False] * 3
    assert f"have no topic {names['topics'][0]} (or this user may not describe it)" in unseen[0].message
    assert unseen[0].message.endswith("`ragtide topics create` makes it")
