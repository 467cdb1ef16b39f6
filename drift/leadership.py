"""One leader at a time writes what jobs find; whoever is not the newest leader never overwrites the newest one's."""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from threading import Lock
from typing import NamedTuple, Protocol

from ragtide.evaluators.errors import Transient
from ragtide.sinks.clickhouse.database import Database

logger = logging.getLogger(__name__)
_ATTEMPTS = 10


@dataclass(slots=True)
class Term:
    """One leader's time in office: what it writes carries `epoch`, and numbers within it that only grow.

    A job holds `deciding` from when it reads problems until what follows for them is stored: of two that open or end
    one at the same moment, the second has to know of the first.
    """

    epoch: int
    elected_at: datetime
    problem_lock: Lock = field(default_factory=Lock, repr=False, compare=False)
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    def next_version(self) -> int:
        """Greater than every version of this term and of all terms before it."""
        return min_version(self.epoch) | next(self._numbers)


def min_version(epoch: int) -> int:
    """Greater than every version of the terms before that epoch, and less than those of its leader."""
    return epoch << 32


class Leadership(Protocol):
    """Says whether this process leads; the implementation knows how the processes agree."""

    def start(self) -> None:
        """Begin to stand for election; returns at once."""
        ...

    def term(self) -> Term | None:
        """The term this process leads in, or None where another one leads. Ask before every job."""
        ...

    def trouble(self) -> str:
        """Why nobody can be elected, as far as this process sees; empty: nothing stands in the way."""
        ...

    def stop(self) -> None:
        """Give leadership up, so that another process takes over at once."""
        ...


class LeaderRow(NamedTuple):
    """Table `leaders`."""

    epoch: int
    holder: str


def elect(database: Database, holder: str, sleep: Callable[[float], None] = time.sleep) -> Term:
    """A term with a higher epoch than any before, written and read back; `holder` names this process uniquely.

    Two candidates that took the same epoch both see it and try again. Raises Transient where that does not end.
    """
    for _ in range(_ATTEMPTS):
        epoch = int(database.rows("SELECT max(epoch) AS epoch FROM leaders")[0]["epoch"]) + 1
        database.insert("leaders", [LeaderRow(epoch, holder)])
        found = database.rows(
            "SELECT holder, elected_at FROM leaders FINAL WHERE epoch = {epoch:UInt64}", {"epoch": epoch}
        )
        if [row["holder"] for row in found] == [holder]:
            logger.info("leading the jobs as %s in epoch %d", holder, epoch)
            return Term(epoch, found[0]["elected_at"])
        sleep(random.uniform(0.05, 0.5))
    raise Transient(f"leaders: another process took every one of {_ATTEMPTS} epochs at the same moment")
