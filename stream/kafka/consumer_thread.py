"""aiokafka's side of a lane: one consumer in its own thread and loop, which survives any failure of the brokers.

The overridden names are private to Faust and aiokafka, as in `ragtide.stream.kafka.driver`, and held by the same test.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
    UnknownMemberIdError,
    kafka_errors,
)
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from mode import Service

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.ingest.records import Record
from ragtide.stream.kafka.batches import limit_batches
from ragtide.stream.kafka.end_offsets import ISOLATION
from ragtide.stream.settings.topics import TopicPattern

log = logging.getLogger(__name__)

_KEEP_POLLING_S = 1.0
_END_OFFSETS_S = 5.0
_METADATA_S = 3.0
_RETRY_S = 1.0  # before a broker that did not answer is asked again

# aiokafka takes FENCED_INSTANCE_ID for an unknown error, of which a lane would die (its issue 1186): whether a member
# that lost its name meets this or UNKNOWN_MEMBER_ID, which makes it join again, depends on which request came first.
kafka_errors[82] = UnknownMemberIdError


class Fetch(NamedTuple):
    """Records of a poll, the positions after it, and the assignment that it was read under."""

    assignment: object
    records: Mapping[TopicPartition, list[Record]]
    next_offsets: Mapping[TopicPartition, int]


class SliceConsumerThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]  # Faust's types are of records
    """The consumer's thread, with its own loop."""

    broker_reached = True  # by a broker at the last attempt to begin; True before the first

    async def on_start(self) -> None:
        """Retry until a broker answers: one that answered the check may be away by now."""
        while not self.should_stop:
            try:
                await super().on_start()
            except KafkaError as error:
                await self._consumer.stop()
                if not error.retriable:
                    raise
                self.broker_reached = False
                log.warning("no broker answers (kafka.bootstrap_servers): retrying in %g s: %s", _RETRY_S, error)
                await self.sleep(_RETRY_S)
            else:
                self.broker_reached = True
                return

    async def on_thread_stop(self) -> None:
        """Like Faust's, which is not told of the end while the brokers are away."""
        with suppress(asyncio.CancelledError):  # see ragtide.stream.kafka.shutdown
            await super().on_thread_stop()

    def _create_worker_consumer(self, transport: Any) -> AIOKafkaConsumer:
        """Read committed records only: Faust does so only if it commits offsets by its own transactions.

        What an answer of a broker brings is bounded over all partitions: Faust bounds it for each of them.
        """
        consumer = super()._create_worker_consumer(transport)
        consumer._isolation_level = ISOLATION
        consumer._fetch_max_bytes = self.app.conf.consumer_max_fetch_size
        limit_batches(consumer, self.consumer.largest_batch)
        return consumer

    async def subscribe(self, topics: Iterable[str]) -> None:
        """Subscribe by pattern if there is one: aiokafka finds new topics that match whenever it reads the metadata."""
        pattern = self.consumer.pattern
        if pattern is None:
            await super().subscribe(topics)
        else:
            listener = self._rebalance_listener
            await self.call_thread(_subscribe_by, self._ensure_consumer(), pattern, listener)

    @Service.task  # type: ignore[untyped-decorator]  # Faust's types are of records
    async def _keep_polling(self) -> None:
        """Keep polling while this thread lives, so that the poll interval never expires, however long the sink is away.

        aiokafka leaves the group for good after max.poll.interval without a poll, and Faust polls neither while its
        buffers are full nor while no partition is assigned or a rebalance takes long. Whether work goes on is for
        /live to judge, by commit progress.
        """
        interval = min(_KEEP_POLLING_S, self.app.conf.broker_max_poll_interval / 5)
        while not self.should_stop:
            consumer = self._ensure_consumer()
            with consumer._subscription.fetch_context():
                pass
            with _as_config_error():
                _check_group_errors(consumer)
            await self.sleep(interval)

    @Service.task  # type: ignore[untyped-decorator]  # Faust's types are of records
    async def _poll_end_offsets(self) -> None:
        """Poll end offsets of what is not fetched, for want of room or since its topic stopped: lag still grows."""
        while not self.should_stop:
            await self.sleep(_END_OFFSETS_S)
            assignment = assignment_of(self._ensure_consumer())
            full, stopped = self.consumer.is_full, self.consumer.stopped
            asked = [at for at in (assignment.tps if assignment else ()) if full or at.topic in stopped]
            with suppress(KafkaError):
                self.consumer.ends = await self._ensure_consumer().end_offsets(asked) if asked else {}

    @Service.task  # type: ignore[untyped-decorator]  # Faust's types are of records
    async def _refresh_metadata(self) -> None:
        """Refresh the metadata until all partitions are known.

        aiokafka asks before it joins the group and, where none answers just then, not again for `metadata_max_age_s`:
        a lane that was assigned nothing stood idle for so long.
        """
        while not self.should_stop:
            await self.sleep(_METADATA_S)
            client = self._ensure_consumer()._client
            if not _topics_known(client):
                await client.force_metadata_update()

    async def _fetch_records(
        self,
        consumer: AIOKafkaConsumer,
        active_partitions: set[TP],
        timeout: float | None = None,
        max_records: int | None = None,
    ) -> Fetch:
        # A copy, since Faust empties this very set in a rebalance, and aiokafka takes an empty one for "all".
        wanted = frozenset(active_partitions)
        with _as_config_error():
            records = await super()._fetch_records(consumer, wanted, timeout=timeout, max_records=max_records)
        assignment = assignment_of(consumer)
        if not self.consumer.flow_active:
            for partition, taken in records.items():  # read under an assignment whose flow has not begun: put back
                consumer.seek(partition, taken[0].offset)
            return Fetch(assignment, {}, {})
        return Fetch(assignment, records, _positions(assignment))


