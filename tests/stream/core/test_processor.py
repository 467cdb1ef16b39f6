"""A slice is acknowledged once its rows are stored and its dead letters are safe, and never otherwise."""

import asyncio
import weakref
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.sinks.bisect import RejectedRow
from ragtide.sinks.rows import Block
from ragtide.sinks.sample import text
from ragtide.stream.ingest.adjustments import Normalised, UnknownField
from ragtide.stream.ingest.enriched import version_of
from ragtide.stream.ingest.records import DeadLetter, Record
from ragtide.stream.kafka.offsets import Ticket
from ragtide.stream.pipeline import SliceResult
from ragtide.stream.telemetry.registry import Telemetry
from ragtide.stream.worker.dead_letter_limit import DeadLetterLimit, TooManyDeadLetters
from ragtide.stream.worker.processor import SliceProcessor
from ragtide.stream.worker.progress import LaneProgress
from ragtide.stream.worker.unknown_fields import UnknownFields
from ragtide.stream.worker.writer import Writer
from tests.stream.core.loop import in_loop
from tests.stream.core.rows import dead, record

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Event:
    """As Faust's: a slice, and whether it was acknowledged."""

    def __init__(self, *records: Record) -> None:
        self.records: Sequence[Record] = records
        self.ticket = Ticket(records[0].offset, records[-1].offset, 1)
        self.value = self
        self.acknowledged = False

    def ack(self) -> None:
        self.acknowledged = True


class Records(list[Record]):
    """Can be referred to weakly."""


class Rows:
    """A pipeline of one row per record; of value b"dead" it is a dead letter, b"crash" raises, b"long" is cut.

    The row of b"odd" is a text, which does not tell its partition.
    """

    def __init__(self) -> None:
        self.seen: list[int] = []

    def process(self, records: Sequence[Record]) -> SliceResult:
        done = SliceResult()
        for found in records:
            self.seen.append(found.offset)
            if found.value == b"crash":
                raise RuntimeError("a bug")
            if found.value == b"dead":
                done.dead.append(DeadLetter(found, "not_json", "decode", ""))
            if found.value == b"odd":
                done.block.texts.append(text("t", version=version_of(found)))
                continue
            if found.value == b"misspelt":
                done.adjustments.unknown[UnknownField("docs", "latency.total_ms")] += 1
                done.adjustments.normalised[Normalised("number_as_text", "user_id")] += 1
            if found.value == b"long":
                done.adjustments.cut["model.served"] += 1
                done.evidence_cut["pii_leakage"] += 1
            done.block.dead_letters.append(dead(found.offset))
        return done


