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

from ragtide.drift.anomalies import queries
from ragtide.drift.anomalies.batch import MOST_SERIES, Batch, BatchKey, BatchSnapshot, Fitted, RolloutPair
from ragtide.drift.anomalies.metrics import MonitoredMetric
from ragtide.drift.anomalies.queries import NewSeries, TickRange, WindowCells
from ragtide.drift.anomalies.references import FROM_HISTORY
from ragtide.drift.anomalies.state_store import BaselineVersion, StateStore
from ragtide.drift.detectors import scores, serialization
from ragtide.drift.detectors.baseline import Baseline, WarmUp
from ragtide.drift.rules.model import Series
from ragtide.drift.stats import calendar
from ragtide.sinks.clickhouse.database import Database

COMPARED_S = 7 * calendar.DAY_S
_MIN_HISTORY_S = calendar.DAY_S  # for so long the other model has to be known when the newcomer comes
_TOO_YOUNG = (WarmUp.NO_RECORDS, WarmUp.LESS_THAN_A_DAY)
_ALWAYS = 0  # of baselines: they are learned once
_NEVER_EXCEEDED = 50.0  # as a margin: no mean of scores within 0..1 and no log odds go so far


class _SeriesRow(NamedTuple):
    """A series of its own batch."""

    snapshot: BatchSnapshot
    place: int

    @property
    def series(self) -> Series:
        return self.snapshot.batch.series[self.place]

    @property
    def id(self) -> int:
        return int(self.snapshot.batch.rows.ids[self.place])

    @property
    def fingerprint(self) -> int:
        return int(self.snapshot.batch.rows.fingerprint[self.place])

    @property
    def warming(self) -> int:
        return int(self.snapshot.baseline.warming[self.place])


class _Candidate(NamedTuple):
    """A newcomer that came at `since`, and the series of the model that it is compared with."""

    new: _SeriesRow
    previous: _SeriesRow
    since: int


@dataclass(frozen=True, slots=True)
class RolloutMonitor:
    """Keeps the batches of successors. `accepted_changes`: series that people accepted."""

    database: Database
    monitored: Mapping[str, MonitoredMetric]
    accepted_changes: Collection[Series]
    base_s: int
    history_s: int
    store: StateStore

    def drop_finished(self, batch: Batch) -> bool:
        """Series whose comparison is over are in the batch no more; whether there was one."""
        since = {one.series: one.since for one in batch.rollouts}
        lasts = [
            id_ in since and batch.processed_until - since[id_] < COMPARED_S and series not in self.accepted_changes
            for id_, series in zip(batch.rows.ids.tolist(), batch.series, strict=True)
        ]
        batch.retain(np.array(lasts, bool))
        return not all(lasts)

    def add_new(
        self,
        batches: Sequence[Batch],
        snapshots: Sequence[BatchSnapshot],
        first_seen: Collection[BatchKey],
        taken: set[BatchKey],
    ) -> list[Batch]:
        """The batches of successors, and those of newcomers, whose baselines are stored when this returns.

        Newcomers are series that are too young for baselines of their own; of the batches `first_seen` all can be.
        """
        found = list(batches)
        known = {id_ for batch in batches for id_ in batch.rows.ids.tolist()}
        groups: dict[tuple[str, str], list[BatchSnapshot]] = {}
        for one in snapshots:
            groups.setdefault(one.batch.key[:2], []).append(one)
        for some in groups.values():
            pairs = list(self._candidates(some, first_seen, known))
            for first in range(0, len(pairs), MOST_SERIES):
                batch = self._add_to_batch(pairs[first : first + MOST_SERIES], found, taken)
                taken.add(batch.key)
                found += [] if batch in found else [batch]
        return found

    def _candidates(
        self, snapshots: Sequence[BatchSnapshot], first_seen: Collection[BatchKey], known: Collection[int]
    ) -> Iterator[_Candidate]:
        """Newcomers of one kind and lane whom a model was there before with a baseline, under the same fingerprint.

        Of several models the one with most records counts.
        """
        wanted = list(self._possible_candidates(snapshots, first_seen, known))
        days = self._record_days([row for new, others in wanted for row in (new, *others)])
        for new, others in wanted:
            since = int(days[new.id]["first"].min()) if new.id in days else 0
            if since < new.snapshot.batch.processed_until - COMPARED_S:
                continue
            before = [
                (int(days[other.id]["n"][days[other.id]["day"] <= since].sum()), other.series.model, nth)
                for nth, other in enumerate(others)
                if other.id in days and days[other.id]["first"].min() + _MIN_HISTORY_S <= since
            ]
            if before:
                yield _Candidate(new, others[max(before)[-1]], since)

    def _possible_candidates(
        self, snapshots: Sequence[BatchSnapshot], first_seen: Collection[BatchKey], known: Collection[int]
    ) -> Iterator[tuple[_SeriesRow, list[_SeriesRow]]]:
        """Series that may be newcomers, each with those of other models at its place."""
        places: dict[Series, list[_SeriesRow]] = {}
        for one in snapshots:
            for place, series in enumerate(one.batch.series):
                if _has_direction(self.monitored[series.metric]):
                    places.setdefault(series._replace(model=""), []).append(_SeriesRow(one, place))
        for rows in places.values():
            before = [row for row in rows if row.warming == WarmUp.READY] if len(rows) > 1 else []
            for new in rows if before else ():
                is_new = new.warming in _TOO_YOUNG or new.snapshot.batch.key in first_seen
                others = [row for row in before if row.id != new.id and row.fingerprint == new.fingerprint]
                if is_new and others and new.id not in known and new.series not in self.accepted_changes:
                    yield new, others

    def _record_days(self, rows: Sequence[_SeriesRow]) -> dict[int, WindowCells]:
        """Days with records of each of these series."""
        known = {row.id: row for row in rows}
        if not known:
            return {}
        end = max(row.snapshot.batch.processed_until for row in rows)
        span = TickRange(self.base_s, self.base_s, end - self.history_s, end)
        ids = np.array(list(known), np.uint64)
        cells = queries.record_days(self.database, [row.series for row in known.values()], ids, span)
        order = np.argsort(cells["series"], kind="stable")
        found, first = np.unique(cells["series"][order], return_index=True)
        return dict(zip(found.tolist(), np.split(cells[order], first[1:]), strict=True))

    def _add_to_batch(
        self, pairs: Sequence[_Candidate], batches: Sequence[Batch], taken: Collection[BatchKey]
    ) -> Batch:
        """The batch that has these newcomers now: one with room that has not looked further, or else a new one."""
        key, tick_s = pairs[0].new.snapshot.batch.key, calendar.tick_size(self.base_s)
        begin = calendar.floor(min(one.since for one in pairs), tick_s)
        fits = (
            one
            for one in batches
            if one.key[:2] == key[:2] and one.processed_until <= begin and len(one.series) + len(pairs) <= MOST_SERIES
        )
        batch = next(fits, None) or Batch.empty(key.next_rollout_key(taken), tick_s, begin, 0)
        made = _baselines_of(pairs, self.monitored)
        for held in self.store.load_baselines(batch.key, batch.processed_until) if batch.series else ():
            made = serialization.join([held.baselines, made])
        new = {one.new.id: NewSeries(one.new.series, one.new.fingerprint) for one in pairs}
        batch.add(new, tick_s, known_before=True)
        batch.rollouts = [
            *batch.rollouts,
            *(RolloutPair(one.new.id, one.previous.series.model, one.since) for one in pairs),
        ]
        self.store.save_baseline(batch.key, BaselineVersion(_ALWAYS, made))
        return batch