def _subscribe_by(consumer: AIOKafkaConsumer, pattern: TopicPattern, listener: Any) -> None:
    """Like aiokafka's `subscribe`, which takes only patterns of Python's own engine."""
    consumer._subscription.subscribe_pattern(pattern=pattern, listener=listener)
    consumer._client.set_topics([])


def _topics_known(client: Any) -> bool:
    """Whether the metadata has every topic that is read, and the brokers answered the last request."""
    cluster = client.cluster
    answered = cluster._last_refresh_ms == cluster._last_successful_refresh_ms
    return answered and all(cluster.partitions_for_topic(topic) is not None for topic in client._topics)


def assignment_of(consumer: AIOKafkaConsumer) -> Any:
    """The object of the current assignment of partitions: a new one after every rebalance."""
    subscription = consumer._subscription.subscription
    return subscription.assignment if subscription is not None else None


def _positions(assignment: Any) -> dict[TopicPartition, int]:
    """Next position in each partition: past transaction markers, aborted and compacted records."""
    states = {partition: assignment.state_value(partition) for partition in (assignment.tps if assignment else ())}
    return {partition: state.position for partition, state in states.items() if state and state.has_valid_position}


def _check_group_errors(consumer: AIOKafkaConsumer) -> None:
    """Check the group's error now: aiokafka keeps it for the next poll, and Faust may never poll again."""
    try:
        consumer._coordinator.check_errors()
    except KafkaError as error:
        if not error.retriable:
            raise
        log.warning("the consumer group reported an error: %s; retrying", error)


@contextmanager
def _as_config_error() -> Iterator[None]:
    """Raise `ConfigError` for a missing right of the Kafka user."""
    try:
        yield
    except (GroupAuthorizationFailedError, TopicAuthorizationFailedError) as error:
        what = "group" if isinstance(error, GroupAuthorizationFailedError) else "topic"
        named = ", ".join(map(str, error.args))
        raise ConfigError(f"the brokers do not let this user read as {what} {named}: give it the right Read") from None
