"""A refused block: exactly the bad rows are set aside, and a sink that is away loses nothing."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.errors import Refused, Transient
from ragtide.sinks.bisect import write_or_reject
from ragtide.sinks.memory import MemorySink
from ragtide.sinks.row_identity import block_of, rows_of
from ragtide.sinks.rows import Block, DirtyRow, EmbeddingRow, ProgressRow, ScoreRow, TextRow, TraceRow
from ragtide.sinks.sample import NOON, RUN, embedding, score, text, trace

BAD = "\ud800"


@given(bad=st.sets(st.integers(0, 59)), count=st.integers(0, 60), days=st.integers(1, 5))
def test_exactly_the_bad_rows(bad: set[int], count: int, days: int) -> None:
    block = Block(progress=[ProgressRow("fast", "rag.traces", 0, "w", NOON, count, 0)])
    for number in range(count):
        time = NOON.replace(day=1 + number % days)
        reason = BAD if number in bad else ""
        match number % 4:
            case 0:
                block.scores.append(score(f"t{number}", time=time, reason=reason))
            case 1:
                block.traces.append(trace(f"t{number}", time=time, error=reason))
            case 2:
                block.texts.append(text(f"t{number}", time=time, answer=reason))
            case 3:
                vector = [math.nan] if reason else [0.5]
                block.embeddings.append(embedding(f"t{number}", time=time, vector=vector))
    sink = MemorySink()
    aside = write_or_reject(sink, block)
    ids = [item.row.trace_id for item in aside if isinstance(item.row, ScoreRow | TraceRow | TextRow | EmbeddingRow)]
    assert sorted(ids) == sorted(f"t{number}" for number in bad if number < count)
    stored = [row for table in ("traces", "trace_texts", "scores", "embeddings") for row in sink.rows(table)]
    assert len(stored) == count - len(ids)
    assert sink.rows("progress") == list(block.progress)


def test_a_bad_mark_is_set_aside_too() -> None:
    minute = NOON.replace(second=0, microsecond=0)
    marks = [DirtyRow(RUN, app, "prod", "fast", minute, "m") for app in ("a", BAD, "c")]
    sink = MemorySink()
    [aside] = write_or_reject(sink, Block(traces=[trace("t")], dirty=marks))
    assert (aside.table, aside.row) == ("dirty_windows", marks[1])
    assert sink.rows("dirty_windows") == [marks[0], marks[2]]


class OncePerDay(MemorySink):
    """Takes rows of one day at a time, as a server with a limit on partitions does."""

    def write(self, block: Block) -> None:
        if len({row.time.date() for row in block.scores}) > 1:
            raise Refused("too many days")
        super().write(block)


def test_a_block_of_many_days_is_split_and_nothing_set_aside() -> None:
    sink = OncePerDay()
    days = [NOON.replace(day=day) for day in range(1, 29)]
    assert write_or_reject(sink, Block(scores=[score(f"t{time.day}", time=time) for time in days])) == []
    assert len(sink.rows("scores")) == len(days)


class AwayAfter(MemorySink):
    """Is away after so many writes."""

    def __init__(self, writes: int) -> None:
        super().__init__()
        self.left = writes

    def write(self, block: Block) -> None:
        if self.left == 0:
            raise Transient("away")
        self.left -= 1
        super().write(block)


@pytest.mark.parametrize("writes", range(8))
def test_a_sink_that_goes_away_half_way_is_tried_again(writes: int) -> None:
    block = Block(scores=[score(f"t{number}", reason=BAD if number == 5 else "") for number in range(8)])
    sink = AwayAfter(writes)
    for _ in range(2):
        try:
            aside = write_or_reject(sink, block)
        except Transient:
            sink.left = -1
            continue
        break
    assert [item.row for item in aside] == [block.scores[5]]
    assert len(sink.rows("scores")) == 7


def test_a_block_is_its_rows() -> None:
    def count(block: Block) -> Sequence[int]:
        return [len(rows) for rows in rows_of(block).values()]

    whole = Block(traces=[trace("a"), trace("b")], texts=[text("a")], scores=[score("a")], embeddings=[embedding("a")])
    rows = [row for table in rows_of(whole).values() for row in table]
    assert block_of(rows) == whole
    assert count(whole) == [2, 1, 1, 1]
    assert len(whole) == 5
