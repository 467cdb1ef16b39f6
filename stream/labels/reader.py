"""Reads labels from their topic: every one is stored or set aside before its offset is committed.

Whatever fails, the reader begins anew at what is committed; a label that is read twice is the same row.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from evaluators.errors import BadRecord, RagwatchError, Refused
from sinks.clickhouse.database import Database
from sinks.rows import LIVE
from stream.ingest.records import DeadLetter, Record
from stream.ingest.rows import dead_letter_row
from stream.kafka.brokers import no_answer, partitions
from stream.kafka.client import client_options
from stream.kafka.ending import end
from stream.kafka.ends import ISOLATION
from stream.labels.decoding import decode
from stream.labels.label import Label
from stream.labels.rows import LabelRow, LabelRows
from stream.lanes.agent import Sends
from stream.lanes.dead_letter_limit import DeadLetterLimit
from stream.lanes.dead_letters import DeadLetters
from stream.settings import Settings
from stream.telemetry.registry import Telemetry

log = logging.getLogger(__name__)

GROUP = "labels"
_POLL_MS = 500
_RECORDS = 500
_RETRY_S = 2.0
_LOOK_S = 30.0  # how often it is asked whether the topic is there by now


class LabelReader:
    """A member of the group of those who read labels; any number may run."""

    def __init__(self, settings: Settings, database: Database, telemetry: Telemetry, rng: random.Random) -> None:
        worker = settings.worker
        self._kafka = settings.kafka
        self._max_bytes = settings.ingest.max_bytes
        self._database = database
        self._telemetry = telemetry
        self._rows = LabelRows(settings)
        self._limit = DeadLetterLimit(worker.dead_letter_ratio, worker.dead_letter_run)
        self._rng = rng
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
            except (RagwatchError, KafkaError, OSError) as error:
                self._trouble = str(error) if isinstance(error, RagwatchError) else no_answer(self._kafka, error)
                log.warning("%s; beginning anew at what is committed in %g s", self.trouble(), _RETRY_S)
                await asyncio.sleep(_RETRY_S)

    async def _wait_for_topic(self) -> None:
        topic, told = self._kafka.labels_topic, False
        while topic not in await partitions(self._kafka):
            self._trouble = ""
            if not told:
                log.info("there is no topic %s (kafka.labels_topic): labels are read once it is made", topic)
            told = True
            await asyncio.sleep(_LOOK_S)

    async def _member(self) -> None:
        kafka = self._kafka
        letters = DeadLetters(kafka, GROUP, self._rng)
        consumer = AIOKafkaConsumer(
            kafka.labels_topic,
            group_id=kafka.group(GROUP),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level=ISOLATION,
            session_timeout_ms=int(kafka.session_timeout_s * 1000),
            heartbeat_interval_ms=int(kafka.heartbeat_s * 1000),
            rebalance_timeout_ms=int(kafka.rebalance_timeout_s * 1000),
            max_poll_interval_ms=int(kafka.max_poll_interval_s * 1000),
            max_partition_fetch_bytes=kafka.max_record_bytes,
            **client_options(kafka),
        )
        try:
            await letters.start()
            await consumer.start()
            await self._read(consumer, letters)
        finally:
            await letters.stop()
            await end(consumer)

    async def _read(self, consumer: AIOKafkaConsumer, letters: DeadLetters) -> None:
        self._trouble = ""
        while True:
            fetched = await consumer.getmany(timeout_ms=_POLL_MS, max_records=_RECORDS)
            for records in fetched.values():
                await self.take(records, letters)
            if fetched:
                await consumer.commit({at: records[-1].offset + 1 for at, records in fetched.items()})

    async def take(self, records: Sequence[Record], letters: Sends) -> None:
        """Every record of one partition is stored or set aside when this returns."""
        labels, dead = self._decoded(records)
        self._limit.check(records, {id(one.record) for one in dead}, Counter(one.reason for one in dead))
        rows = self._rows.made_of([label for label, _ in labels], [record for _, record in labels])
        refused = await asyncio.to_thread(self._insert, rows)
        dead += [DeadLetter(labels[at][1], "refused", "label", why) for at, why in refused.items()]
        await letters.send(dead)
        told = [dead_letter_row(letter, LIVE) for letter in dead]
        await asyncio.to_thread(self._database.insert, "dead_letters", told)
        self._count([(labels[at][0], row) for at, row in enumerate(rows) if at not in refused], dead)

    def _decoded(self, records: Sequence[Record]) -> tuple[list[tuple[Label, Record]], list[DeadLetter]]:
        labels, dead = [], []
        for record in records:
            try:
                labels.append((decode(record, self._max_bytes), record))
            except BadRecord as bad:
                dead.append(DeadLetter(record, bad.reason, "label", bad.detail))
        return labels, dead

    def _insert(self, rows: Sequence[LabelRow]) -> dict[int, str]:
        """By place in `rows`, why the database will never take that one; the others are durable."""
        try:
            self._database.insert("labels", rows)
        except Refused:
            return {at: why for at, row in enumerate(rows) if (why := self._refused(row))}
        return {}

    def _refused(self, row: LabelRow) -> str:
        try:
            self._database.insert("labels", [row])
        except Refused as error:
            return str(error)
        return ""

    def _count(self, stored: Sequence[tuple[Label, LabelRow]], dead: Sequence[DeadLetter]) -> None:
        for kind, number in Counter(_kind(label, row) for label, row in stored).items():
            self._telemetry.labels.labels(kind).inc(number)
        for letter in dead:
            self._telemetry.dead_letters.labels(GROUP, letter.stage, letter.reason).inc()


def _kind(label: Label, row: LabelRow) -> str:
    """What became of it, as it is counted."""
    if row.joins:
        return "to_join"
    return "verdict" if label.verdict is not None else "not_kept"
