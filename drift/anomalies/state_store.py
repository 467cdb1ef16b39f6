"""Store batches and baselines: the newest state, and checkpoints to rewind to when late records arrive.

One store is in ClickHouse, one in memory for scans that must store nothing."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import numpy as np

from ragtide.drift.anomalies.batch import BaselineSet, Batch, BatchKey
from ragtide.drift.anomalies.expected_levels import store_expected_levels
from ragtide.drift.anomalies.metrics import MonitoredMetric, SignalKind
from ragtide.drift.stats import calendar
from ragtide.evaluators.spec import Lane
from ragtide.sinks.clickhouse.database import Database

logger = logging.getLogger(__name__)
NEWEST = 0
_CHECKPOINTS = 2  # at multiples of the checkpoint interval, so that the older one is always far enough behind
_BASELINES = 5  # by the hour: of daily ones the last five
_BATCH_FILTER = "kind = {kind:String} AND lane = {lane:String} AND number = {number:UInt32}"


class _StateRow(NamedTuple):
    """A row of `detector_states`."""

    kind: SignalKind
    lane: Lane
    number: int
    slot: int
    until: datetime
    position: int
    names: str
    state: str
    version: int = 0


class _BaselineRow(NamedTuple):
    """A row of `detector_baselines`."""

    kind: str
    lane: str
    number: int
    slot: int
    effective_from: datetime
    baseline: str
    version: int


class BaselineVersion(NamedTuple):
    """Baselines and the first tick that they apply to."""

    effective_from: int
    baselines: BaselineSet

    @property
    def slot(self) -> int:
        """Slot in which they replace the oldest."""
        return self.effective_from // calendar.HOUR_S % _BASELINES


def checkpoint_slot(until: int, checkpoint_interval_s: int) -> int:
    """Return the slot of a checkpoint at a multiple of the interval."""
    return 1 + until // checkpoint_interval_s % _CHECKPOINTS


class StateStore(ABC):
    """The newest state, the checkpoints and the last baselines of every batch."""

    def load_batches(self, monitored: Mapping[str, MonitoredMetric]) -> list[Batch]:
        """Load the newest states, in order, with the series that are still monitored. Other releases' are left out."""
        found = (_decode(row, monitored, "restart") for row in self._states(None))
        return [batch for batch in found if batch is not None]

    def load_checkpoint(self, key: BatchKey, tick: int, monitored: Mapping[str, MonitoredMetric]) -> Batch | None:
        """Load the newest state that a tick is not in yet; None if no checkpoint goes so far back."""
        fits = [row for row in self._states(key) if row.until.timestamp() <= tick]
        return _decode(max(fits, key=lambda row: row.until), monitored, "are skipped as a checkpoint") if fits else None

    def save(self, batch: Batch, slot: int) -> None:
        """Store the batch as it is now."""
        until, texts = calendar.utc(batch.processed_until), (batch.encode_names(), batch.encode_arrays())
        self._save(_StateRow(*batch.key, slot, until, batch.windows_version, *texts))

    @abstractmethod
    def load_baselines(self, key: BatchKey, until: int) -> list[BaselineVersion]:
        """Load the last two effective at tick `until` or before, and the last two effective later, oldest first."""

    @abstractmethod
    def save_baseline(self, key: BatchKey, version: BaselineVersion) -> None:
        """Store a baseline in place of the oldest."""

    @abstractmethod
    def save_expected_levels(
        self, batch: Batch, version: BaselineVersion, monitored: Mapping[str, MonitoredMetric]
    ) -> None:
        """Store the levels that a baseline expects, for dashboards."""

    @abstractmethod
    def _states(self, key: BatchKey | None) -> Iterable[_StateRow]:
        """Read the newest state of every batch, in order; or the checkpoints of one batch."""

    @abstractmethod
    def _save(self, row: _StateRow) -> None: ...


