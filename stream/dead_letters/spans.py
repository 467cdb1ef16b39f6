"""Replay dead letters of stage `assemble`: send them to the topics of spans again, which the stage reads."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError

from ragtide.evaluators.errors import BadRecord, ConfigError, Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE
from ragtide.stream.dead_letters.letters import Letter
from ragtide.stream.dead_letters.values import RecordFinder
from ragtide.stream.ingest.records import DeadLetter, Record, sent_headers
from ragtide.stream.ingest.rows import dead_letter_row
from ragtide.stream.kafka.broker_check import no_answer_message, partition_counts
from ragtide.stream.kafka.client import client_options
from ragtide.stream.kafka.shutdown import stop_producer
from ragtide.stream.pipeline import Interval
from ragtide.stream.replay.topic import TopicSource
from ragtide.stream.settings.otel import OtelSettings
from ragtide.stream.settings.sections import KafkaSettings
from ragtide.stream.worker.assembly.messages import read_head
from ragtide.stream.worker.assembly.part_store import PartStore
from ragtide.stream.worker.assembly.rekeying import STAGE, Rekeyed, rekey

_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)
_RECORDS = 100  # of a batch: messages of spans are large
_STOP_S = 5.0


class SpansReplayed(NamedTuple):
    """Letters that the topics took, and those that the stage would still refuse; the others are in no topic."""

    sent: int
    failed: int


class SpanReplay:
    """Sends messages as they came, with key and headers. `on_sent` is called with those that the brokers acknowledged.

    What the stage would refuse again is not sent: its row gets the new reason. The stage may have forgotten the other
    spans of the same traces, and would replace these by what a letter has of them. So what kafka.spans_topic still
    holds of the traces is sent again too.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        otel: OtelSettings,
        database: Database,
        on_sent: Callable[[Sequence[Record]], None],
    ) -> None:
        self._kafka = kafka
        self._otel = otel
        self._database = database
        self._on_sent = on_sent

    def run(self, letters: Sequence[Letter]) -> SpansReplayed:
        """Send the letters that still exist, batch by batch.

        Raises `Transient` while the brokers are away, and `ConfigError` for a topic that is missing or does not take
        messages: what was sent until then is marked, and the same command continues. Not to be called from an event
        loop.
        """
        return asyncio.run(self._run(letters))

    async def _run(self, letters: Sequence[Letter]) -> SpansReplayed:
        known = await partition_counts(self._kafka)
        if missing := sorted({letter.topic for letter in letters} - known.keys()):
            raise ConfigError(
                f"Kafka at {self._kafka.bootstrap_servers} has no topic {', '.join(missing)}, which dead letters are "
                "from: create it with `ragtide topics create --spans`, or choose others with --topic"
            )
        options = client_options(self._kafka, "replay")
        producer = AIOKafkaProducer(acks="all", max_request_size=self._kafka.largest_request, **options)
        sent = failed = 0
        parts = PartStore(self._otel.memory_bytes, self._otel.spill_directory)
        try:
            owners = await self._find_parts(letters, parts) if self._kafka.spans_topic in known else {}
            await producer.start()
            async with aclosing(self._finder().read(letters)) as batches:
                async for records in batches:
                    refused = await self._send(producer, records, owners, parts)
                    sent += len(records) - refused
                    failed += refused
        except KafkaError as error:
            raise Transient(f"{no_answer_message(self._kafka, error)}; the same command continues") from None
        finally:
            parts.close()
            await stop_producer(producer, _STOP_S)
        return SpansReplayed(sent, failed)

    def _finder(self) -> RecordFinder:
        return RecordFinder(self._kafka, batch_records=_RECORDS)

    async def _find_parts(self, letters: Sequence[Letter], parts: PartStore) -> dict[bytes, int]:
        """Store what kafka.spans_topic has of the traces of the letters; return their owners there by trace id."""
        owners: dict[bytes, int] = {}
        async with aclosing(self._finder().read(letters)) as batches:
            async for records in batches:
                for output in self._rekey(records).outputs:
                    owners.setdefault(output.key, len(owners))
        if not owners:
            return owners
        first = min(letter.time for letter in letters).timestamp() - self._otel.max_open_s - self._otel.late_s
        since = Interval(first, float("inf"))
        topic = self._kafka.spans_topic
        source = TopicSource(self._kafka, [topic], since, ahead_s=0, late_s=0, batch_records=_RECORDS)
        async with aclosing(source.read({})) as found:
            async for batch in found:
                for record in batch.records:
                    owner = owners.get(record.key or b"")
                    if owner is not None and record.value is not None and _is_part(record):
                        parts.add(owner, record.value)
        return owners

    def _rekey(self, records: Sequence[Record]) -> Rekeyed:
        return rekey(records, self._otel, self._kafka.max_record_bytes)

    async def _send(
        self, producer: AIOKafkaProducer, records: Sequence[Record], owners: Mapping[bytes, int], parts: PartStore
    ) -> int:
        """Send one batch, and the parts of its traces; return how many messages are not sent."""
        dead: list[DeadLetter] = []
        good: list[Record] = []
        traces: dict[bytes, None] = {}
        for record in records:
            done = self._rekey([record])
            dead += done.dead
            good += [] if done.dead else [record]
            traces |= dict.fromkeys(output.key for output in done.outputs)
        results = await asyncio.gather(*(self._deliver(producer, record) for record in good))
        dead += [fault for fault in results if fault is not None]
        taken = [record for record, fault in zip(good, results, strict=True) if fault is None]
        for trace_id in traces:
            if (owner := owners.get(trace_id)) is not None:
                for value in parts.parts(owner):
                    await producer.send_and_wait(self._kafka.spans_topic, value, key=trace_id)
                parts.drop(owner)
        if taken:
            await asyncio.to_thread(self._on_sent, taken)
        if dead:
            rows = [dead_letter_row(letter, LIVE) for letter in dead]
            await asyncio.to_thread(self._database.insert, "dead_letters", rows)
        return len(dead)

    async def _deliver(self, producer: AIOKafkaProducer, record: Record) -> DeadLetter | None:
        try:
            await producer.send_and_wait(record.topic, record.value, key=record.key, headers=list(sent_headers(record)))
        except _TOO_LARGE as error:
            detail = f"topic {record.topic} takes no message so large; raise its max.message.bytes"
            return DeadLetter(record, "too_big", STAGE, f"{detail} ({type(error).__name__})")
        except KafkaError as error:
            if error.retriable:
                raise
            raise ConfigError(
                f"topic {record.topic} does not accept messages: {type(error).__name__}; let this user write to it"
            ) from None
        return None


def _is_part(record: Record) -> bool:
    """Whether the message has spans: a mark says where they lay, and is never sent again."""
    try:
        return read_head(record.value).kind == "part"
    except BadRecord:
        return False
