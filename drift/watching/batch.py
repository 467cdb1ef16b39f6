"""A batch of series of one kind and lane: who they are, what each rests on, their state. Stored as two texts."""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from drift.detectors import baseline as fits
from drift.detectors import stored, watching
from drift.detectors.baseline import Baseline
from drift.detectors.series import Flags, Integers
from drift.detectors.watching import State
from drift.rules.series import Series
from drift.watching import detecting
from drift.watching.detecting import LABELS
from drift.watching.kinds import Kind
from drift.watching.reading import Cells, Ids, Newcomer
from drift.watching.reference import HISTORY
from evaluators.spec import Lane

MOST_SERIES = 250
_SUCCESSORS = 1 << 20  # from this number on
_OWN_VERSION = 1
_ROWS = 100 * _OWN_VERSION + watching.VERSION
_FITTED = 100 * _OWN_VERSION + fits.VERSION
_AWAY = 3  # ticks with records of another fingerprint alone, until the series is taken to have changed
Marks = npt.NDArray[np.uint64]


class BatchKey(NamedTuple):
    """Which batch; a series stays in its batch."""

    kind: Kind
    lane: Lane
    number: int

    @property
    def of_successors(self) -> bool:
        """Whether its series are judged by the days of other models; each is in a batch of its own days too."""
        return self.number >= _SUCCESSORS

    def next_of_successors(self, taken: Iterable["BatchKey"]) -> "BatchKey":
        """The first free one of the same kind and lane."""
        return self._replace(number=max([_SUCCESSORS, *(key.number + 1 for key in taken if key[:2] == self[:2])]))


class Episode(NamedTuple):
    """A series was in alarm in [since, until), seconds since 1970; `until` 0: it still is."""

    series: int
    since: int
    until: int


