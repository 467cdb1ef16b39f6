"""Kafka decides who leads; every term has an epoch of its own."""

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

from ragtide.drift.leadership import Term, elect
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database, Row
from ragtide.stream.kafka.leader import KafkaLeadership
from ragtide.stream.local.broker import EmbeddedBroker
from ragtide.stream.local.topics import create_topics
from ragtide.stream.settings.sections import KafkaSettings
from tests.infra.kafka_node import KafkaNode

pytestmark = pytest.mark.clickhouse
_PATIENCE_S = 60.0
Found = TypeVar("Found")


def _settings(bootstrap: str) -> KafkaSettings:
    name = uuid.uuid4().hex[:8]
    return KafkaSettings(
        bootstrap_servers=bootstrap,
        jobs_topic=f"jobs-{name}",
        group_prefix=f"ragtide-{name}",
        session_timeout_s=6,
        heartbeat_s=1,
        rebalance_timeout_s=8,
    )


def _until(found: Callable[[], Found | None]) -> Found:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        result = found()
        if result is not None and result is not False:
            return result
        time.sleep(0.1)
    raise AssertionError(f"not within {_PATIENCE_S:g} s")


def _one_leads_and_another_takes_over(settings: KafkaSettings, database: Database) -> None:
    first, second = KafkaLeadership(settings, database), KafkaLeadership(settings, database)
    try:
        first.start()
        term = _until(first.term)
        assert first.term() is term  # asked again it is the same term, not a new epoch
        second.start()
        one = _until(lambda: first.term() or second.term())
        leader, other = (first, second) if first.term() is not None else (second, first)
        assert other.term() is None
        leader.stop()
        assert leader.term() is None
        next_term = _until(other.term)
        assert next_term.epoch > one.epoch >= term.epoch
        epochs = [row["epoch"] for row in database.rows("SELECT epoch FROM leaders FINAL ORDER BY epoch")]
        assert epochs == sorted(set(epochs))
    finally:
        first.stop()
        second.stop()


@pytest.mark.broker
def test_leadership_on_the_embedded_broker(broker: EmbeddedBroker, database: Database) -> None:
    _one_leads_and_another_takes_over(_settings(broker.bootstrap), database)


@pytest.mark.kafka
def test_leadership_on_apache_kafka(kafka: KafkaNode, database: Database) -> None:
    _one_leads_and_another_takes_over(_settings(kafka.bootstrap), database)


@pytest.mark.broker
def test_while_the_brokers_are_away_nobody_can_be_elected(database: Database) -> None:
    with EmbeddedBroker() as broker:
        leadership = KafkaLeadership(_settings(broker.bootstrap), database)
        assert leadership.trouble().endswith(f"{broker.bootstrap} (kafka.bootstrap_servers) yet")
        leadership.start()
        try:
            _until(leadership.term)
            assert leadership.trouble() == ""
            broker.stop()
            _until(lambda: leadership.trouble() != "")
            for said in ("no leader of the jobs can be elected", broker.bootstrap, "kafka.bootstrap_servers"):
                assert said in leadership.trouble()
            with EmbeddedBroker(broker.port):
                _until(lambda: leadership.trouble() == "")
        finally:
            leadership.stop()


@pytest.mark.kafka
def test_a_topic_of_several_partitions_ends_the_election_with_what_to_do(kafka: KafkaNode, database: Database) -> None:
    settings = _settings(kafka.bootstrap)
    asyncio.run(create_topics(kafka.bootstrap, {settings.jobs_topic: 2}))
    ended = threading.Event()
    leadership = KafkaLeadership(settings, database, ended.set)
    leadership.start()
    try:
        assert ended.wait(_PATIENCE_S)
        assert isinstance(leadership.failure, ConfigError)
        assert f"{settings.jobs_topic} has 2 partitions and needs exactly 1" in str(leadership.failure)
        assert "name another with kafka.jobs_topic" in leadership.trouble()
        assert leadership.term() is None
    finally:
        leadership.stop()


def test_an_epoch_is_the_highest_plus_one(database: Database) -> None:
    first, second = elect(database, "a", sleep=_never), elect(database, "b", sleep=_never)
    assert (first.epoch, second.epoch) == (1, 2)
    assert second.next_version() > first.next_version()
    assert second.elected_at >= first.elected_at


def test_candidates_at_the_same_moment_get_different_epochs(database: Database) -> None:
    """Both read the same highest epoch and write the next one; what they read back tells them."""
    both = threading.Barrier(2)
    terms: list[Term] = []

    class Slow(Database):
        """Waits for the other candidate before its first row is written."""

        waits = True

        def insert(self, table: str, rows: Sequence[Row]) -> None:
            if self.waits:
                self.waits = False
                both.wait(10)
                super().insert(table, rows)
                both.wait(10)
            else:
                super().insert(table, rows)

    def stand(name: str, pause_s: float) -> None:
        own = Slow(database.settings)
        terms.append(elect(own, name, sleep=lambda _: time.sleep(pause_s)))
        own.close()

    threads = [threading.Thread(target=stand, args=(name, pause)) for name, pause in (("a", 0.0), ("b", 1.0))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(terms) == 2
    assert terms[0].epoch != terms[1].epoch
    assert min(term.epoch for term in terms) > 1


def test_jobs_that_ask_at_once_take_one_term(database: Database) -> None:
    leadership = KafkaLeadership(KafkaSettings(), database)
    leadership.set_owner(True)
    at_once = threading.Barrier(4)
    terms: list[Term | None] = []

    def asks() -> None:
        at_once.wait(10)
        terms.append(leadership.term())

    threads = [threading.Thread(target=asks) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(terms) == 4
    assert {id(term) for term in terms} == {id(leadership.term())}
    assert database.rows("SELECT count() AS n FROM leaders") == [{"n": 1}]


def _never(seconds: float) -> None:
    raise AssertionError("nobody else stood")
