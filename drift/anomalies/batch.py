"""A batch of series of one kind and lane with their detector state, its baselines, and its snapshot after a tick."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from ragtide.drift.anomalies.cells import MAX_LABELS, blank_baseline, reset_rows
from ragtide.drift.anomalies.metrics import SignalKind
from ragtide.drift.anomalies.queries import Ids, NewSeries, WindowCells
from ragtide.drift.anomalies.references import FROM_HISTORY
from ragtide.drift.array_types import Flags, Floats, Integers
from ragtide.drift.detectors import (
    BASELINE_VERSION,
    STATE_VERSION,
    Baseline,
    State,
    detector_status,
    serialization,
    start_state,
)
from ragtide.drift.rules import Series
from ragtide.evaluators.spec import Lane

MAX_SERIES = 250
_FIRST_ROLLOUT_NUMBER = 1 << 20
_OWN_VERSION = 2
_ROWS = 100 * _OWN_VERSION + STATE_VERSION
_BASELINES = 100 * _OWN_VERSION + BASELINE_VERSION
_SWITCH_TICKS = 3
Hashes = npt.NDArray[np.uint64]


class BatchKey(NamedTuple):
    """Name of a batch. A series stays in its batch."""

    kind: SignalKind
    lane: Lane
    number: int

    @property
    def is_rollout(self) -> bool:
        """Whether its series are compared with other models; each is also in a batch with a baseline of its own."""
        return self.number >= _FIRST_ROLLOUT_NUMBER

    def next_rollout_key(self, taken: Iterable["BatchKey"]) -> "BatchKey":
        """Return the first free key of the same kind and lane."""
        numbers = (key.number + 1 for key in taken if key[:2] == self[:2])
        return self._replace(number=max([_FIRST_ROLLOUT_NUMBER, *numbers]))


class AlarmInterval(NamedTuple):
    """A series in alarm in [since, until), seconds since 1970. `until` is 0 while it is."""

    series: int
    since: int
    until: int


class RolloutPair(NamedTuple):
    """A series that is compared with the same one of another `model`, after or beside which it appeared at `since`."""

    series: int
    model: str
    since: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Of each series [S]: id, hash of its evaluator version (0: none yet), ticks in a row with other versions alone,
    source of its baseline (see `references`), hashes of its labels [S, LABELS], and detector state.
    """

    ids: Ids
    fingerprint: Hashes
    ticks_on_other_version: npt.NDArray[np.int64]
    baseline_source: npt.NDArray[np.int64]
    labels: Hashes
    state: State

    def matching_version(self, cells: WindowCells) -> tuple[WindowCells, Integers]:
        """Return the cells of these series' own evaluator versions, and the position of each cell's series."""
        place = _find(self.ids, cells["series"])
        own = cells["fingerprint"] == self.fingerprint[place]
        return cells[own], place[own]


@dataclass(frozen=True, slots=True)
class BaselineSet:
    """Baselines of series by id, and what each was fitted for: evaluator version and source (`baseline_source`)."""

    ids: Ids
    fingerprint: Hashes
    baseline_source: npt.NDArray[np.int64]
    baseline: Baseline

    @classmethod
    def of(cls, rows: Rows, basis: Integers, baseline: Baseline) -> "BaselineSet":
        """Baselines of these rows as they are now."""
        return cls(rows.ids.copy(), rows.fingerprint.copy(), basis, baseline)

    def aligned_to(self, batch: "Batch") -> "BaselineSet":
        """Return the baselines of the batch, row by row; blank ones if none fits a series' version and source now.

        A pinned series may have a baseline from history, if its reference is too small.
        """
        rows, blank = batch.rows, blank_baseline(batch.key.kind, self.baseline.size_s, 1)
        if not len(self.ids):
            return BaselineSet.of(
                rows, rows.baseline_source.copy(), serialization.take(blank, np.zeros(len(rows.ids), np.int64))
            )
        at = _find(self.ids, rows.ids)
        basis = self.baseline_source[at]
        same_source = (basis == rows.baseline_source) | (basis == FROM_HISTORY) & (rows.baseline_source < FROM_HISTORY)
        fits = (self.ids[at] == rows.ids) & (self.fingerprint[at] == rows.fingerprint) & same_source
        places = np.where(fits, at, len(self.ids))
        baseline = serialization.take(serialization.join([self.baseline, blank]), places)
        return BaselineSet.of(rows, np.where(fits, basis, rows.baseline_source), baseline)

    def encode(self) -> str:
        """Return the text for the database."""
        return _encode(self, _BASELINES)

    @classmethod
    def decode(cls, text: str) -> "BaselineSet":
        """Restore what `encode` returned. Raises `ValueError` for another version."""
        return serialization.from_bytes(cls, base64.b64decode(text), _BASELINES)


