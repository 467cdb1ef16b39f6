"""Kafka decides who leads the jobs: the owner of the one partition of `rag.jobs` in the group of the jobs."""

import asyncio
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from ragtide.drift.leadership import Term, elect
from ragtide.evaluators.errors import Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.kafka.batches import consumer_of
from ragtide.stream.kafka.broker_check import check_jobs_topic, no_answer_message, partition_counts, unreachable_message
from ragtide.stream.kafka.client import client_options
from ragtide.stream.kafka.shutdown import stop_consumer
from ragtide.stream.settings.sections import KafkaSettings

logger = logging.getLogger(__name__)
_POLL_MS = 500
_RETRY_S = 2.0
_BROKER_CHECK_S = 5.0  # interval of broker checks: a member of a group is not notified when they go away
_STOP_S = 10.0
_REPLICAS = 3  # of the topic, if there are that many brokers


class KafkaLeadership:
    """Implements `ragtide.drift.leadership.Leadership`: a consumer in a thread of its own keeps membership of the
    group.

    Being elected costs a row in `leaders`, so the term is taken at the first question after the partition came. A
    process that lost the partition without noticing goes on with an epoch that loses against its successor's.

    `ended` is called where standing for election ends other than by `stop`; `failure` then says why.
    """

    def __init__(self, kafka: KafkaSettings, database: Database, on_end: Callable[[], None] = lambda: None) -> None:
        self._kafka = kafka
        self._database = database
        self._holder = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._lock = threading.Lock()
        self._electing = threading.Lock()  # jobs ask from several threads, and one ownership takes one epoch
        self._ownership = 0  # grows with every gain and loss, so that a term never outlives the ownership it began in
        self._owns = False
        self._term: Term | None = None
        self._trouble = f"{unreachable_message(kafka)} yet"
        self._on_end = on_end
        self.failure: BaseException | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leadership", daemon=True)

    def start(self) -> None:
        """Begin to stand for election; returns at once."""
        self._thread.start()

    def term(self) -> Term | None:
        """The term this process leads in; raises Transient where the database could not say."""
        with self._electing:
            with self._lock:
                owns, ownership, term = self._owns, self._ownership, self._term
            if not owns or term is not None:
                return term
            elected = elect(self._database, self._holder)
            with self._lock:
                if not self._owns or self._ownership != ownership:
                    return None  # lost meanwhile; the epoch is spent
                self._term = elected
                return elected

    def trouble(self) -> str:
        """Why nobody can be elected, as far as this process sees; empty: nothing stands in the way."""
        return f"no leader of the jobs can be elected: {self._trouble}" if self._trouble else ""

    def stop(self) -> None:
        """Leave the group, so that another process takes over at once."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_S)

    def set_owner(self, owns: bool) -> None:
        """The partition came or went."""
        with self._lock:
            if owns != self._owns:
                self._owns, self._term = owns, None
                self._ownership += 1
        logger.info("this process %s the jobs' partition", "owns" if owns else "does not own")

    def _run(self) -> None:
        asyncio.run(self._run_election())

    async def _run_election(self) -> None:
        election = asyncio.create_task(self._stand_for_election())
        await asyncio.wait({election})
        self.failure = election.exception()
        if self.failure is not None:
            self._trouble = str(self.failure)
            self._on_end()

    async def _stand_for_election(self) -> None:
        while not self._stopping.is_set():
            try:
                await self._hold_membership()
            except (Transient, KafkaError, OSError) as error:
                self._trouble = str(error) if isinstance(error, Transient) else no_answer_message(self._kafka, error)
                logger.warning("election failed: %s: %s; retrying in %g s", type(error).__name__, error, _RETRY_S)
            self.set_owner(False)
            if not self._stopping.is_set():
                await asyncio.sleep(_RETRY_S)

    async def _hold_membership(self) -> None:
        await _ensure_topic(self._kafka)
        consumer = consumer_of(
            self._kafka,
            role="jobs",
            group_id=self._kafka.group("jobs"),
            enable_auto_commit=False,
            session_timeout_ms=int(self._kafka.session_timeout_s * 1000),
            heartbeat_interval_ms=int(self._kafka.heartbeat_s * 1000),
            rebalance_timeout_ms=int(self._kafka.rebalance_timeout_s * 1000),
        )
        first = TopicPartition(self._kafka.jobs_topic, 0)
        consumer.subscribe([self._kafka.jobs_topic], listener=_Listener(self, first))
        try:
            await consumer.start()
            self._trouble, checked_at = "", time.monotonic()
            while not self._stopping.is_set():
                await consumer.getmany(timeout_ms=_POLL_MS)
                if time.monotonic() - checked_at > _BROKER_CHECK_S:
                    await self._check_brokers(consumer)
                    checked_at = time.monotonic()
        finally:
            self.set_owner(False)
            await stop_consumer(consumer)

    async def _check_brokers(self, consumer: AIOKafkaConsumer) -> None:
        try:
            async with asyncio.timeout(self._kafka.session_timeout_s):
                await consumer.topics()
        except (TimeoutError, KafkaError, OSError) as error:
            self._trouble = no_answer_message(self._kafka, error)
        else:
            self._trouble = ""


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    def __init__(self, leadership: KafkaLeadership, first: TopicPartition) -> None:
        self._leadership = leadership
        self._first = first

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._leadership.set_owner(False)

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._leadership.set_owner(self._first in set(assigned))


async def _ensure_topic(kafka: KafkaSettings) -> None:
    """The topic exists and has one partition; raises `ConfigError` where it has more."""
    count = (await partition_counts(kafka)).get(kafka.jobs_topic)
    if count is not None:
        check_jobs_topic(kafka.jobs_topic, count)
        return
    admin = AIOKafkaAdminClient(**client_options(kafka))
    await admin.start()
    try:
        brokers = len((await admin.describe_cluster())["brokers"])
        made = await admin.create_topics([NewTopic(kafka.jobs_topic, 1, min(_REPLICAS, brokers))])
        for _, code, *_ in made.topic_errors:
            if code and for_code(code) is not TopicAlreadyExistsError:
                raise for_code(code)(f"cannot create the topic {kafka.jobs_topic} (kafka.jobs_topic); create it")
    finally:
        await admin.close()
