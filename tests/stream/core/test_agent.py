"""A slice is acknowledged once its rows are stored and its dead letters are safe, and never otherwise."""

import asyncio
import weakref
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from evaluators.errors import ConfigError, Transient
from sinks.refusal import SetAside
from sinks.rows import Block
from sinks.sample import text
from sinks.version import pack
from stream.ingest.records import DeadLetter, Record
from stream.kafka.offsets import Ticket
from stream.lanes.agent import Work
from stream.lanes.dead_letter_limit import DeadLetterLimit
from stream.lanes.progress import LaneProgress
from stream.lanes.writer import Writer
from stream.pipeline import Processed
from stream.telemetry.registry import Telemetry
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
    """A pipeline of one row per record; a record whose value is b"dead" is a dead letter, b"crash" raises.

    The row of b"odd" is a text, which does not tell its partition.
    """

    def __init__(self) -> None:
        self.seen: list[int] = []

    def process(self, records: Sequence[Record]) -> Processed:
        done = Processed()
        for found in records:
            self.seen.append(found.offset)
            if found.value == b"crash":
                raise RuntimeError("a bug")
            if found.value == b"dead":
                done.dead.append(DeadLetter(found, "not_json", "decode", ""))
            if found.value == b"odd":
                done.block.texts.append(text("t", version=pack(found.timestamp, found.offset)))
                continue
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
    """A running `Work` and everything round it."""

    def __init__(self, *, run: int = 100, lane: str = "fast") -> None:
        self.away = False
        self.refused = 0  # of the texts of a block, this one and those after it
        self.stored: list[int] = []
        self.rows = Rows()
        self.letters = Letters()
        self.telemetry = Telemetry()
        self.writer = Writer(self._write, self.telemetry, block_wait_s=0.0)
        self.work = Work(
            lane,
            self.rows,
            self.writer,
            self.letters if lane == "fast" else None,
            DeadLetterLimit(1.0, run),
            LaneProgress(lane, "me", lambda: NOW),
            self.telemetry,
            lambda at: None,
        )
        self.tasks = [asyncio.create_task(self.work.run()), asyncio.create_task(self.writer.run())]

    def _write(self, block: Block) -> Sequence[SetAside]:
        if self.away:
            raise Transient("away")
        self.stored += [row.offset for row in block.dead_letters]
        return [SetAside("trace_texts", row, "odd") for row in block.texts[self.refused :]]

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
        stage.work.offer(event)
        await stage.until(lambda: event.acknowledged)
        assert stage.stored == [1, 2]
        assert stage.work.idle
        assert stage.telemetry.registry.get_sample_value("ragwatch_records_total", {"lane": "fast"}) == 2


@in_loop
async def test_nothing_is_kept_of_a_stored_slice() -> None:
    """Each lane at rest would hold its last one."""
    async with Stage() as stage:
        event = Event(record(1))
        event.records = Records(event.records)
        kept = weakref.ref(event.records)
        stage.work.offer(event)
        await stage.until(lambda: event.acknowledged)
        event.records = ()
        await stage.until(lambda: kept() is None)


@in_loop
async def test_nothing_is_acknowledged_while_the_sink_is_away() -> None:
    async with Stage() as stage:
        stage.away = True
        event = Event(record(1))
        stage.work.offer(event)
        await stage.until(lambda: stage.writer.blocked_since is not None)
        assert not event.acknowledged
        assert not stage.work.idle
        stage.away = False
        await stage.until(lambda: event.acknowledged)


@in_loop
async def test_dead_letters_are_safe_before_the_acknowledgement() -> None:
    async with Stage() as stage:
        poisoned, clean = Event(record(1, b"dead"), record(2)), Event(record(3))
        stage.work.offer(poisoned)
        stage.work.offer(clean)
        await stage.until(lambda: clean.acknowledged)  # the next slice does not wait for the letters of this one
        assert stage.stored == [1, 2, 3]
        assert not poisoned.acknowledged
        stage.letters.open.set()
        await stage.until(lambda: poisoned.acknowledged)
        assert stage.letters.sent == [1]
        labels = {"lane": "fast", "stage": "decode", "reason": "not_json"}
        assert stage.telemetry.registry.get_sample_value("ragwatch_dead_letters_total", labels) == 1


@in_loop
async def test_of_two_partitions_in_one_block_the_one_whose_row_was_refused_has_a_dead_letter() -> None:
    async with Stage() as stage:
        stage.letters.open.set()
        stage.away, stage.refused = True, 1
        events = [Event(record(7, b"odd", partition=partition)) for partition in (0, 1)]
        stage.work.offer(Event(record(1)))
        await stage.until(lambda: stage.writer.blocked_since is not None)
        for event in events:
            stage.work.offer(event)
        await stage.until(lambda: stage.rows.seen == [1, 7, 7])
        stage.away = False
        await stage.until(lambda: all(event.acknowledged for event in events))
        assert (stage.letters.sent, stage.letters.partitions) == ([7], [1])
        assert stage.stored == [1, 7]


@in_loop
async def test_a_bug_ends_the_work_and_acknowledges_nothing() -> None:
    async with Stage() as stage:
        event = Event(record(1, b"crash"))
        stage.work.offer(event)
        with pytest.raises(RuntimeError, match="a bug"):
            await stage.tasks[0]
        assert not event.acknowledged


@in_loop
async def test_too_many_dead_letters_end_the_work_before_any_is_sent() -> None:
    async with Stage(run=3) as stage:
        stage.letters.open.set()
        event = Event(*(record(number, b"dead") for number in range(3)))
        stage.work.offer(event)
        with pytest.raises(ConfigError, match="dead_letter_run"):
            await stage.tasks[0]
        assert not event.acknowledged
        assert stage.letters.sent == []


@in_loop
async def test_a_slice_of_a_partition_that_was_given_away_is_not_worked_off() -> None:
    async with Stage() as stage:
        lost, kept = Event(record(1)), Event(record(2))
        lost.ticket.held = False
        stage.work.offer(lost)
        stage.work.offer(kept)
        await stage.until(lambda: kept.acknowledged)
        assert stage.rows.seen == [2]


@in_loop
async def test_stopping_finishes_what_was_begun_and_begins_no_more() -> None:
    async with Stage() as stage:
        stage.away = True
        begun, waiting = Event(record(1)), Event(record(2))
        stage.work.offer(begun)
        await stage.until(lambda: stage.writer.blocked_since is not None)
        stage.work.begin_no_more()
        stage.work.offer(waiting)
        stage.away = False
        await stage.until(lambda: stage.work.idle)
        assert begun.acknowledged
        assert stage.rows.seen == [1]
        assert not waiting.acknowledged