class _BatchNames(msgspec.Struct):
    series: list[Series]
    labels: list[list[str]]
    alarm_intervals: list[AlarmInterval]
    rollouts: list[RolloutPair] = []


@dataclass(slots=True, eq=False)
class Batch:
    """`processed_until`: end of the last tick in the state. `windows_version`: newest version of windows in it."""

    key: BatchKey
    series: list[Series]
    labels: list[list[str]]  # texts of `rows.labels`
    alarm_intervals: list[AlarmInterval]
    rows: Rows
    processed_until: int
    windows_version: int
    rollouts: list[RolloutPair] = field(default_factory=list)  # one per series of a rollout batch

    @classmethod
    def empty(cls, key: BatchKey, tick_s: int, until: int) -> "Batch":
        """Make a batch without series."""
        nothing = np.empty(0, np.int64)
        marks = nothing.astype(np.uint64)
        state = start_state(blank_baseline(key.kind, tick_s, 0))
        rows = Rows(marks, marks, nothing, nothing, np.empty((0, MAX_LABELS), np.uint64), state)
        return cls(key, [], [], [], rows, until, 0)

    def rollout_of(self, series: int) -> RolloutPair | None:
        """Return what the series of that id is compared with; None if with its own baseline."""
        return next((one for one in self.rollouts if one.series == series), None)

    def encode_names(self) -> str:
        """Return all but the arrays as text for the database."""
        return msgspec.json.encode(_BatchNames(self.series, self.labels, self.alarm_intervals, self.rollouts)).decode()

    def encode_arrays(self) -> str:
        """Return the arrays as text for the database."""
        return _encode(self.rows, _ROWS)

    @classmethod
    def decode(cls, key: BatchKey, names: str, text: str, until: int, position: int) -> "Batch":
        """Restore a batch. Raises `ValueError` for another version."""
        named = msgspec.json.decode(names, type=_BatchNames)
        rows = serialization.from_bytes(Rows, base64.b64decode(text), _ROWS)
        return cls(key, named.series, named.labels, named.alarm_intervals, rows, until, position, named.rollouts)

    def places_of(self, cells: WindowCells) -> Integers:
        """Return the position of each cell's series."""
        return _find(self.rows.ids, cells["series"])

    def add(self, new: Mapping[int, NewSeries], tick_s: int, *, known_before: bool) -> None:
        """Add new series. With `known_before` they start with their last evaluator version, else with none."""
        count = len(new)
        state = start_state(blank_baseline(self.key.kind, tick_s, count))
        state.until[:] = self.processed_until
        none = np.zeros(count, np.int64)
        ids = np.array(list(new), np.uint64)
        marks = np.array([one.fingerprint * known_before for one in new.values()], np.uint64)
        more = Rows(ids, marks, none, none, np.zeros((count, MAX_LABELS), np.uint64), state)
        self.rows = serialization.join([self.rows, more])
        self.series += [one.series for one in new.values()]
        self.labels += [[] for _ in new]

    def retain(self, remaining: Flags) -> None:
        """Drop all other series."""
        places = np.flatnonzero(remaining)
        self.rows = serialization.take(self.rows, places)
        self.series = [self.series[place] for place in places]
        self.labels = [self.labels[place] for place in places]
        ids = set(self.rows.ids.tolist())
        self.alarm_intervals = [one for one in self.alarm_intervals if one.series in ids]
        self.rollouts = [one for one in self.rollouts if one.series in ids]

    def match_versions(self, cells: WindowCells) -> tuple[WindowCells, Integers, Integers]:
        """Return a tick's cells of their series' own evaluator versions, their positions, and the switched series.

        A series switches after `_SWITCH_TICKS` ticks with records of other versions alone.
        """
        rows, place = self.rows, _find(self.rows.ids, cells["series"])
        present, on_own_version = (np.zeros(len(rows.ids), bool) for _ in range(2))
        present[place] = True
        on_own_version[place[cells["fingerprint"] == rows.fingerprint[place]]] = True
        rows.ticks_on_other_version[on_own_version] = 0
        rows.ticks_on_other_version[present & ~on_own_version] += 1
        switched = (
            present & ~on_own_version & ((rows.fingerprint == 0) | (rows.ticks_on_other_version >= _SWITCH_TICKS))
        )
        if switched.any():
            order = np.lexsort((cells["fingerprint"], cells["n"]))
            moving = order[switched[place[order]]]
            rows.fingerprint[place[moving]] = cells["fingerprint"][moving]  # the last one wins: that with most records
            rows.ticks_on_other_version[switched] = 0
        return *rows.matching_version(cells), np.flatnonzero(switched)

    def reset(self, places: Integers, baseline: Baseline) -> None:
        """Start these series anew."""
        self.rows = replace(self.rows, state=reset_rows(self.rows.state, places, baseline))

    def record_alarms(self, before: Flags, tick: int, tick_s: int, oldest: int) -> None:
        """Record the alarms that a tick opened and closed; drop those that ended before `oldest`."""
        alarms = self.rows.state.alarms
        began, ended = np.flatnonzero(alarms.on & ~before), np.flatnonzero(before & ~alarms.on)
        over = set(self.rows.ids[ended].tolist())
        remaining = [
            one._replace(until=tick + tick_s) if one.series in over and not one.until else one
            for one in self.alarm_intervals
        ]
        remaining = [one for one in remaining if not one.until or one.until > oldest]
        remaining += [AlarmInterval(int(self.rows.ids[at]), int(alarms.onset[at]) * tick_s, 0) for at in began]
        self.alarm_intervals = remaining


