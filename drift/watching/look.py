"""The job `drift`: every series is looked at up to its lane's watermark, from where its state has looked before."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from drift.detectors.baseline import Warming
from drift.job_runs import Stopped
from drift.settings import DriftSettings, WindowSettings
from drift.watching import grid, reading
from drift.watching.batch import MOST_SERIES, Batch, BatchKey
from drift.watching.bearings import Bearings
from drift.watching.fitting import Fitter
from drift.watching.kept import NEWEST
from drift.watching.kinds import Watch, by_group, watches
from drift.watching.reading import Cells, Newcomer, Span
from drift.watching.reference import References, in_trouble
from drift.watching.running import Runner
from drift.watching.seen import Seen
from drift.watching.successors import Successors, again
from evaluators.spec import Evaluator, Lane
from sinks.clickhouse.database import Database

logger = logging.getLogger(__name__)
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look found. `late` ticks had changed and were looked at again, `left` ones had changed too late for it.

    `compared` are series of models that are judged by the days of another one; those are among the `seen` too.
    """

    seen: tuple[Seen, ...]
    late: int
    left: int
    compared: tuple[Seen, ...] = ()

    @property
    def series(self) -> int:
        """How many are watched, or will be."""
        return sum(len(one.batch.series) for one in self.seen)

    @property
    def warming(self) -> int:
        """How many of them have too little history yet."""
        return sum(int((one.baseline.warming != Warming.WATCHED).sum()) for one in self.seen)

    @property
    def alarms(self) -> int:
        """How many are in alarm."""
        return sum(int(one.batch.rows.state.alarms.on.sum()) for one in self.seen)


