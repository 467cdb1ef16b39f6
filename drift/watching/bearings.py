"""What a look for changes goes by besides windows: of the system that runs, or of a moment that is over."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from drift.settings import WindowSettings
from drift.watching.kept import Kept, Stored
from drift.watching.reference import References, references
from drift.watching.seen import Seen
from drift.windows import watermark
from sinks.clickhouse.database import Database


class Bearings(Protocol):
    """How far lanes are closed, what people said, and where states are kept."""

    @property
    def kept(self) -> Kept:
        """States and baselines."""
        ...

    def closed(self, now: datetime) -> Mapping[str, datetime]:
        """Up to when windows of each lane are closed, of lanes that somebody runs."""
        ...

    def references(self, now: datetime) -> References:
        """All that people had said by then."""
        ...

    def saw(self, seen: Seen) -> None:
        """A batch has looked at one more tick. It goes on with the next: what is to be kept of it is copied."""
        ...


@dataclass(frozen=True, slots=True)
class Running:
    """Of the system that runs; `version()` says whose word it is (see `Term.next_version`)."""

    database: Database
    windows: WindowSettings
    version: Callable[[], int]

    @property
    def kept(self) -> Stored:
        """In the database."""
        return Stored(self.database, self.version)

    def closed(self, now: datetime) -> Mapping[str, datetime]:
        """As roll-ups stored it."""
        return watermark.closed(self.database, self.windows, now)

    def references(self, now: datetime) -> References:
        """By now."""
        return references(self.database)

    def saw(self, seen: Seen) -> None:
        """What is told is told of the end of a look."""