def _find(ids: Ids, wanted: Ids) -> Integers:
    """Return the position of each wanted id; of an absent one some other's."""
    order = np.argsort(ids)
    found: Integers = order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(order) - 1)]
    return found


def _encode(rows: object, version: int) -> str:
    return base64.b64encode(serialization.to_bytes(rows, version)).decode()


class SeriesAlarm(NamedTuple):
    """A series in alarm: position in the batch, channel, direction (1 up, -1 down), onset (seconds since 1970).

    `expected` and `observed` are means over the `records` since the onset, with scores scaled to 0..1.
    """

    place: int
    series: Series
    channel: int
    direction: int
    onset: int
    records: int
    expected: float
    observed: float
    log_e: float


@dataclass(frozen=True, slots=True)
class BatchSnapshot:
    """A batch after a tick, and its baselines at that tick."""

    batch: Batch
    baseline: Baseline

    def subset(self, places: Integers) -> "BatchSnapshot":
        """Copy some of its series as they are now."""
        batch = replace(
            self.batch,
            series=[self.batch.series[at] for at in places],
            labels=[self.batch.labels[at] for at in places],
            alarm_intervals=[],
            rows=serialization.take(self.batch.rows, places),
            rollouts=list(self.batch.rollouts),
        )
        return BatchSnapshot(batch, serialization.take(self.baseline, places))

    @property
    def log_e(self) -> Floats:
        """Log e-value of each series [S]."""
        return detector_status(self.baseline, self.batch.rows.state).evidence

    def alarms(self) -> Iterator[SeriesAlarm]:
        """Return the alarms that are on."""
        state = self.batch.rows.state
        status = detector_status(self.baseline, state)
        for place in np.flatnonzero(status.alarm).tolist():
            yield SeriesAlarm(
                place=place,
                series=self.batch.series[place],
                channel=int(status.channel[place]),
                direction=int(status.direction[place]),
                onset=int(status.onset[place]),
                records=round(float(state.alarms.records[place])),
                expected=float(status.expected[place]),
                observed=float(status.observed[place]),
                log_e=float(status.evidence[place]),
            )