@dataclass(slots=True)
class Look:
    """Looks, and keeps what it has seen where its bearings say."""

    database: Database
    evaluators: Mapping[str, Evaluator]
    windows: WindowSettings
    settings: DriftSettings
    bearings: Bearings
    watched: Mapping[str, Watch] = field(init=False)
    tick_s: int = field(init=False)
    span_s: int = field(init=False)

    def __post_init__(self) -> None:
        self.watched = watches(self.evaluators.values(), self.settings.ignored_everywhere)
        self.tick_s = grid.tick_s(self.windows.base_s)
        self.span_s = grid.span_s(self.windows.allowed_lateness_s)

    def run(
        self, now: datetime, progress: Progress = lambda done, of: None, stopped: Callable[[], bool] = lambda: False
    ) -> Looked:
        """All ticks that every lane has closed were looked at, and the states are stored, when this returns.

        `progress` is called after each of the batches, with how many are done and how many there are. `stopped` is
        asked between the hours of a batch: once it says so, raises `Stopped` with the batch stored as far as it is.
        """
        ends = self._ends(now)
        stored = self.bearings.kept.batches(self.watched)
        for batch in stored:
            self._keep_watched(batch)
        batches = [batch for batch in stored if batch.key.lane in ends and batch.series]
        position = reading.newest_version(
            self.database, self.windows.base_s, min((batch.position for batch in batches), default=0)
        )
        said = self.bearings.references(now)
        runner, successors = self._runner(said, stopped), self._successors(said)
        changed = self._changed(batches)
        batches, late, left = self._gone_back(batches, changed)
        touched = {key for key, cells in changed.items() if len(cells)}
        compared = [batch for batch in batches if batch.key.of_successors]
        touched |= {batch.key for batch in compared if successors.ended(batch)}
        batches = [batch for batch in batches if not batch.key.of_successors]
        for batch in batches:
            basis = np.array([said.basis(series) for series in batch.series], np.int64)
            other = np.flatnonzero(basis != batch.rows.basis)
            batch.rows.basis[:] = basis
            other = np.union1d(other, runner.waiting(batch))
            if len(other):
                runner.rest_anew(batch, other)
                touched.add(batch.key)
        batches = self._with_newcomers(batches, [batch.key for batch in stored], ends, said)
        first_seen = {batch.key for batch in batches if not batch.position}

        def advanced(some: Sequence[Batch], before: int = 0) -> Iterator[Seen]:
            for done, batch in enumerate(some, start=before + 1):
                behind = batch.until < ends[batch.key.lane]
                fitted = runner.advance(batch, ends[batch.key.lane])
                batch.position = position
                if behind or batch.key in touched:
                    self.bearings.kept.keep(batch, NEWEST)
                if batch.series:  # all of them may be gone, or too new for their first baselines
                    yield Seen(batch, runner.fitter.judging(fitted, batch))
                progress(done, before + len(some))
                if stopped():
                    raise Stopped(f"{done} of {before + len(some)} batches of series were looked at")

        seen = list(advanced(batches))
        compared = successors.joined(compared, seen, first_seen, {batch.key for batch in stored})
        if left:
            logger.warning("%d ticks changed after so long that detectors do not look at them again", left)
        return Looked(tuple(seen), late, left, tuple(advanced(compared, len(batches))))

    def _runner(self, said: References, stopped: Callable[[], bool]) -> Runner:
        fitter = Fitter(
            database=self.database,
            watched=self.watched,
            references=said,
            left_out=in_trouble(self.database),
            base_s=self.windows.base_s,
            history_s=self.settings.history_days * grid.DAY_S,
            lateness_s=self.span_s,
            settings=self.settings,
        )
        return Runner(self.database, fitter, self.span_s, self.bearings.kept, self.bearings.saw, stopped)

    def _successors(self, said: References) -> Successors:
        return Successors(
            database=self.database,
            watched=self.watched,
            accepted=said.accepted.keys(),
            base_s=self.windows.base_s,
            history_s=self.settings.history_days * grid.DAY_S,
            kept=self.bearings.kept,
        )

    def _ends(self, now: datetime) -> dict[Lane, int]:
        """Up to which tick each lane is closed, of those that somebody runs."""
        lanes = {watch.lane for watch in self.watched.values()}
        closed = self.bearings.closed(now)
        ends = {lane: grid.floor(closed[lane].timestamp(), self.tick_s) for lane in lanes if lane in closed}
        return {lane: end for lane, end in ends.items() if end > grid.DAY_S}

    def _keep_watched(self, batch: Batch) -> None:
        """Series go whose application is watched no more, or not for that metric."""
        watched = np.array([self.settings.watches(one.app, one.metric) for one in batch.series], bool)
        if not watched.all():
            batch.keep(watched)

    def _changed(self, batches: Sequence[Batch]) -> dict[BatchKey, Cells]:
        """Ticks of each batch with windows that are newer than when it looked at them."""
        if not batches:
            return {}
        span = Span(self.windows.base_s, self.tick_s, 0, max(batch.until for batch in batches))
        cells = reading.changed(self.database, span, self.watched, min(batch.position for batch in batches))
        found = {}
        for batch in batches:
            mine = cells[np.isin(cells["series"], batch.rows.ids)]
            found[batch.key] = mine[(mine["at"] < batch.until) & (mine["version"] > batch.position)]
        return found

    def _gone_back(self, batches: Sequence[Batch], changed: Mapping[BatchKey, Cells]) -> tuple[list[Batch], int, int]:
        """Batches as they were before the first tick that changed since they looked at it; ticks gone back to, and
        those that no state is kept for, or whose windows are frozen.
        """
        late = left = 0
        found = []
        for batch in batches:
            mine = changed[batch.key]
            alive = mine[(mine["alive"] == 1) & (mine["at"] >= batch.until - 2 * self.span_s)]
            past = (
                self.bearings.kept.checkpoint(batch.key, int(alive["at"].min()), self.watched) if len(alive) else None
            )
            if past is not None:
                self._keep_watched(past)
            gone_back = len(alive) if past is not None else 0
            if not batch.key.of_successors:  # each of their series is counted in its own batch
                late, left = late + gone_back, left + len(mine) - gone_back
            elif past is not None:
                again(past, batch, self.tick_s)
            found.append(past or batch)
        return found, late, left

    def _with_newcomers(
        self, batches: Sequence[Batch], taken: Sequence[BatchKey], ends: Mapping[Lane, int], said: References
    ) -> list[Batch]:
        """The batches, and those of series that none of them has; nothing of them was looked at yet."""
        found = list(batches)
        for (kind, lane), metrics in by_group(self.watched).items():
            if lane not in ends:
                continue
            group = [batch for batch in found if batch.key[:2] == (kind, lane)]
            begin = min((batch.until for batch in group), default=grid.floor(ends[lane] - self.span_s, self.tick_s))
            first = begin if group else ends[lane] - grid.DAY_S
            span = Span(self.windows.base_s, self.tick_s, first, ends[lane])
            if span.first >= span.end:
                continue
            ids = reading.present(self.database, span, metrics)
            ids = ids[~np.isin(ids, np.concatenate([batch.rows.ids for batch in group]))] if group else ids
            new = reading.names(self.database, span, metrics, ids) if len(ids) else {}
            new = {id_: one for id_, one in new.items() if self.settings.watches(one.series.app, one.series.metric)}
            numbers = [key.number for key in (*taken, *(one.key for one in found)) if not key.of_successors]
            number = max(numbers, default=-1) + 1
            for batch, some in self._placed(BatchKey(kind, lane, number), group, new, begin):
                # A batch of their own has baselines at once: of all series at first, or where that was cut short.
                batch.add(some, self.tick_s, known_before=batch not in group)
                batch.rows.basis[:] = [said.basis(series) for series in batch.series]
                found += [] if batch in group else [batch]
        return found

    def _placed(
        self, key: BatchKey, group: list[Batch], new: Mapping[int, Newcomer], begin: int
    ) -> Iterator[tuple[Batch, dict[int, Newcomer]]]:
        """Newcomers by batch: the last one while it has room, then new ones from `key` on."""
        rest = list(new.items())
        if rest and group and (room := MOST_SERIES - len(group[-1].series)) > 0:
            yield group[-1], dict(rest[:room])
            rest = rest[room:]
        for first in range(0, len(rest), MOST_SERIES):
            new_key = key._replace(number=key.number + first // MOST_SERIES)
            yield Batch.empty(new_key, self.tick_s, begin, 0), dict(rest[first : first + MOST_SERIES])
