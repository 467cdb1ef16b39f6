"""Read labels from their topic: every one is stored or a dead letter before its offset is committed.

After any failure the reader restarts from the committed offsets; a label that is read twice is the same row.
"""

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from ragtide.evaluators.errors import BadRecord, RagtideError, Refused
from ragtide.evaluators.trace import LONGEST_NAME
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE
from ragtide.stream.ingest.records import DeadLetter, Record
from ragtide.stream.ingest.rows import dead_letter_row
from ragtide.stream.ingest.timeliness import latest_timestamp_ms, refuse_sent
from ragtide.stream.kafka.batches import consumer_of
from ragtide.stream.kafka.broker_check import no_answer_message, partition_counts
from ragtide.stream.kafka.end_offsets import ISOLATION
from ragtide.stream.kafka.shutdown import stop_consumer
from ragtide.stream.labels.decoding import decode
from ragtide.stream.labels.label import Label
from ragtide.stream.labels.rows import LabelRow, LabelRows
from ragtide.stream.settings.loader import Settings
from ragtide.stream.telemetry.registry import Telemetry
from ragtide.stream.worker.dead_letter_limit import OF_LABELS, DeadLetterLimit
from ragtide.stream.worker.dead_letters import DeadLetters
from ragtide.stream.worker.processor import DeadLetterSender

log = logging.getLogger(__name__)

GROUP = "labels"
_POLL_MS = 500
_RECORDS = 500
_RETRY_S = 2.0
_DAY_S = 86_400.0
_TOPIC_CHECK_S = 30.0  # between two checks whether the topic exists


class LabelReader:
    """A member of the consumer group of labels; any number may run. `clock` gives seconds since 1970."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        telemetry: Telemetry,
        rng: random.Random,
        clock: Callable[[], float] = time.time,
    ) -> None:
        worker = settings.worker
        self._kafka = settings.kafka
        self._max_bytes = settings.ingest.max_bytes
        self._database = database
        self._telemetry = telemetry
        self._rows = LabelRows(settings)
        self._limit = DeadLetterLimit(worker.dead_letter_ratio, worker.dead_letter_run, OF_LABELS)
        self._rng = rng
        self._clock = clock
        self._retention_s = settings.retention.labels_days * _DAY_S
        self._trouble = ""

    def trouble(self) -> str:
        """Why labels are not read; empty: they are, or nobody sends any."""
        return f"labels are not read: {self._trouble}" if self._trouble else ""

    async def run(self) -> None:
        """Read until cancelled; raises only what is a bug."""
        while True:
            try:
                await self._wait_for_topic()
                await self._member()
            except (RagtideError, KafkaError, OSError) as error:
                self._trouble = str(error) if isinstance(error, RagtideError) else no_answer_message(self._kafka, error)
                log.warning("%s; restarting from the committed offsets in %g s", self.trouble(), _RETRY_S)
                await asyncio.sleep(_RETRY_S)

    async def _wait_for_topic(self) -> None:
        topic, logged = self._kafka.labels_topic, False
        while topic not in await partition_counts(self._kafka):
            self._trouble = ""
            if not logged:
                log.info("topic %s (kafka.labels_topic) does not exist; labels are read as soon as it does", topic)
            logged = True
            await asyncio.sleep(_TOPIC_CHECK_S)

    async def _member(self) -> None:
        kafka = self._kafka
        letters = DeadLetters(kafka, GROUP, self._rng)
        consumer = consumer_of(
            kafka,
            kafka.labels_topic,
            role=GROUP,
            group_id=kafka.group(GROUP),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level=ISOLATION,
            session_timeout_ms=int(kafka.session_timeout_s * 1000),
            heartbeat_interval_ms=int(kafka.heartbeat_s * 1000),
            rebalance_timeout_ms=int(kafka.rebalance_timeout_s * 1000),
            max_poll_interval_ms=int(kafka.max_poll_interval_s * 1000),
            max_partition_fetch_bytes=kafka.max_record_bytes,
            metadata_max_age_ms=round(kafka.metadata_max_age_s * 1000),
        )
        try:
            await letters.start()
            await consumer.start()
            await self._read(consumer, letters)
        finally:
            await letters.stop()
            await stop_consumer(consumer)

    async def _read(self, consumer: AIOKafkaConsumer, letters: DeadLetters) -> None:
        self._trouble = ""
        while True:
            fetched = await consumer.getmany(timeout_ms=_POLL_MS, max_records=_RECORDS)
            for records in fetched.values():
                await self.take(records, letters)
            if fetched:
                await consumer.commit({at: records[-1].offset + 1 for at, records in fetched.items()})

    async def take(self, records: Sequence[Record], letters: DeadLetterSender) -> None:
        """Store every record of one partition, or send it to the dead letters."""
        labels, dead = self._decode(records)
        self._limit.check(records, dead)
        rows = self._rows.rows_of([label for label, _ in labels], [record for _, record in labels])
        refused = await asyncio.to_thread(self._insert, rows)
        dead += [DeadLetter(labels[at][1], "refused", "label", why) for at, why in refused.items()]
        await letters.send(dead)
        dead_rows = [dead_letter_row(letter, LIVE) for letter in dead]
        await asyncio.to_thread(self._database.insert, "dead_letters", dead_rows)
        self._count([(labels[at][0], row) for at, row in enumerate(rows) if at not in refused], dead)

    def _decode(self, records: Sequence[Record]) -> tuple[list[tuple[Label, Record]], list[DeadLetter]]:
        """Decode labels and dead letters. Labels older than the retention are counted and left out."""
        labels, dead = [], []
        now_s = self._clock()
        oldest_ms, latest_ms = (now_s - self._retention_s) * 1000, latest_timestamp_ms(now_s)
        for record in records:
            try:
                label = decode(record, self._max_bytes)
                if not 0 < record.timestamp <= latest_ms:
                    refuse_sent(record, now_s)
            except BadRecord as bad:
                dead.append(DeadLetter(record, bad.reason, "label", bad.detail))
                continue
            if record.timestamp < oldest_ms:
                self._telemetry.labels.labels("expired").inc()
                continue
            labels.append((label, record))
        return labels, dead

    def _insert(self, rows: Sequence[LabelRow]) -> dict[int, str]:
        """Insert the rows; return why the database refuses some, by index. The others are durable."""
        try:
            self._database.insert("labels", rows)
        except Refused:
            return {at: why for at, row in enumerate(rows) if (why := self._refusal(row))}
        return {}

    def _refusal(self, row: LabelRow) -> str:
        try:
            self._database.insert("labels", [row])
        except Refused as error:
            return str(error)
        return ""

    def _count(self, stored: Sequence[tuple[Label, LabelRow]], dead: Sequence[DeadLetter]) -> None:
        for kind, number in Counter(_kind(label, row) for label, row in stored).items():
            self._telemetry.labels.labels(kind).inc(number)
        if cut := sum(len(label.author or "") > LONGEST_NAME for label, _ in stored):
            self._telemetry.names_cut.labels(GROUP, "author").inc(cut)
        for letter in dead:
            self._telemetry.dead_letters.labels(GROUP, letter.stage, letter.reason).inc()


def _kind(label: Label, row: LabelRow) -> str:
    """The value of label `kind` in the metric."""
    if row.joins:
        return "to_join"
    return "verdict" if label.verdict is not None else "not_kept"
