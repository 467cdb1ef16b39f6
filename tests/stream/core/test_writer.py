"""What is put is written in order, together, for ever until it is taken, and never more than fits waits."""

import asyncio
import random
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import pytest

from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.sinks.bisect import RejectedRow
from ragtide.sinks.rows import Block
from ragtide.stream.telemetry.registry import Telemetry
from ragtide.stream.worker.writer import Write, Writer
from tests.stream.core.loop import in_loop
from tests.stream.core.rows import block_of, dead, progress


class Recorder:
    """Remembers the offsets of each block; does first what `answers` says, in order."""

    def __init__(self, *answers: Exception) -> None:
        self.blocks: list[list[int]] = []
        self.progress: list[list[tuple[int, int]]] = []
        self.attempts = 0
        self._answers = list(answers)

    def __call__(self, block: Block) -> Sequence[RejectedRow]:
        self.attempts += 1
        if self._answers:
            raise self._answers.pop(0)
        self.blocks.append([row.offset for row in block.dead_letters])
        self.progress.append([(row.partition, row.offset) for row in block.progress])
        return []


class Word(str):
    """Can be referred to weakly."""


def writer(write: Write, *, block_wait_s: float = 0.02, **limits: Any) -> Writer:
    return Writer(write, Telemetry(), block_wait_s=block_wait_s, rng=random.Random(1), **limits)


@in_loop
async def test_store_returns_once_it_is_durable() -> None:
    written = Recorder()
    one = writer(written)
    running = asyncio.create_task(one.run())
    assert await one.store(block_of(1, 2)) == []
    assert written.blocks == [[1, 2]]
    one.close()
    await running


@in_loop
async def test_nothing_is_kept_of_a_stored_block() -> None:
    """The next one may be long in filling."""
    one = writer(Recorder())
    running = asyncio.create_task(one.run())
    word = Word("odd")
    kept = weakref.ref(word)
    await one.store(Block(dead_letters=[dead(1)._replace(reason=word)]))
    del word
    for _ in range(200):
        if kept() is None:
            break
        await asyncio.sleep(0.01)
    assert kept() is None
    one.close()
    await running


@in_loop
async def test_small_blocks_are_written_together_and_in_order() -> None:
    written = Recorder()
    one = writer(written, block_wait_s=0.1)
    stored = [await one.put(block_of(number)) for number in range(100)]
    running = asyncio.create_task(one.run())
    await asyncio.gather(*stored)
    assert written.blocks == [list(range(100))]
    one.close()
    await running


@in_loop
async def test_nothing_waits_where_the_source_runs_out_of_room() -> None:
    written = Recorder()
    one = writer(written, block_wait_s=3600)
    room = False
    one.under_pressure = lambda: not room
    running = asyncio.create_task(one.run())
    assert await asyncio.wait_for(one.store(block_of(1)), 10) == []
    room = True
    waiting = await one.put(block_of(2))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    one.close()
    await running
    assert written.blocks == [[1], [2]]


@in_loop
async def test_a_full_block_does_not_wait() -> None:
    written = Recorder()
    one = writer(written, block_rows=10, block_wait_s=3600)
    stored = [await one.put(block_of(*range(start, start + 5))) for start in range(0, 20, 5)]
    running = asyncio.create_task(one.run())
    await asyncio.wait_for(asyncio.gather(*stored), 10)
    assert written.blocks == [list(range(10)), list(range(10, 20))]
    one.close()
    await running


@in_loop
async def test_closing_writes_what_waits() -> None:
    written = Recorder()
    one = writer(written, block_wait_s=3600)
    stored = await one.put(block_of(7))
    one.close()
    await asyncio.wait_for(one.run(), 10)
    assert stored.result() == []
    assert written.blocks == [[7]]


@in_loop
async def test_transient_is_tried_again_until_it_works() -> None:
    written = Recorder(*[Transient("away")] * 3)
    one = writer(written)
    running = asyncio.create_task(one.run())
    await asyncio.wait_for(one.store(block_of(1)), 10)
    assert written.attempts == 4
    assert written.blocks == [[1]]
    assert one.blocked_since is None
    assert one.telemetry.registry.get_sample_value("ragtide_write_retries_total") == 3
    one.close()
    await running


@in_loop
async def test_while_the_sink_is_away_it_is_known_since_when() -> None:
    gone = threading.Event()

    def away(block: Block) -> Sequence[RejectedRow]:
        gone.set()
        raise Transient("away")

    one = writer(away)
    running = asyncio.create_task(one.run())
    stored = await one.put(block_of(1))
    for _ in range(200):
        if one.blocked_since is not None:
            break
        await asyncio.sleep(0.01)
    assert one.blocked_since is not None
    assert not stored.done()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@in_loop
async def test_no_more_than_fits_waits() -> None:
    written = Recorder()
    one = writer(written, max_pending_rows=10, block_wait_s=0.0)
    await one.put(block_of(*range(10)))
    late = asyncio.create_task(one.put(block_of(10)))
    await asyncio.sleep(0.05)
    assert not late.done()
    running = asyncio.create_task(one.run())
    stored = await asyncio.wait_for(late, 10)
    await asyncio.wait_for(stored, 10)
    assert written.blocks == [list(range(10)), [10]]
    one.close()
    await running


@in_loop
async def test_what_is_set_aside_goes_to_the_block_that_it_came_from() -> None:
    def write(block: Block) -> Sequence[RejectedRow]:
        return [RejectedRow("dead_letters", row, "odd") for row in block.dead_letters if row.offset % 2]

    one = writer(write)
    first, second = await one.put(block_of(1, 2)), await one.put(block_of(4, 5, 7))
    running = asyncio.create_task(one.run())
    assert [found.row for found in await first] == [dead(1)]
    assert [found.row for found in await second] == [dead(5), dead(7)]
    value = one.telemetry.registry.get_sample_value("ragtide_rows_set_aside_total", {"table": "dead_letters"})
    assert value == 3
    one.close()
    await running


@in_loop
async def test_of_the_progress_of_a_partition_the_last_is_written() -> None:
    written = Recorder()
    one = writer(written)
    for partition, offset in ((0, 5), (1, 3), (0, 9)):
        await one.put(Block(progress=[progress(partition, offset)]))
    one.close()
    await one.run()
    assert written.progress == [[(0, 9), (1, 3)]]


@in_loop
async def test_an_error_that_waiting_does_not_mend_ends_the_writer() -> None:
    one = writer(Recorder(ConfigError("the password is wrong")))
    await one.put(block_of(1))
    with pytest.raises(ConfigError, match="password"):
        await asyncio.wait_for(one.run(), 10)
