"""A batch of series of one kind and lane: series, baseline sources, detector state; and its snapshot after a scan.

Stored as two texts."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from ragtide.drift.anomalies import dispatch
from ragtide.drift.anomalies.dispatch import MAX_LABELS
from ragtide.drift.anomalies.metrics import SignalKind
from ragtide.drift.anomalies.queries import Ids, NewSeries, WindowCells
from ragtide.drift.anomalies.references import FROM_HISTORY
from ragtide.drift.detectors import baseline as fits
from ragtide.drift.detectors import run_state, serialization
from ragtide.drift.detectors.arrays import Flags, Floats, Integers
from ragtide.drift.detectors.baseline import Baseline
from ragtide.drift.detectors.run_state import State
from ragtide.drift.rules.model import Series
from ragtide.evaluators.spec import Lane

MOST_SERIES = 250
_FIRST_ROLLOUT_NUMBER = 1 << 20  # from this number on
_OWN_VERSION = 1
_ROWS = 100 * _OWN_VERSION + run_state.VERSION
_FITTED = 100 * _OWN_VERSION + fits.VERSION
_SWITCH_TICKS = 3  # ticks with records of another fingerprint alone, until the series is taken to have changed
Hashes = npt.NDArray[np.uint64]


class BatchKey(NamedTuple):
    """Which batch; a series stays in its batch."""

    kind: SignalKind
    lane: Lane
    number: int

    @property
    def is_rollout(self) -> bool:
        """Whether its series are judged by the days of other models; each is in a batch of its own days too."""
        return self.number >= _FIRST_ROLLOUT_NUMBER

    def next_rollout_key(self, taken: Iterable["BatchKey"]) -> "BatchKey":
        """The first free one of the same kind and lane."""
        return self._replace(
            number=max([_FIRST_ROLLOUT_NUMBER, *(key.number + 1 for key in taken if key[:2] == self[:2])])
        )


class AlarmInterval(NamedTuple):
    """A series was in alarm in [since, until), seconds since 1970; `until` 0: it still is."""

    series: int
    since: int
    until: int


class RolloutPair(NamedTuple):
    """A series is judged by the days of the same one of another `model`, which it came after or beside at `since`."""

    series: int
    model: str
    since: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Of each series [S]: its id, its fingerprint's hash (0: none yet), for how many ticks it had other ones alone,
    what its baseline rests on (see `ragtide.drift.anomalies.references`), hashes of its labels [S, LABELS], and its
    state.
    """

    ids: Ids
    fingerprint: Hashes
    away: npt.NDArray[np.int64]
    basis: npt.NDArray[np.int64]
    labels: Hashes
    state: State


@dataclass(frozen=True, slots=True)
class Fitted:
    """Baselines of series by id, and what each was fitted for; `basis` is what it rests on."""

    ids: Ids
    fingerprint: Hashes
    basis: npt.NDArray[np.int64]
    baseline: Baseline

    def baselines_for(self, rows: Rows, kind: SignalKind) -> Baseline:
        """The baselines of these rows; blank where none was fitted for what the row rests on now."""
        blank = dispatch.blank_baseline(kind, self.baseline.size_s, 1)
        if not len(self.ids):
            return serialization.take(blank, np.zeros(len(rows.ids), np.int64))
        at, fits = self._lookup(rows)
        return serialization.take(serialization.join([self.baseline, blank]), np.where(fits, at, len(self.ids)))

    def baseline_sources_for(self, rows: Rows) -> Integers:
        """What the baselines of these rows rest on: history also of pinned ones, if the reference is not enough."""
        if not len(self.ids):
            return rows.basis.copy()
        at, fits = self._lookup(rows)
        return np.where(fits, self.basis[at], rows.basis)

    def _lookup(self, rows: Rows) -> tuple[Integers, Flags]:
        """Where the baseline of each row stands, and whether it has one."""
        order = np.argsort(self.ids)
        at = order[np.minimum(np.searchsorted(self.ids, rows.ids, sorter=order), len(order) - 1)]
        basis = self.basis[at]
        rests = (basis == rows.basis) | (basis == FROM_HISTORY) & (rows.basis < FROM_HISTORY)
        return at, (self.ids[at] == rows.ids) & (self.fingerprint[at] == rows.fingerprint) & rests

    def encode(self) -> str:
        """For the database."""
        return _encode(self, _FITTED)

    @classmethod
    def decode(cls, text: str) -> "Fitted":
        """What `text` says. Raises `ValueError` for that of another version."""
        return serialization.from_bytes(cls, base64.b64decode(text), _FITTED)


class _BatchNames(msgspec.Struct):
    series: list[Series]
    labels: list[list[str]]
    episodes: list[AlarmInterval]
    successions: list[RolloutPair] = []


