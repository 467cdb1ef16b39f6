"""Stores of batches and baselines: the newest state, and checkpoints to go back to.

One is in ClickHouse, one in memory for scans that must store nothing."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import numpy as np

from ragtide.drift.anomalies.batch import Batch, BatchKey, Fitted
from ragtide.drift.anomalies.metrics import MonitoredMetric
from ragtide.drift.stats import calendar
from ragtide.sinks.clickhouse.database import Database

logger = logging.getLogger(__name__)
NEWEST = 0
_CHECKPOINTS = 2  # at multiples of the span that may be gone back, so that the older one is always far enough behind
_BATCH_FILTER = "kind = {kind:String} AND lane = {lane:String} AND number = {number:UInt32}"
_BASELINE_SLOTS = 5  # by the hour: of daily ones the last five


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


class BaselineVersion(NamedTuple):
    """A baseline and the first tick that is judged by it."""

    effective_from: int
    baselines: Fitted


def load_batches(database: Database, monitored: Mapping[str, MonitoredMetric]) -> list[Batch]:
    """The newest of each, in order, with the series that are `watched` (by their metrics) as the batch watches them.

    What another release wrote is left out: its series begin anew.
    """
    found = (decode_or_warn(row, monitored, "begin anew") for row in _load_states(database, f"slot = {NEWEST}"))
    return [batch for batch in found if batch is not None]


def load_checkpoint(
    database: Database, key: BatchKey, late: int, monitored: Mapping[str, MonitoredMetric]
) -> Batch | None:
    """The newest state that has not looked at a tick yet, None where none goes so far back."""
    rows = _load_states(database, f"{_BATCH_FILTER} AND slot != {NEWEST}", key._asdict())
    fits = [row for row in rows if row["until"].timestamp() <= late]
    return decode_or_warn(max(fits, key=lambda row: row["until"]), monitored, "are not gone back to") if fits else None


def load_baselines(database: Database, key: BatchKey, until: int) -> list[BaselineVersion]:
    """The last two that held at tick `until` or before, and the last two that hold later, the oldest first: older ones
    are not gone back to. What another release wrote is left out.
    """
    rows = database.rows(
        f"SELECT holds_from, baseline FROM detector_baselines FINAL WHERE {_BATCH_FILTER} ORDER BY holds_from DESC "
        f"LIMIT 2 BY holds_from > toDateTime({until}, 'UTC')",
        key._asdict(),
    )
    found: list[BaselineVersion] = []
    why: ValueError | None = None
    for row in reversed(rows):
        try:
            found.append(BaselineVersion(int(row["holds_from"].timestamp()), Fitted.decode(row["baseline"])))
        except ValueError as error:
            why = error
    if why is not None and not found:  # said once: there is one that can be read from the next look on
        logger.warning("baselines of %s of lane %s are learned anew: %s", key.kind, key.lane, why)
    return found


class StateStore(Protocol):
    """Where a look keeps its batches and baselines; each as the functions of this name say."""

    def load_batches(self, monitored: Mapping[str, MonitoredMetric]) -> list[Batch]:
        """The newest of each, in order."""
        ...

    def load_checkpoint(self, key: BatchKey, late: int, monitored: Mapping[str, MonitoredMetric]) -> Batch | None:
        """The newest state that has not looked at a tick yet, None where none goes so far back."""
        ...

    def load_baselines(self, key: BatchKey, until: int) -> list[BaselineVersion]:
        """Those that held at that tick or hold later, the oldest first."""
        ...

    def save(self, batch: Batch, slot: int) -> None:
        """The batch as it is now is kept when this returns."""
        ...

    def save_baseline(self, key: BatchKey, baseline_version: BaselineVersion) -> None:
        """A baseline in the place of the oldest one."""
        ...


@dataclass(frozen=True, slots=True)
class ClickHouseStateStore:
    """In the database, each with the `version()` of who says so."""

    database: Database
    version: Callable[[], int]

    def load_batches(self, monitored: Mapping[str, MonitoredMetric]) -> list[Batch]:
        """As `load_batches`."""
        return load_batches(self.database, monitored)

    def load_checkpoint(self, key: BatchKey, late: int, monitored: Mapping[str, MonitoredMetric]) -> Batch | None:
        """As `load_checkpoint`."""
        return load_checkpoint(self.database, key, late, monitored)

    def load_baselines(self, key: BatchKey, until: int) -> list[BaselineVersion]:
        """As `load_baselines`."""
        return load_baselines(self.database, key, until)

    def save(self, batch: Batch, slot: int) -> None:
        """The batch as it is now is stored when this returns."""
        until, position = calendar.utc(batch.processed_until), batch.windows_version
        row = _StateRow(*batch.key, slot, until, position, batch.encode_names(), batch.encode_arrays(), self.version())
        self.database.insert("detector_states", [row])

    def save_baseline(self, key: BatchKey, baseline_version: BaselineVersion) -> None:
        """A baseline in the place of the oldest one."""
        row = _BaselineRow(
            *key,
            baseline_slot(baseline_version),
            calendar.utc(baseline_version.effective_from),
            baseline_version.baselines.encode(),
            self.version(),
        )
        self.database.insert("detector_baselines", [row])


def baseline_slot(baseline_version: BaselineVersion) -> int:
    """Where a baseline is kept: of daily ones there are the last five."""
    return baseline_version.effective_from // calendar.HOUR_S % _BASELINE_SLOTS


def checkpoint_slot(until: int, checkpoint_interval_s: int) -> int:
    """Where the checkpoint of a state is kept that has just looked at a whole multiple of the span."""
    return 1 + until // checkpoint_interval_s % _CHECKPOINTS


def _load_states(database: Database, where: str, bound: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    return database.rows(
        "SELECT kind, lane, number, until, position, names, state FROM detector_states FINAL "
        f"WHERE {where} ORDER BY kind, lane, number",
        bound,
    )


def decode_or_warn(row: dict[str, Any], monitored: Mapping[str, MonitoredMetric], otherwise: str) -> Batch | None:
    """The batch; None, and said, where another release wrote it."""
    try:
        return _decode(row, monitored)
    except ValueError as error:
        logger.warning("series %s of lane %s %s: %s", row["kind"], row["lane"], otherwise, error)
        return None


def _decode(row: dict[str, Any], monitored: Mapping[str, MonitoredMetric]) -> Batch:
    """Without series of metrics that settings have taken away, or made another detector's or lane's since."""
    key = BatchKey(row["kind"], row["lane"], row["number"])
    found = Batch.decode(key, row["names"], row["state"], int(row["until"].timestamp()), row["position"])
    watches = (monitored.get(series.metric) for series in found.series)
    found.retain(np.array([metric is not None and (metric.kind, metric.lane) == key[:2] for metric in watches], bool))
    return found


@dataclass(frozen=True, slots=True)
class InMemoryStateStore:
    """Of one process; begins empty. As texts, so that what is read is no part of what goes on."""

    _states: dict[tuple[BatchKey, int], dict[str, Any]] = field(default_factory=dict)
    _baselines: dict[tuple[BatchKey, int], BaselineVersion] = field(default_factory=dict)

    def load_batches(self, monitored: Mapping[str, MonitoredMetric]) -> list[Batch]:
        """The newest of each, in order, with the series that are `watched`."""
        rows = [row for (_, slot), row in sorted(self._states.items(), key=lambda one: one[0]) if slot == NEWEST]
        found = (decode_or_warn(row, monitored, "begin anew") for row in rows)
        return [batch for batch in found if batch is not None]

    def load_checkpoint(self, key: BatchKey, late: int, monitored: Mapping[str, MonitoredMetric]) -> Batch | None:
        """The newest state that has not looked at a tick yet, None where none goes so far back."""
        own = [row for (other, slot), row in self._states.items() if other == key and slot != NEWEST]
        fits = [row for row in own if row["until"].timestamp() <= late]
        return (
            decode_or_warn(max(fits, key=lambda row: row["until"]), monitored, "are not gone back to") if fits else None
        )

    def load_baselines(self, key: BatchKey, until: int) -> list[BaselineVersion]:
        """The last two that held at tick `until` or before, and the last two that hold later, the oldest first."""
        own = sorted(
            (baseline_version for (other, _), baseline_version in self._baselines.items() if other == key),
            key=_effective_from,
        )
        past, later = (
            [baseline_version for baseline_version in own if (baseline_version.effective_from > until) is is_later]
            for is_later in (False, True)
        )
        return [*past[-2:], *later[-2:]]

    def save(self, batch: Batch, slot: int) -> None:
        """The batch as it is now is kept when this returns."""
        self._states[batch.key, slot] = {
            **batch.key._asdict(),
            "until": calendar.utc(batch.processed_until),
            "position": batch.windows_version,
            "names": batch.encode_names(),
            "state": batch.encode_arrays(),
        }

    def save_baseline(self, key: BatchKey, baseline_version: BaselineVersion) -> None:
        """A baseline in the place of the oldest one."""
        self._baselines[key, baseline_slot(baseline_version)] = baseline_version


def _effective_from(baseline_version: BaselineVersion) -> int:
    return baseline_version.effective_from
