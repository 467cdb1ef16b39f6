"""The suite passes the memory sink, and fails each of these, which break one promise each."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from ragtide.evaluators.errors import Refused
from ragtide.sinks.memory import MemorySink
from ragtide.sinks.row_identity import Row
from ragtide.sinks.rows import Block
from ragtide.sinks.sink_contract import SinkFixture, check_sink


class Appends(MemorySink):
    """Keeps every row."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Row] = []

    def write(self, block: Block) -> None:
        super().write(block)
        self.kept += block.scores

    def rows(self, table: str) -> list[Row]:
        return list(self.kept) if table == "scores" else super().rows(table)


class LastWins(MemorySink):
    """Looks at no version."""

    def write(self, block: Block) -> None:
        for table in self._tables.values():
            table.clear()
        super().write(block)


class TakesAnything(MemorySink):
    """Refuses nothing: what it cannot store is lost."""

    def write(self, block: Block) -> None:
        with contextlib.suppress(Refused):
            super().write(block)


class KeepsDeleted(MemorySink):
    """Shows tombstones."""

    def rows(self, table: str) -> list[Row]:
        return list(self._tables[table].values())


class NeverCloses(MemorySink):
    """Goes on after close."""

    def close(self) -> None:
        return


class CutsTexts(MemorySink):
    """Stores the first megabyte."""

    def write(self, block: Block) -> None:
        super().write(replace(block, texts=[row._replace(answer=(row.answer or "")[: 1 << 20]) for row in block.texts]))


class CutsVectors(MemorySink):
    """Stores the first thousand numbers."""

    def write(self, block: Block) -> None:
        super().write(replace(block, embeddings=[row._replace(vector=row.vector[:1000]) for row in block.embeddings]))


class ForgetsMarks(MemorySink):
    """Writes rows alone."""

    def write(self, block: Block) -> None:
        super().write(replace(block, dirty=[], progress=[]))


def opener(sink_type: type[MemorySink]) -> Callable[[], contextlib.AbstractContextManager[SinkFixture]]:
    @contextlib.contextmanager
    def open_sink() -> Iterator[SinkFixture]:
        sink = sink_type()
        yield SinkFixture(sink, sink.rows)

    return open_sink


def test_memory_passes() -> None:
    check_sink(opener(MemorySink))


@pytest.mark.parametrize(
    "sink_type", [Appends, LastWins, TakesAnything, KeepsDeleted, NeverCloses, CutsTexts, CutsVectors, ForgetsMarks]
)
def test_a_broken_sink_fails(sink_type: type[MemorySink]) -> None:
    with pytest.raises(AssertionError):
        check_sink(opener(sink_type))
