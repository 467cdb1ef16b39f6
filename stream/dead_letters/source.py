"""Dead letters as the source of a replay. Stored ones are marked, so that a killed replay continues after them."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from ragtide.stream.dead_letters.letters import Letter, Letters, Wanted, position_of
from ragtide.stream.dead_letters.values import RecordFinder
from ragtide.stream.ingest.records import Record
from ragtide.stream.replay.loop import RecordBatch
from ragtide.stream.replay.runs import Position


class LetterSource:
    """The records of these letters, with the version of their original position: newer messages still win.

    Marks tell which letters are done, so the position is empty.
    """

    def __init__(self, wanted: Wanted, letters: Sequence[Letter], values: RecordFinder) -> None:
        self.description = self.identity = str(wanted)
        self.found = 0  # of the letters, so far
        self._letters = letters
        self._values = values

    def rewind(self, position: Position) -> Position:
        """From the first letter."""
        return {}

    async def read(self, position: Position) -> AsyncGenerator[RecordBatch, None]:
        """Yield every record that still exists; `done` and `total` count letters."""
        total = len(self._letters)
        async with aclosing(self._values.read(self._letters)) as batches:
            async for records in batches:
                self.found += len(records)
                yield RecordBatch(records, {}, self.found, total)


class MarkReplayed:
    """Marks letters as replayed into `run_id` once their rows are stored; `count` is their number."""

    def __init__(self, letters: Letters, run_id: str, actor: str) -> None:
        self.count = 0
        self._letters = letters
        self._run_id = run_id
        self._actor = actor

    def __call__(self, records: Sequence[Record]) -> None:
        """Durable when this returns."""
        self._letters.mark(map(position_of, records), self._run_id, "replayed", self._actor)
        self.count += len(records)
