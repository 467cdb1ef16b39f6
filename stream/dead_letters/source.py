"""Dead letters as what a replay reads; what was stored is marked, so that a killed replay goes on after it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from ragtide.stream.dead_letters.letters import Letter, Letters, Wanted, place_of
from ragtide.stream.dead_letters.values import Values
from ragtide.stream.ingest.records import Record
from ragtide.stream.replay.loop import RecordBatch
from ragtide.stream.replay.runs import Position


class LetterSource:
    """The records of these letters, each with the version of where it first lay: whatever came later still wins.

    Marks tell what is done, so that a position says nothing: whoever goes on finds the letters left anew.
    """

    def __init__(self, wanted: Wanted, letters: Sequence[Letter], values: Values) -> None:
        self.description = self.identity = str(wanted)
        self.found = 0  # of the letters, so far
        self._letters = letters
        self._values = values

    def rewound(self, position: Position) -> Position:
        """From the first letter."""
        return {}

    async def read(self, position: Position) -> AsyncGenerator[RecordBatch, None]:
        """Every letter whose record can be found; `done` and `total` are letters."""
        total = len(self._letters)
        async with aclosing(self._values.read(self._letters)) as batches:
            async for records in batches:
                self.found += len(records)
                yield RecordBatch(records, {}, self.found, total)


class Settled:
    """Marks the letters whose rows are stored as replayed into `run_id`; `count` says how many."""

    def __init__(self, letters: Letters, run_id: str, actor: str) -> None:
        self.count = 0
        self._letters = letters
        self._run_id = run_id
        self._actor = actor

    def __call__(self, records: Sequence[Record]) -> None:
        """Durable when this returns."""
        self._letters.mark(map(place_of, records), self._run_id, "replayed", self._actor)
        self.count += len(records)