class Succession(NamedTuple):
    """A series is judged by the days of the same one of another `model`, which it came after or beside at `since`."""

    series: int
    model: str
    since: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Of each series [S]: its id, its fingerprint's hash (0: none yet), for how many ticks it had other ones alone,
    what its baseline rests on (see `drift.watching.reference`), hashes of its labels [S, LABELS], and its state.
    """

    ids: Ids
    fingerprint: Marks
    away: npt.NDArray[np.int64]
    basis: npt.NDArray[np.int64]
    labels: Marks
    state: State


@dataclass(frozen=True, slots=True)
class Fitted:
    """Baselines of series by id, and what each was fitted for; `basis` is what it rests on."""

    ids: Ids
    fingerprint: Marks
    basis: npt.NDArray[np.int64]
    baseline: Baseline

    def matched(self, rows: Rows, kind: Kind) -> Baseline:
        """The baselines of these rows; blank where none was fitted for what the row rests on now."""
        blank = detecting.blank(kind, self.baseline.size_s, 1)
        if not len(self.ids):
            return stored.take(blank, np.zeros(len(rows.ids), np.int64))
        at, fits = self._found(rows)
        return stored.take(stored.join([self.baseline, blank]), np.where(fits, at, len(self.ids)))

    def basis_of(self, rows: Rows) -> Integers:
        """What the baselines of these rows rest on: history also of pinned ones, if the reference is not enough."""
        if not len(self.ids):
            return rows.basis.copy()
        at, fits = self._found(rows)
        return np.where(fits, self.basis[at], rows.basis)

    def _found(self, rows: Rows) -> tuple[Integers, Flags]:
        """Where the baseline of each row stands, and whether it has one."""
        order = np.argsort(self.ids)
        at = order[np.minimum(np.searchsorted(self.ids, rows.ids, sorter=order), len(order) - 1)]
        basis = self.basis[at]
        rests = (basis == rows.basis) | (basis == HISTORY) & (rows.basis < HISTORY)
        return at, (self.ids[at] == rows.ids) & (self.fingerprint[at] == rows.fingerprint) & rests

    def text(self) -> str:
        """For the database."""
        return _text(self, _FITTED)

    @classmethod
    def of(cls, text: str) -> "Fitted":
        """What `text` says. Raises `ValueError` for that of another version."""
        return stored.from_bytes(cls, base64.b64decode(text), _FITTED)


class _Named(msgspec.Struct):
    series: list[Series]
    labels: list[list[str]]
    episodes: list[Episode]
    successions: list[Succession] = []


@dataclass(slots=True, eq=False)
class Batch:
    """`until`: up to where the state has looked; `position`: the version of windows that it knows of."""

    key: BatchKey
    series: list[Series]
    labels: list[list[str]]  # texts of `rows.labels`
    episodes: list[Episode]
    rows: Rows
    until: int
    position: int
    successions: list[Succession] = field(default_factory=list)  # of each series, where the key says so

    @classmethod
    def empty(cls, key: BatchKey, tick_s: int, until: int, position: int) -> "Batch":
        """Without series."""
        nobody = np.empty(0, np.int64)
        marks = nobody.astype(np.uint64)
        state = watching.start(detecting.blank(key.kind, tick_s, 0))
        rows = Rows(marks, marks, nobody, nobody, np.empty((0, LABELS), np.uint64), state)
        return cls(key, [], [], [], rows, until, position)

    def succession(self, series: int) -> Succession | None:
        """Whom the series of that id succeeds; None where it is judged by its own days."""
        return next((one for one in self.successions if one.series == series), None)

    def names(self) -> str:
        """For the database: all but the arrays."""
        return msgspec.json.encode(_Named(self.series, self.labels, self.episodes, self.successions)).decode()

    def text(self) -> str:
        """For the database: the arrays."""
        return _text(self.rows, _ROWS)

    @classmethod
    def of(cls, key: BatchKey, names: str, text: str, until: int, position: int) -> "Batch":
        """What was stored. Raises `ValueError` for that of another version."""
        named = msgspec.json.decode(names, type=_Named)
        rows = stored.from_bytes(Rows, base64.b64decode(text), _ROWS)
        return cls(key, named.series, named.labels, named.episodes, rows, until, position, named.successions)

    def add(self, new: Mapping[int, Newcomer], tick_s: int, *, known_before: bool) -> None:
        """Series that are seen for the first time; `known_before`: their fingerprints are those of their past."""
        count = len(new)
        state = watching.start(detecting.blank(self.key.kind, tick_s, count))
        state.until[:] = self.until
        none = np.zeros(count, np.int64)
        ids = np.array(list(new), np.uint64)
        marks = np.array([one.fingerprint * known_before for one in new.values()], np.uint64)
        more = Rows(ids, marks, none, none, np.zeros((count, LABELS), np.uint64), state)
        self.rows = stored.join([self.rows, more])
        self.series += [one.series for one in new.values()]
        self.labels += [[] for _ in new]

    def keep(self, kept: Flags) -> None:
        """Only these series go on."""
        places = np.flatnonzero(kept)
        self.rows = stored.take(self.rows, places)
        self.series = [self.series[place] for place in places]
        self.labels = [self.labels[place] for place in places]
        ids = set(self.rows.ids.tolist())
        self.episodes = [one for one in self.episodes if one.series in ids]
        self.successions = [one for one in self.successions if one.series in ids]

    def places(self, ids: Ids) -> Integers:
        """Where these series stand, all of which are in the batch."""
        order = np.argsort(self.rows.ids)
        found: Integers = order[np.searchsorted(self.rows.ids, ids, sorter=order)]
        return found

    def follow(self, cells: Cells) -> tuple[Flags, Integers]:
        """Which cells of one tick are of their series' fingerprint; series that have turned to another one.

        A series keeps its fingerprint until it has had records of others alone for `_AWAY` ticks with records.
        """
        rows, place = self.rows, self.places(cells["series"])
        own = cells["fingerprint"] == rows.fingerprint[place]
        seen, at_home = (np.zeros(len(rows.ids), bool) for _ in range(2))
        seen[place], at_home[place[own]] = True, True
        rows.away[at_home] = 0
        rows.away[seen & ~at_home] += 1
        turned = seen & ~at_home & ((rows.fingerprint == 0) | (rows.away >= _AWAY))
        if not turned.any():
            return own, np.empty(0, np.int64)
        order = np.lexsort((cells["fingerprint"], cells["n"]))
        moving = order[turned[place[order]]]
        rows.fingerprint[place[moving]] = cells["fingerprint"][moving]  # of several the one with most records
        rows.away[turned] = 0
        return cells["fingerprint"] == rows.fingerprint[place], np.flatnonzero(turned)

    def restart(self, places: Integers, baseline: Baseline) -> None:
        """Nothing is known any more of these series."""
        self.rows = replace(self.rows, state=detecting.restarted(self.rows.state, places, baseline))

    def note_alarms(self, before: Flags, tick: int, tick_s: int, oldest: int) -> None:
        """Keep when alarms began and ended; those that ended before `oldest` are forgotten."""
        alarms = self.rows.state.alarms
        began, ended = np.flatnonzero(alarms.on & ~before), np.flatnonzero(before & ~alarms.on)
        over = set(self.rows.ids[ended].tolist())
        kept = [
            one._replace(until=tick + tick_s) if one.series in over and not one.until else one for one in self.episodes
        ]
        kept = [one for one in kept if not one.until or one.until > oldest]
        kept += [Episode(int(self.rows.ids[at]), int(alarms.onset[at]) * tick_s, 0) for at in began]
        self.episodes = kept


def _text(rows: object, version: int) -> str:
    return base64.b64encode(stored.to_bytes(rows, version)).decode()