def re_add_after_rewind(past: Batch, newest: Batch, tick_s: int) -> None:
    """A batch as it was before has the newcomers that joined it since, of whom nothing was looked at then."""
    there = set(past.rows.ids.tolist())
    new = {
        id_: NewSeries(series, fingerprint)
        for id_, fingerprint, series in zip(
            newest.rows.ids.tolist(), newest.rows.fingerprint.tolist(), newest.series, strict=True
        )
        if id_ not in there
    }
    past.add(new, tick_s, known_before=True)
    past.rollouts = newest.rollouts


def _has_direction(metric: MonitoredMetric) -> bool:
    """Whether one end of the metric is better; what users ask, and how long answers are, has none."""
    return metric.ref is not None and metric.evaluator.id != "inputs"


def _baselines_of(pairs: Sequence[_Candidate], monitored: Mapping[str, MonitoredMetric]) -> Fitted:
    rows = [serialization.take(one.previous.snapshot.baseline, np.array([one.previous.place])) for one in pairs]
    return Fitted(
        ids=np.array([one.new.id for one in pairs], np.uint64),
        fingerprint=np.array([one.previous.fingerprint for one in pairs], np.uint64),
        basis=np.full(len(pairs), FROM_HISTORY, np.int64),
        baseline=_one_sided(serialization.join(rows), [monitored[one.new.series.metric] for one in pairs]),
    )


def _one_sided(baseline: Baseline, watches: Sequence[MonitoredMetric]) -> Baseline:
    """The same with no evidence in what becomes better: up [S, C, 0] or down [S, C, 1] no margin is left behind."""
    margin = baseline.margin.copy()
    for place, metric in enumerate(watches):
        higher = metric.kind != "rate" and metric.ref is not None and metric.ref.metric.better == "higher"
        margin[place, :, 0 if higher else 1] = _NEVER_EXCEEDED
        if metric.kind == "score" and higher:  # of its spread less is better
            spread = scores.CHANNELS.index("spread")
            margin[place, spread] = [baseline.margin[place, spread, 0], _NEVER_EXCEEDED]
    return replace(baseline, margin=margin)
