"""Models that came after or beside another one: their series are judged by the other one's days as well, for a week.

A newcomer's own baseline warms up, and then takes what the newcomer does for usual, also where that is worse than what
was there before. So it is watched a second time, by the baseline that the model before had when the newcomer came: the
same season, margin and noise, the same detector, and so the same run length to a false alarm where the newcomer does as
the one before did. What is better is no trouble: only a worsening is evidence.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from drift.detectors import scores, stored
from drift.detectors.baseline import Baseline, Warming
from drift.rules.series import Series
from drift.watching import grid, reading
from drift.watching.batch import MOST_SERIES, Batch, BatchKey, Fitted, Succession
from drift.watching.kept import Held, Kept
from drift.watching.kinds import Watch
from drift.watching.reading import Cells, Newcomer, Span
from drift.watching.reference import HISTORY
from drift.watching.seen import Seen
from sinks.clickhouse.database import Database

COMPARED_S = 7 * grid.DAY_S
_KNOWN_S = grid.DAY_S  # for so long the other model has to be known when the newcomer comes
_YOUNG = (Warming.NO_RECORDS, Warming.LESS_THAN_A_DAY)
_FOR_EVER = 0  # of baselines: they are learned once
_OUT_OF_REACH = 50.0  # as a margin: no mean of scores within 0..1 and no log odds go so far


class _Row(NamedTuple):
    """A series of its own batch."""

    seen: Seen
    place: int

    @property
    def series(self) -> Series:
        return self.seen.batch.series[self.place]

    @property
    def id(self) -> int:
        return int(self.seen.batch.rows.ids[self.place])

    @property
    def fingerprint(self) -> int:
        return int(self.seen.batch.rows.fingerprint[self.place])

    @property
    def warming(self) -> int:
        return int(self.seen.baseline.warming[self.place])


class _Pair(NamedTuple):
    """A newcomer that came at `since`, and the series of the model that it is compared with."""

    new: _Row
    before: _Row
    since: int


@dataclass(frozen=True, slots=True)
class Successors:
    """Keeps the batches of successors. `accepted`: series of which people said that they are well as they are."""

    database: Database
    watched: Mapping[str, Watch]
    accepted: Collection[Series]
    base_s: int
    history_s: int
    kept: Kept

    def ended(self, batch: Batch) -> bool:
        """Series whose comparison is over are in the batch no more; whether there was one."""
        since = {one.series: one.since for one in batch.successions}
        lasts = [
            id_ in since and batch.until - since[id_] < COMPARED_S and series not in self.accepted
            for id_, series in zip(batch.rows.ids.tolist(), batch.series, strict=True)
        ]
        batch.keep(np.array(lasts, bool))
        return not all(lasts)

    def joined(
        self, batches: Sequence[Batch], seen: Sequence[Seen], first_seen: Collection[BatchKey], taken: set[BatchKey]
    ) -> list[Batch]:
        """The batches of successors, and those of newcomers, whose baselines are stored when this returns.

        Newcomers are series that are too young for baselines of their own; of the batches `first_seen` all can be.
        """
        found = list(batches)
        known = {id_ for batch in batches for id_ in batch.rows.ids.tolist()}
        groups: dict[tuple[str, str], list[Seen]] = {}
        for one in seen:
            groups.setdefault(one.batch.key[:2], []).append(one)
        for some in groups.values():
            pairs = list(self._pairs(some, first_seen, known))
            for first in range(0, len(pairs), MOST_SERIES):
                batch = self._placed(pairs[first : first + MOST_SERIES], found, taken)
                taken.add(batch.key)
                found += [] if batch in found else [batch]
        return found

    def _pairs(self, seen: Sequence[Seen], first_seen: Collection[BatchKey], known: Collection[int]) -> Iterator[_Pair]:
        """Newcomers of one kind and lane whom a model was there before with a baseline, under the same fingerprint.

        Of several models the one with most records counts.
        """
        wanted = list(self._wanted(seen, first_seen, known))
        days = self._days([row for new, others in wanted for row in (new, *others)])
        for new, others in wanted:
            since = int(days[new.id]["first"].min()) if new.id in days else 0
            if since < new.seen.batch.until - COMPARED_S:
                continue
            before = [
                (int(days[other.id]["n"][days[other.id]["day"] <= since].sum()), other.series.model, nth)
                for nth, other in enumerate(others)
                if other.id in days and days[other.id]["first"].min() + _KNOWN_S <= since
            ]
            if before:
                yield _Pair(new, others[max(before)[-1]], since)

    def _wanted(
        self, seen: Sequence[Seen], first_seen: Collection[BatchKey], known: Collection[int]
    ) -> Iterator[tuple[_Row, list[_Row]]]:
        """Series that may be newcomers, each with those of other models at its place."""
        places: dict[Series, list[_Row]] = {}
        for one in seen:
            for place, series in enumerate(one.batch.series):
                if _has_better_end(self.watched[series.metric]):
                    places.setdefault(series._replace(model=""), []).append(_Row(one, place))
        for rows in places.values():
            before = [row for row in rows if row.warming == Warming.WATCHED] if len(rows) > 1 else []
            for new in rows if before else ():
                is_new = new.warming in _YOUNG or new.seen.batch.key in first_seen
                others = [row for row in before if row.id != new.id and row.fingerprint == new.fingerprint]
                if is_new and others and new.id not in known and new.series not in self.accepted:
                    yield new, others

    def _days(self, rows: Sequence[_Row]) -> dict[int, Cells]:
        """Days with records of each of these series."""
        known = {row.id: row for row in rows}
        if not known:
            return {}
        end = max(row.seen.batch.until for row in rows)
        span = Span(self.base_s, self.base_s, end - self.history_s, end)
        ids = np.array(list(known), np.uint64)
        cells = reading.days(self.database, [row.series for row in known.values()], ids, span)
        order = np.argsort(cells["series"], kind="stable")
        found, first = np.unique(cells["series"][order], return_index=True)
        return dict(zip(found.tolist(), np.split(cells[order], first[1:]), strict=True))

    def _placed(self, pairs: Sequence[_Pair], batches: Sequence[Batch], taken: Collection[BatchKey]) -> Batch:
        """The batch that has these newcomers now: one with room that has not looked further, or else a new one."""
        key, tick_s = pairs[0].new.seen.batch.key, grid.tick_s(self.base_s)
        begin = grid.floor(min(one.since for one in pairs), tick_s)
        fits = (
            one
            for one in batches
            if one.key[:2] == key[:2] and one.until <= begin and len(one.series) + len(pairs) <= MOST_SERIES
        )
        batch = next(fits, None) or Batch.empty(key.next_of_successors(taken), tick_s, begin, 0)
        made = _fitted(pairs, self.watched)
        for held in self.kept.baselines(batch.key, batch.until) if batch.series else ():
            made = stored.join([held.fitted, made])
        new = {one.new.id: Newcomer(one.new.series, one.new.fingerprint) for one in pairs}
        batch.add(new, tick_s, known_before=True)
        batch.successions = [
            *batch.successions,
            *(Succession(one.new.id, one.before.series.model, one.since) for one in pairs),
        ]
        self.kept.keep_baseline(batch.key, Held(_FOR_EVER, made))
        return batch


def again(past: Batch, newest: Batch, tick_s: int) -> None:
    """A batch as it was before has the newcomers that joined it since, of whom nothing was looked at then."""
    there = set(past.rows.ids.tolist())
    new = {
        id_: Newcomer(series, fingerprint)
        for id_, fingerprint, series in zip(
            newest.rows.ids.tolist(), newest.rows.fingerprint.tolist(), newest.series, strict=True
        )
        if id_ not in there
    }
    past.add(new, tick_s, known_before=True)
    past.successions = newest.successions


def _has_better_end(watch: Watch) -> bool:
    """Whether one end of the metric is better; what users ask, and how long answers are, has none."""
    return watch.metric is not None and watch.evaluator.id != "inputs"


def _fitted(pairs: Sequence[_Pair], watched: Mapping[str, Watch]) -> Fitted:
    rows = [stored.take(one.before.seen.baseline, np.array([one.before.place])) for one in pairs]
    return Fitted(
        ids=np.array([one.new.id for one in pairs], np.uint64),
        fingerprint=np.array([one.before.fingerprint for one in pairs], np.uint64),
        basis=np.full(len(pairs), HISTORY, np.int64),
        baseline=_of_worsening(stored.join(rows), [watched[one.new.series.metric] for one in pairs]),
    )


def _of_worsening(baseline: Baseline, watches: Sequence[Watch]) -> Baseline:
    """The same with no evidence in what becomes better: up [S, C, 0] or down [S, C, 1] no margin is left behind."""
    margin = baseline.margin.copy()
    for place, watch in enumerate(watches):
        higher = watch.kind != "rate" and watch.metric is not None and watch.metric.metric.better == "higher"
        margin[place, :, 0 if higher else 1] = _OUT_OF_REACH
        if watch.kind == "score" and higher:  # of its spread less is better
            spread = scores.CHANNELS.index("spread")
            margin[place, spread] = [baseline.margin[place, spread, 0], _OUT_OF_REACH]
    return replace(baseline, margin=margin)
