"""Rollouts: compare the series of a new model for a week with the baseline of the model before or beside it.

The new model's own baseline warms up first, and then takes its level as normal, even if that is worse than before. So
it is monitored a second time against a copy of the other model's baseline: same season, tolerance, noise and detector,
hence the same run length to a false alarm if both models behave alike. Only a worsening is evidence.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ragtide.drift.anomalies import queries
from ragtide.drift.anomalies.batch import MAX_SERIES, BaselineSet, Batch, BatchKey, BatchSnapshot, RolloutPair
from ragtide.drift.anomalies.learner import BaselineLearner
from ragtide.drift.anomalies.metrics import MonitoredMetric
from ragtide.drift.anomalies.queries import NewSeries, TickRange, WindowCells
from ragtide.drift.anomalies.references import FROM_HISTORY
from ragtide.drift.anomalies.state_store import BaselineVersion, StateStore
from ragtide.drift.detectors import SCORE_CHANNELS, Baseline, WarmUp, serialization
from ragtide.drift.rules import Series
from ragtide.drift.stats import calendar

COMPARED_S = 7 * calendar.DAY_S
_MIN_HISTORY_S = calendar.DAY_S  # of the other model, before the new one starts
_TOO_YOUNG = (WarmUp.NO_RECORDS, WarmUp.LESS_THAN_A_DAY)
_ALWAYS = 0  # effective from: these baselines are copied once
_NEVER_EXCEEDED = 50.0  # as a margin: means of scores in 0..1 and log odds stay below


class _SeriesRow(NamedTuple):
    """A series of a batch with a baseline of its own."""

    snapshot: BatchSnapshot
    place: int
    series: Series
    id: int
    fingerprint: int
    warming: int


class _Candidate(NamedTuple):
    """A new series, since when it has records, and the series of the model that it is compared with."""

    new: _SeriesRow
    previous: _SeriesRow
    since: int


@dataclass(frozen=True, slots=True)
class RolloutMonitor:
    """Maintains the batches of rollouts."""

    learner: BaselineLearner
    store: StateStore

    def drop_finished(self, batch: Batch) -> bool:
        """Drop series whose comparison is over or was accepted; return whether there was one."""
        since = {one.series: one.since for one in batch.rollouts}
        lasts = [
            id_ in since and batch.processed_until - since[id_] < COMPARED_S and not self._is_accepted(series)
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
        """Return the batches of rollouts with those that are new, and store the baselines of these.

        New are series that are too young for a baseline of their own; in a batch of `first_seen`, any.
        """
        found = list(batches)
        known = {id_ for batch in batches for id_ in batch.rows.ids.tolist()}
        groups: dict[tuple[str, str], list[BatchSnapshot]] = {}
        for one in snapshots:
            groups.setdefault(one.batch.key[:2], []).append(one)
        for group in groups.values():
            candidates = list(self._candidates(group, first_seen, known))
            for first in range(0, len(candidates), MAX_SERIES):
                batch = self._add_to_batch(candidates[first : first + MAX_SERIES], found, taken)
                taken.add(batch.key)
                found += [] if batch in found else [batch]
        return found

    def _is_accepted(self, series: Series) -> bool:
        return series in self.learner.overrides.accepted_changes

    def _candidates(
        self, snapshots: Sequence[BatchSnapshot], first_seen: Collection[BatchKey], known: Collection[int]
    ) -> Iterator[_Candidate]:
        """Find new series of one kind and lane, each with the earlier model that had most records until then."""
        possible = list(self._possible_candidates(snapshots, first_seen, known))
        days = self._record_days([row for new, others in possible for row in (new, *others)])
        for new, others in possible:
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
        """Pair series that may be new with those of other models, of the same evaluator version, with a baseline."""
        by_place: dict[Series, list[_SeriesRow]] = {}
        for one in snapshots:
            rows = one.batch.rows
            arrays = (rows.ids.tolist(), rows.fingerprint.tolist(), one.baseline.warming.tolist())
            for place, (series, *values) in enumerate(zip(one.batch.series, *arrays, strict=True)):
                if _has_direction(self.learner.monitored[series.metric]):
                    row = _SeriesRow(one, place, series, *values)
                    by_place.setdefault(series._replace(model=""), []).append(row)
        for models in by_place.values():
            ready = [row for row in models if row.warming == WarmUp.READY]
            for new in models:
                is_new = new.warming in _TOO_YOUNG or new.snapshot.batch.key in first_seen
                others = [row for row in ready if row.id != new.id and row.fingerprint == new.fingerprint]
                if is_new and others and new.id not in known and not self._is_accepted(new.series):
                    yield new, others

    def _record_days(self, rows: Sequence[_SeriesRow]) -> dict[int, WindowCells]:
        """Read the days with records of each of these series."""
        known = {row.id: row for row in rows}
        if not known:
            return {}
        end, base_s = max(row.snapshot.batch.processed_until for row in rows), self.learner.windows.base_s
        ticks = TickRange(base_s, base_s, end - self.learner.history_s, end)
        ids = np.array(list(known), np.uint64)
        cells = queries.record_days(self.learner.database, [row.series for row in known.values()], ids, ticks)
        order = np.argsort(cells["series"], kind="stable")
        found, first = np.unique(cells["series"][order], return_index=True)
        return dict(zip(found.tolist(), np.split(cells[order], first[1:]), strict=True))

    def _add_to_batch(
        self, candidates: Sequence[_Candidate], batches: Sequence[Batch], taken: Collection[BatchKey]
    ) -> Batch:
        """Add new series to a batch with room that is no further than their start, or else to a new one."""
        key, tick_s = candidates[0].new.snapshot.batch.key, self.learner.tick_s
        begin = calendar.floor(min(one.since for one in candidates), tick_s)
        fits = (
            one
            for one in batches
            if one.key[:2] == key[:2]
            and one.processed_until <= begin
            and len(one.series) + len(candidates) <= MAX_SERIES
        )
        batch = next(fits, None) or Batch.empty(key.next_rollout_key(taken), tick_s, begin)
        baselines = _baselines_of(candidates, self.learner.monitored)
        for version in self.store.load_baselines(batch.key, batch.processed_until) if batch.series else ():
            baselines = serialization.join([version.baselines, baselines])
        new = {one.new.id: NewSeries(one.new.series, one.new.fingerprint) for one in candidates}
        batch.add(new, tick_s, known_before=True)
        batch.rollouts = [
            *batch.rollouts,
            *(RolloutPair(one.new.id, one.previous.series.model, one.since) for one in candidates),
        ]
        self.store.save_baseline(batch.key, BaselineVersion(_ALWAYS, baselines))
        return batch


def re_add_after_rewind(past: Batch, newest: Batch, tick_s: int) -> None:
    """Add to a rewound batch the series that joined it since; they had no ticks then."""
    known = set(past.rows.ids.tolist())
    rows = zip(newest.rows.ids.tolist(), newest.rows.fingerprint.tolist(), newest.series, strict=True)
    new = {id_: NewSeries(series, fingerprint) for id_, fingerprint, series in rows if id_ not in known}
    past.add(new, tick_s, known_before=True)
    past.rollouts = newest.rollouts


def _has_direction(metric: MonitoredMetric) -> bool:
    """Whether the metric can become worse; inputs and answer lengths cannot."""
    return metric.ref is not None and metric.evaluator.id != "inputs"


def _baselines_of(candidates: Sequence[_Candidate], monitored: Mapping[str, MonitoredMetric]) -> BaselineSet:
    rows = [serialization.take(one.previous.snapshot.baseline, np.array([one.previous.place])) for one in candidates]
    return BaselineSet(
        ids=np.array([one.new.id for one in candidates], np.uint64),
        fingerprint=np.array([one.previous.fingerprint for one in candidates], np.uint64),
        baseline_source=np.full(len(candidates), FROM_HISTORY, np.int64),
        baseline=_one_sided(serialization.join(rows), [monitored[one.new.series.metric] for one in candidates]),
    )


def _one_sided(baseline: Baseline, metrics: Sequence[MonitoredMetric]) -> Baseline:
    """Return the baseline with a margin that improvements, up [S, C, 0] or down [S, C, 1], never exceed."""
    margin = baseline.margin.copy()
    for place, metric in enumerate(metrics):
        higher = metric.kind != "rate" and metric.better == "higher"
        margin[place, :, 0 if higher else 1] = _NEVER_EXCEEDED
        if metric.kind == "score" and higher:  # a smaller spread is better all the same
            spread = SCORE_CHANNELS.index("spread")
            margin[place, spread] = [baseline.margin[place, spread, 0], _NEVER_EXCEEDED]
    return replace(baseline, margin=margin)