@dataclass(frozen=True, slots=True)
class ClickHouseStateStore(StateStore):
    """States in the database; of several the one with the highest `version()` counts. Readers need none."""

    database: Database
    version: Callable[[], int] = lambda: 0

    def load_baselines(self, key: BatchKey, until: int) -> list[BaselineVersion]:
        """Leave out those of other releases."""
        rows = self.database.rows(
            f"SELECT effective_from, baseline FROM detector_baselines FINAL WHERE {_BATCH_FILTER} "
            f"ORDER BY effective_from DESC LIMIT 2 BY effective_from > toDateTime({until}, 'UTC')",
            key._asdict(),
        )
        found: list[BaselineVersion] = []
        unreadable: ValueError | None = None
        for row in reversed(rows):
            try:
                found.append(
                    BaselineVersion(int(row["effective_from"].timestamp()), BaselineSet.decode(row["baseline"]))
                )
            except ValueError as error:
                unreadable = error
        if unreadable is not None and not found:  # logged once: from the next scan on there is one to read
            logger.warning(
                "stored baselines (%s, lane %s) are unreadable and will be learned again: %s",
                key.kind,
                key.lane,
                unreadable,
            )
        return found

    def save_baseline(self, key: BatchKey, version: BaselineVersion) -> None:
        """Store a baseline in place of the oldest."""
        since, text = calendar.utc(version.effective_from), version.baselines.encode()
        self.database.insert("detector_baselines", [_BaselineRow(*key, version.slot, since, text, self.version())])

    def save_expected_levels(
        self, batch: Batch, version: BaselineVersion, monitored: Mapping[str, MonitoredMetric]
    ) -> None:
        """Store them in `expected_levels`; the row with the highest version counts."""
        effective_from, baselines = version
        store_expected_levels(self.database, batch, monitored, baselines, effective_from, self.version())

    def _states(self, key: BatchKey | None) -> Iterable[_StateRow]:
        where = f"slot = {NEWEST}" if key is None else f"{_BATCH_FILTER} AND slot != {NEWEST}"
        rows = self.database.rows(
            "SELECT kind, lane, number, slot, until, position, names, state FROM detector_states FINAL "
            f"WHERE {where} ORDER BY kind, lane, number",
            None if key is None else key._asdict(),
        )
        return [_StateRow(**row) for row in rows]

    def _save(self, row: _StateRow) -> None:
        self.database.insert("detector_states", [row._replace(version=self.version())])


@dataclass(frozen=True, slots=True)
class InMemoryStateStore(StateStore):
    """States of one process; empty at first."""

    _rows: dict[tuple[BatchKey, int], _StateRow] = field(default_factory=dict)
    _baselines: dict[tuple[BatchKey, int], BaselineVersion] = field(default_factory=dict)

    def load_baselines(self, key: BatchKey, until: int) -> list[BaselineVersion]:
        """Load as the database does."""
        own = (version for (other, _), version in self._baselines.items() if other == key)
        versions = sorted(own, key=lambda version: version.effective_from)
        past = [version for version in versions if version.effective_from <= until]
        return [*past[-2:], *versions[len(past) :][-2:]]

    def save_baseline(self, key: BatchKey, version: BaselineVersion) -> None:
        """Store a baseline in place of the oldest."""
        self._baselines[key, version.slot] = version

    def save_expected_levels(
        self, batch: Batch, version: BaselineVersion, monitored: Mapping[str, MonitoredMetric]
    ) -> None:
        """Store nothing: only dashboards read them."""

    def _states(self, key: BatchKey | None) -> Iterable[_StateRow]:
        rows = (row for _, row in sorted(self._rows.items(), key=lambda item: item[0]))
        return [row for row in rows if (row.slot == NEWEST if key is None else row.slot != NEWEST and row[:3] == key)]

    def _save(self, row: _StateRow) -> None:
        self._rows[BatchKey(*row[:3]), row.slot] = row


def _decode(row: _StateRow, monitored: Mapping[str, MonitoredMetric], otherwise: str) -> Batch | None:
    """Return the batch without series whose metric is no longer monitored in its kind and lane.

    Return None, and log `otherwise`, if another release wrote it.
    """
    key = BatchKey(row.kind, row.lane, row.number)
    try:
        found = Batch.decode(key, row.names, row.state, int(row.until.timestamp()), row.position)
    except ValueError as error:
        logger.warning("stored series (%s, lane %s) are unreadable and %s: %s", row.kind, row.lane, otherwise, error)
        return None
    metrics = (monitored.get(series.metric) for series in found.series)
    found.retain(np.array([metric is not None and (metric.kind, metric.lane) == key[:2] for metric in metrics], bool))
    return found
