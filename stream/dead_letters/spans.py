"""Replay dead letters of stage `assemble`: send their spans to kafka.spans_topic, as the stage does."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from hashlib import sha256
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError

from ragtide.evaluators.errors import BadRecord, ConfigError, Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE
from ragtide.stream.dead_letters.letters import Letter
from ragtide.stream.dead_letters.values import RecordFinder
from ragtide.stream.ingest.records import DeadLetter, Record
from ragtide.stream.ingest.rows import dead_letter_row
from ragtide.stream.kafka.broker_check import no_answer_message, partition_counts, permission_hint
from ragtide.stream.kafka.client import client_options
from ragtide.stream.kafka.shutdown import stop_producer
from ragtide.stream.pipeline import Interval
from ragtide.stream.replay.topic import TopicSource
from ragtide.stream.settings.otel import OtelSettings
from ragtide.stream.settings.sections import KafkaSettings
from ragtide.stream.worker.assembly.assembler import Output
from ragtide.stream.worker.assembly.messages import read_head
from ragtide.stream.worker.assembly.part_store import PartStore
from ragtide.stream.worker.assembly.rekeying import STAGE, Rekeyed, rekey

_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)
_RECORDS = 100  # of a batch: messages of spans are large
_STOP_S = 5.0


class SpansReplayed(NamedTuple):
    """Letters whose spans were sent, and those that the stage would still refuse; the others are in no topic."""

    sent: int
    failed: int


class SpanReplay:
    """Sends the spans of messages. `on_sent` is called with the messages once the brokers acknowledged their spans.

    What the stage would refuse again is not sent: its row gets the new reason. The stage may have forgotten the other
    spans of the same traces, and would replace these by what a letter has of them. So what kafka.spans_topic still
    holds of the traces is sent again first. The spans of the letter follow at once, even if the stage is stopped or has
    much to read: it finds them together.
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

        Raises `Transient` while the brokers are away, and `ConfigError` if kafka.spans_topic is missing or takes no
        messages: what was sent until then is marked, and the same command continues. Not to be called from an event
        loop.
        """
        return asyncio.run(self._run(letters))

    async def _run(self, letters: Sequence[Letter]) -> SpansReplayed:
        if self._kafka.spans_topic not in await partition_counts(self._kafka):
            raise ConfigError(
                f"Kafka at {self._kafka.bootstrap_servers} has no topic {self._kafka.spans_topic} (kafka.spans_topic)"
                f"{permission_hint(self._kafka)}, which spans go to: create it with `ragtide topics create --spans`"
            )
        options = client_options(self._kafka, "replay")
        producer = AIOKafkaProducer(acks="all", max_request_size=self._kafka.largest_request, **options)
        sent = failed = 0
        parts = PartStore(self._otel.memory_bytes, self._otel.spill_directory)
        try:
            owners = await self._find_parts(letters, parts)
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
        """Store what kafka.spans_topic has of the traces of the letters, each part once: earlier replays repeat them.

        Return their owners there by trace id.
        """
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
        known: set[tuple[int, bytes]] = set()
        source = TopicSource(self._kafka, [topic], since, ahead_s=0, late_s=0, batch_records=_RECORDS)
        async with aclosing(source.read({})) as found:
            async for batch in found:
                for record in batch.records:
                    owner = owners.get(record.key or b"")
                    if owner is not None and record.value is not None and _is_part(record):
                        part = (owner, sha256(record.value).digest())
                        if part not in known:
                            known.add(part)
                            parts.add(owner, record.value)
        return owners

    def _rekey(self, records: Sequence[Record]) -> Rekeyed:
        return rekey(records, self._otel, self._kafka.max_record_bytes)

    async def _send(
        self, producer: AIOKafkaProducer, records: Sequence[Record], owners: Mapping[bytes, int], parts: PartStore
    ) -> int:
        """Send the parts of the traces of one batch, then its spans; return how many messages are not sent."""
        dead: list[DeadLetter] = []
        good: list[tuple[Record, Sequence[Output]]] = []
        for record in records:
            done = self._rekey([record])
            dead += done.dead
            good += [] if done.dead else [(record, done.outputs)]
        for trace_id in dict.fromkeys(output.key for _, outputs in good for output in outputs):
            if (owner := owners.get(trace_id)) is not None:
                for value in parts.parts(owner):
                    if not await self._deliver(producer, Output(trace_id, value)):
                        raise ConfigError(self._too_large)
                parts.drop(owner)
        taken: list[Record] = []
        for record, outputs in good:
            if all(await asyncio.gather(*(self._deliver(producer, output) for output in outputs))):
                taken.append(record)
            else:
                dead.append(DeadLetter(record, "too_big", STAGE, self._too_large))
        if taken:
            await asyncio.to_thread(self._on_sent, taken)
        if dead:
            rows = [dead_letter_row(letter, LIVE) for letter in dead]
            await asyncio.to_thread(self._database.insert, "dead_letters", rows)
        return len(dead)

    @property
    def _too_large(self) -> str:
        return f"topic {self._kafka.spans_topic} takes no message so large; raise its max.message.bytes"

    async def _deliver(self, producer: AIOKafkaProducer, output: Output) -> bool:
        """Send one message; false if the topic does not take it for its size."""
        try:
            await producer.send_and_wait(self._kafka.spans_topic, output.value, key=output.key)
        except _TOO_LARGE:
            return False
        except KafkaError as error:
            if error.retriable:
                raise
            raise ConfigError(
                f"topic {self._kafka.spans_topic} (kafka.spans_topic) does not accept messages: "
                f"{type(error).__name__}; let this user write to it. The same command continues"
            ) from None
        return True


def _is_part(record: Record) -> bool:
    """Whether the message has spans: a mark says where they lay, and is never sent again."""
    try:
        return read_head(record.value).kind == "part"
    except BadRecord:
        return False