@dataclass(slots=True, eq=False)
class Batch:
    """`until`: up to where the state has looked; `windows_version`: the version of windows that it knows of."""

    key: BatchKey
    series: list[Series]
    labels: list[list[str]]  # texts of `rows.labels`
    alarm_intervals: list[AlarmInterval]
    rows: Rows
    processed_until: int
    windows_version: int
    rollouts: list[RolloutPair] = field(default_factory=list)  # of each series, where the key says so

    @classmethod
    def empty(cls, key: BatchKey, tick_s: int, until: int, position: int) -> "Batch":
        """Without series."""
        nothing = np.empty(0, np.int64)
        marks = nothing.astype(np.uint64)
        state = run_state.start(dispatch.blank_baseline(key.kind, tick_s, 0))
        rows = Rows(marks, marks, nothing, nothing, np.empty((0, MAX_LABELS), np.uint64), state)
        return cls(key, [], [], [], rows, until, position)

    def rollout_of(self, series: int) -> RolloutPair | None:
        """Whom the series of that id succeeds; None where it is judged by its own days."""
        return next((one for one in self.rollouts if one.series == series), None)

    def encode_names(self) -> str:
        """For the database: all but the arrays."""
        return msgspec.json.encode(_BatchNames(self.series, self.labels, self.alarm_intervals, self.rollouts)).decode()

    def encode_arrays(self) -> str:
        """For the database: the arrays."""
        return _encode(self.rows, _ROWS)

    @classmethod
    def decode(cls, key: BatchKey, names: str, text: str, until: int, position: int) -> "Batch":
        """What was stored. Raises `ValueError` for that of another version."""
        named = msgspec.json.decode(names, type=_BatchNames)
        rows = serialization.from_bytes(Rows, base64.b64decode(text), _ROWS)
        return cls(key, named.series, named.labels, named.episodes, rows, until, position, named.successions)

    def add(self, new: Mapping[int, NewSeries], tick_s: int, *, known_before: bool) -> None:
        """Series that are seen for the first time; `known_before`: their fingerprints are those of their past."""
        count = len(new)
        state = run_state.start(dispatch.blank_baseline(self.key.kind, tick_s, count))
        state.until[:] = self.processed_until
        none = np.zeros(count, np.int64)
        ids = np.array(list(new), np.uint64)
        marks = np.array([one.fingerprint * known_before for one in new.values()], np.uint64)
        more = Rows(ids, marks, none, none, np.zeros((count, MAX_LABELS), np.uint64), state)
        self.rows = serialization.join([self.rows, more])
        self.series += [one.series for one in new.values()]
        self.labels += [[] for _ in new]

    def retain(self, remaining: Flags) -> None:
        """Only these series go on."""
        places = np.flatnonzero(remaining)
        self.rows = serialization.take(self.rows, places)
        self.series = [self.series[place] for place in places]
        self.labels = [self.labels[place] for place in places]
        ids = set(self.rows.ids.tolist())
        self.alarm_intervals = [one for one in self.alarm_intervals if one.series in ids]
        self.rollouts = [one for one in self.rollouts if one.series in ids]

    def places_of(self, ids: Ids) -> Integers:
        """Where these series stand, all of which are in the batch."""
        order = np.argsort(self.rows.ids)
        found: Integers = order[np.searchsorted(self.rows.ids, ids, sorter=order)]
        return found

    def match_versions(self, cells: WindowCells) -> tuple[Flags, Integers]:
        """Which cells of one tick are of their series' fingerprint; series that have turned to another one.

        A series keeps its fingerprint until it has had records of others alone for `_SWITCH_TICKS` ticks with records.
        """
        rows, place = self.rows, self.places_of(cells["series"])
        own = cells["fingerprint"] == rows.fingerprint[place]
        seen, on_own_version = (np.zeros(len(rows.ids), bool) for _ in range(2))
        seen[place], on_own_version[place[own]] = True, True
        rows.away[on_own_version] = 0
        rows.away[seen & ~on_own_version] += 1
        switched = seen & ~on_own_version & ((rows.fingerprint == 0) | (rows.away >= _SWITCH_TICKS))
        if not switched.any():
            return own, np.empty(0, np.int64)
        order = np.lexsort((cells["fingerprint"], cells["n"]))
        moving = order[switched[place[order]]]
        rows.fingerprint[place[moving]] = cells["fingerprint"][moving]  # of several the one with most records
        rows.away[switched] = 0
        return cells["fingerprint"] == rows.fingerprint[place], np.flatnonzero(switched)

    def reset(self, places: Integers, baseline: Baseline) -> None:
        """Nothing is known any more of these series."""
        self.rows = replace(self.rows, state=dispatch.reset_rows(self.rows.state, places, baseline))

    def record_alarms(self, before: Flags, tick: int, tick_s: int, oldest: int) -> None:
        """Keep when alarms began and ended; those that ended before `oldest` are forgotten."""
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


def _encode(rows: object, version: int) -> str:
    return base64.b64encode(serialization.to_bytes(rows, version)).decode()


class SeriesAlarm(NamedTuple):
    """A series in alarm: its place in the batch, channel, direction (1 up, -1 down), since when (seconds since 1970).

    `expected` and `observed` are means over the `records` since then, of scores within 0..1; `log_e`: natural.
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
    """A batch at the end of a look, and the baselines that judge it then."""

    batch: Batch
    baseline: Baseline

    def subset(self, places: Integers) -> "BatchSnapshot":
        """Some of its series as they are now, whatever becomes of them."""
        batch, rows = self.batch, serialization.take(self.batch.rows, places)
        series, labels = [batch.series[at] for at in places], [batch.labels[at] for at in places]
        named = Batch(
            batch.key, series, labels, [], rows, batch.processed_until, batch.windows_version, list(batch.rollouts)
        )
        return BatchSnapshot(named, serialization.take(self.baseline, places))

    @property
    def log_e(self) -> Floats:
        """The evidence of each series [S]."""
        return run_state.status(self.baseline, self.batch.rows.state).evidence

    def alarms(self) -> Iterator[SeriesAlarm]:
        """Those that are on."""
        state = self.batch.rows.state
        status = run_state.status(self.baseline, state)
        for place in np.flatnonzero(status.alarm):
            yield SeriesAlarm(
                place=int(place),
                series=self.batch.series[place],
                channel=int(status.channel[place]),
                direction=int(status.direction[place]),
                onset=int(status.onset[place]),
                records=round(float(state.alarms.records[place])),
                expected=float(status.expected[place]),
                observed=float(status.observed[place]),
                log_e=float(status.evidence[place]),
            )