class Letters:
    """A dead-letter topic that opens when told."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.sent: list[int] = []
        self.partitions: list[int] = []

    async def send(self, letters: Sequence[DeadLetter]) -> None:
        await self.open.wait()
        self.partitions += [letter.record.partition for letter in letters]
        self.sent += [letter.record.offset for letter in letters]


class Stage:
    """A running `SliceProcessor` and everything round it."""

    def __init__(self, *, run: int = 100, lane: str = "fast") -> None:
        self.away = False
        self.refused = 0  # of the texts of a block, this one and those after it
        self.stored: list[int] = []
        self.stopped: list[str] = []
        self.rows = Rows()
        self.letters = Letters()
        self.telemetry = Telemetry()
        self.writer = Writer(self._write, self.telemetry, block_wait_s=0.0)
        self.work = SliceProcessor(
            lane,
            self.rows,
            self.writer,
            self.letters if lane == "fast" else None,
            DeadLetterLimit(1.0, run),
            LaneProgress(lane, "me", lambda: NOW),
            self.telemetry,
            lambda at: None,
            self._stop_topic,
        )
        self.tasks = [asyncio.create_task(self.work.run()), asyncio.create_task(self.writer.run())]

    def _stop_topic(self, topic: str, error: TooManyDeadLetters) -> bool:
        self.stopped.append(topic)
        return topic == "foreign"

    def _write(self, block: Block) -> Sequence[RejectedRow]:
        if self.away:
            raise Transient("away")
        self.stored += [row.offset for row in block.dead_letters]
        return [RejectedRow("trace_texts", row, "odd") for row in block.texts[self.refused :]]

    async def until(self, done: Any) -> None:
        for _ in range(500):
            if done():
                return
            await asyncio.sleep(0.01)
        raise AssertionError("not in time")

    async def __aenter__(self) -> "Stage":
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@in_loop
async def test_a_stored_slice_is_acknowledged() -> None:
    async with Stage() as stage:
        event = Event(record(1), record(2))
        stage.work.submit(event)
        await stage.until(lambda: event.acknowledged)
        assert stage.stored == [1, 2]
        assert stage.work.is_idle
        assert stage.telemetry.registry.get_sample_value("ragtide_records_total", {"lane": "fast"}) == 2


@in_loop
async def test_cut_names_and_evidence_are_counted() -> None:
    async with Stage() as stage:
        event = Event(record(1, b"long"), record(2, b"long"))
        stage.work.submit(event)
        await stage.until(lambda: event.acknowledged)
        sample = stage.telemetry.registry.get_sample_value
        assert sample("ragtide_names_cut_total", {"lane": "fast", "field": "model.served"}) == 2
        assert sample("ragtide_evidence_cut_total", {"evaluator": "pii_leakage"}) == 2


@in_loop
async def test_nothing_is_kept_of_a_stored_slice() -> None:
    """Each lane at rest would hold its last one."""
    async with Stage() as stage:
        event = Event(record(1))
        event.records = Records(event.records)
        kept = weakref.ref(event.records)
        stage.work.submit(event)
        await stage.until(lambda: event.acknowledged)
        event.records = ()
        await stage.until(lambda: kept() is None)


@in_loop
async def test_nothing_is_acknowledged_while_the_sink_is_away() -> None:
    async with Stage() as stage:
        stage.away = True
        event = Event(record(1))
        stage.work.submit(event)
        await stage.until(lambda: stage.writer.blocked_since is not None)
        assert not event.acknowledged
        assert not stage.work.is_idle
        stage.away = False
        await stage.until(lambda: event.acknowledged)


@in_loop
async def test_dead_letters_are_safe_before_the_acknowledgement() -> None:
    async with Stage() as stage:
        poisoned, clean = Event(record(1, b"dead"), record(2)), Event(record(3))
        stage.work.submit(poisoned)
        stage.work.submit(clean)
        await stage.until(lambda: clean.acknowledged)  # the next slice does not wait for the letters of this one
        assert stage.stored == [1, 2, 3]
        assert not poisoned.acknowledged
        stage.letters.open.set()
        await stage.until(lambda: poisoned.acknowledged)
        assert stage.letters.sent == [1]
        labels = {"lane": "fast", "stage": "decode", "reason": "not_json"}
        assert stage.telemetry.registry.get_sample_value("ragtide_dead_letters_total", labels) == 1


@in_loop
async def test_of_two_partitions_in_one_block_the_one_whose_row_was_refused_has_a_dead_letter() -> None:
    async with Stage() as stage:
        stage.letters.open.set()
        stage.away, stage.refused = True, 1
        events = [Event(record(7, b"odd", partition=partition)) for partition in (0, 1)]
        stage.work.submit(Event(record(1)))
        await stage.until(lambda: stage.writer.blocked_since is not None)
        for event in events:
            stage.work.submit(event)
        await stage.until(lambda: stage.rows.seen == [1, 7, 7])
        stage.away = False
        await stage.until(lambda: all(event.acknowledged for event in events))
        assert (stage.letters.sent, stage.letters.partitions) == ([7], [1])
        assert stage.stored == [1, 7]


@in_loop
async def test_a_bug_ends_the_work_and_acknowledges_nothing() -> None:
    async with Stage() as stage:
        event = Event(record(1, b"crash"))
        stage.work.submit(event)
        with pytest.raises(RuntimeError, match="a bug"):
            await stage.tasks[0]
        assert not event.acknowledged


@in_loop
async def test_too_many_dead_letters_end_the_work_before_any_is_sent() -> None:
    async with Stage(run=3) as stage:
        stage.letters.open.set()
        event = Event(*(record(number, b"dead") for number in range(3)))
        stage.work.submit(event)
        with pytest.raises(ConfigError, match="dead_letter_run"):
            await stage.tasks[0]
        assert not event.acknowledged
        assert stage.letters.sent == []
        assert stage.stopped == ["rag.traces"]


@in_loop
async def test_a_topic_of_foreign_records_is_stopped_and_the_others_go_on() -> None:
    async with Stage(run=3) as stage:
        stage.letters.open.set()
        foreign, good = Event(*(record(number, b"dead", topic="foreign") for number in range(3))), Event(record(7))
        stage.work.submit(foreign)
        stage.work.submit(good)
        await stage.until(lambda: good.acknowledged)
        assert (stage.stored, stage.letters.sent, stage.stopped) == ([7], [], ["foreign"])
        assert not foreign.acknowledged
        assert stage.work.is_idle


@in_loop
async def test_unknown_fields_are_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async with Stage() as stage:
        events = [Event(record(number, b"misspelt")) for number in range(3)]
        for event in events:
            stage.work.submit(event)
        await stage.until(lambda: all(event.acknowledged for event in events))
        labels = {"app": "docs", "field": "latency.total_ms"}
        assert stage.telemetry.registry.get_sample_value("ragtide_unknown_fields_total", labels) == 3
        normalised = {"lane": "fast", "rule": "number_as_text", "field": "user_id"}
        assert stage.telemetry.registry.get_sample_value("ragtide_normalised_total", normalised) == 3
    logged = [line for line in caplog.messages if "total_ms" in line]
    assert logged == [
        "app docs: no trace has a field latency.total_ms. It is stored and not measured; "
        "did you mean latency.total_s, in seconds?"
    ]


def test_unknown_fields_of_a_hostile_producer_take_bounded_memory() -> None:
    telemetry = Telemetry()
    unknown = UnknownFields(telemetry)
    for number in range(2_000):
        unknown.report({UnknownField("docs", f"latency.x{number}"): 1})
    counted = [sample for metric in telemetry.unknown_fields.collect() for sample in metric.samples]
    assert len([sample for sample in counted if sample.name.endswith("_total")]) == 501
    assert telemetry.registry.get_sample_value("ragtide_unknown_fields_total", {"app": "", "field": ""}) == 1_500


@in_loop
async def test_a_slice_of_a_partition_that_was_given_away_is_not_worked_off() -> None:
    async with Stage() as stage:
        lost, kept = Event(record(1)), Event(record(2))
        lost.ticket.valid = False
        stage.work.submit(lost)
        stage.work.submit(kept)
        await stage.until(lambda: kept.acknowledged)
        assert stage.rows.seen == [2]


@in_loop
async def test_stopping_finishes_what_was_begun_and_begins_no_more() -> None:
    async with Stage() as stage:
        stage.away = True
        begun, waiting = Event(record(1)), Event(record(2))
        stage.work.submit(begun)
        await stage.until(lambda: stage.writer.blocked_since is not None)
        stage.work.stop_accepting()
        stage.work.submit(waiting)
        stage.away = False
        await stage.until(lambda: stage.work.is_idle)
        assert begun.acknowledged
        assert stage.rows.seen == [1]
        assert not waiting.acknowledged
