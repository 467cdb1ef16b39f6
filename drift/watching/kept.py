"""Batches and baselines in the database: the newest, and some to go back to."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import numpy as np

from drift.watching import grid
from drift.watching.batch import Batch, BatchKey, Fitted
from drift.watching.kinds import Watch
from sinks.clickhouse.database import Database

logger = logging.getLogger(__name__)
NEWEST = 0
_CHECKPOINTS = 2  # at multiples of the span that may be gone back, so that the older one is always far enough behind
_OF_BATCH = "kind = {kind:String} AND lane = {lane:String} AND number = {number:UInt32}"
_BASELINES = 5  # by the hour: of daily ones the last five


class _StateRow(NamedTuple):
    kind: str
    lane: str
    number: int
    slot: int
    until: datetime
    position: int
    names: str
    state: str
    version: int


class _BaselineRow(NamedTuple):
    kind: str
    lane: str
    number: int
    slot: int
    holds_from: datetime
    baseline: str
    version: int


class Held(NamedTuple):
    """A baseline and the first tick that is judged by it."""

    holds_from: int
    fitted: Fitted


def batches(database: Database, watched: Mapping[str, Watch]) -> list[Batch]:
    """The newest of each, in order, with the series that are `watched` (by their metrics) as the batch watches them.

    What another release wrote is left out: its series begin anew.
    """
    found = (readable(row, watched, "begin anew") for row in _states(database, f"slot = {NEWEST}"))
    return [batch for batch in found if batch is not None]


def checkpoint(database: Database, key: BatchKey, late: int, watched: Mapping[str, Watch]) -> Batch | None:
    """The newest state that has not looked at a tick yet, None where none goes so far back."""
    rows = _states(database, f"{_OF_BATCH} AND slot != {NEWEST}", key._asdict())
    fits = [row for row in rows if row["until"].timestamp() <= late]
    return readable(max(fits, key=lambda row: row["until"]), watched, "are not gone back to") if fits else None


def baselines(database: Database, key: BatchKey, until: int) -> list[Held]:
    """The last two that held at tick `until` or before, and the last two that hold later, the oldest first: older ones
    are not gone back to. What another release wrote is left out.
    """
    rows = database.rows(
        f"SELECT holds_from, baseline FROM detector_baselines FINAL WHERE {_OF_BATCH} ORDER BY holds_from DESC "
        f"LIMIT 2 BY holds_from > toDateTime({until}, 'UTC')",
        key._asdict(),
    )
    found: list[Held] = []
    why: ValueError | None = None
    for row in reversed(rows):
        try:
            found.append(Held(int(row["holds_from"].timestamp()), Fitted.of(row["baseline"])))
        except ValueError as error:
            why = error
    if why is not None and not found:  # said once: there is one that can be read from the next look on
        logger.warning("baselines of %s of lane %s are learned anew: %s", key.kind, key.lane, why)
    return found


class Kept(Protocol):
    """Where a look keeps its batches and baselines; each as the functions of this name say."""

    def batches(self, watched: Mapping[str, Watch]) -> list[Batch]:
        """The newest of each, in order."""
        ...

    def checkpoint(self, key: BatchKey, late: int, watched: Mapping[str, Watch]) -> Batch | None:
        """The newest state that has not looked at a tick yet, None where none goes so far back."""
        ...

    def baselines(self, key: BatchKey, until: int) -> list[Held]:
        """Those that held at that tick or hold later, the oldest first."""
        ...

    def keep(self, batch: Batch, slot: int) -> None:
        """The batch as it is now is kept when this returns."""
        ...

    def keep_baseline(self, key: BatchKey, held: Held) -> None:
        """A baseline in the place of the oldest one."""
        ...


@dataclass(frozen=True, slots=True)
class Stored:
    """In the database, each with the `version()` of who says so."""

    database: Database
    version: Callable[[], int]

    def batches(self, watched: Mapping[str, Watch]) -> list[Batch]:
        """As `batches`."""
        return batches(self.database, watched)

    def checkpoint(self, key: BatchKey, late: int, watched: Mapping[str, Watch]) -> Batch | None:
        """As `checkpoint`."""
        return checkpoint(self.database, key, late, watched)

    def baselines(self, key: BatchKey, until: int) -> list[Held]:
        """As `baselines`."""
        return baselines(self.database, key, until)

    def keep(self, batch: Batch, slot: int) -> None:
        """The batch as it is now is stored when this returns."""
        until, position = grid.time(batch.until), batch.position
        row = _StateRow(*batch.key, slot, until, position, batch.names(), batch.text(), self.version())
        self.database.insert("detector_states", [row])

    def keep_baseline(self, key: BatchKey, held: Held) -> None:
        """A baseline in the place of the oldest one."""
        row = _BaselineRow(*key, slot_of_baseline(held), grid.time(held.holds_from), held.fitted.text(), self.version())
        self.database.insert("detector_baselines", [row])


def slot_of_baseline(held: Held) -> int:
    """Where a baseline is kept: of daily ones there are the last five."""
    return held.holds_from // grid.HOUR_S % _BASELINES


def slot_of(until: int, span_s: int) -> int:
    """Where the checkpoint of a state is kept that has just looked at a whole multiple of the span."""
    return 1 + until // span_s % _CHECKPOINTS


def _states(database: Database, where: str, bound: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    return database.rows(
        "SELECT kind, lane, number, until, position, names, state FROM detector_states FINAL "
        f"WHERE {where} ORDER BY kind, lane, number",
        bound,
    )


def readable(row: dict[str, Any], watched: Mapping[str, Watch], else_they: str) -> Batch | None:
    """The batch; None, and said, where another release wrote it."""
    try:
        return _batch(row, watched)
    except ValueError as error:
        logger.warning("series %s of lane %s %s: %s", row["kind"], row["lane"], else_they, error)
        return None


def _batch(row: dict[str, Any], watched: Mapping[str, Watch]) -> Batch:
    """Without series of metrics that settings have taken away, or made another detector's or lane's since."""
    key = BatchKey(row["kind"], row["lane"], row["number"])
    found = Batch.of(key, row["names"], row["state"], int(row["until"].timestamp()), row["position"])
    watches = (watched.get(series.metric) for series in found.series)
    found.keep(np.array([watch is not None and (watch.kind, watch.lane) == key[:2] for watch in watches], bool))
    return found
