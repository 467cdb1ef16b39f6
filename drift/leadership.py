"""Elect one leader, which writes the results of jobs; rows of an older leader never overwrite its rows."""

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
    """The term of one leader: its rows carry `epoch`, and versions within it only grow.

    A job holds `problem_lock` from reading problems until their events are stored: of two that open or resolve one at
    the same time, the second must know of the first.
    """

    epoch: int
    elected_at: datetime
    problem_lock: Lock = field(default_factory=Lock, repr=False, compare=False)
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    def next_version(self) -> int:
        """Return a version greater than all of this term and of terms before it."""
        return min_version(self.epoch) | next(self._numbers)


def min_version(epoch: int) -> int:
    """Return a version greater than all of terms before that epoch, and less than those of its leader."""
    return epoch << 32


class Leadership(Protocol):
    """Tells whether this process leads."""

    def start(self) -> None:
        """Start to stand for election; returns at once."""
        ...

    def term(self) -> Term | None:
        """Return the term this process leads in; None if another one leads. Call before every job."""
        ...

    def trouble(self) -> str:
        """Return why no leader can be elected, as far as this process knows; empty if one can."""
        ...

    def stop(self) -> None:
        """Give up leadership, so that another process takes over at once."""
        ...


class LeaderRow(NamedTuple):
    """Table `leaders`."""

    epoch: int
    holder: str


def is_newest(database: Database, term: Term) -> bool:
    """Tell whether no later term has begun. A job that spends minutes asks between two parts of its work."""
    return int(database.rows("SELECT max(epoch) AS epoch FROM leaders")[0]["epoch"]) <= term.epoch


def elect(database: Database, holder: str, sleep: Callable[[float], None] = time.sleep) -> Term:
    """Start a term with a higher epoch than any before; `holder` names this process uniquely.

    Two candidates that took the same epoch both see it and try again. Raises `Transient` if that does not end.
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
    raise Transient(f"leader election: other processes took all {_ATTEMPTS} epochs at the same time")
