"""Takes a batch from tick to tick: baselines anew once a day, states kept to go back to. Deterministic.

Run in many pieces, with restarts and late windows between them, a batch ends as it would after one run over all of it.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from drift.detectors.baseline import Baseline, Warming
from drift.detectors.series import Integers
from drift.watching import detecting, grid, reading
from drift.watching.batch import Batch, Fitted
from drift.watching.fitting import Fitter
from drift.watching.kept import Held, Kept, slot_of
from drift.watching.reading import Cells, Span
from drift.watching.seen import Seen
from sinks.clickhouse.database import Database

_WAITING_S = 2 * grid.DAY_S  # a baseline is learned anew each day anyway
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs batches; `span_s`: how often a state is kept to go back to. `saw` hears of each tick that was looked at.

    `stopped`: whether to leave off after the hour that a batch is at.
    """

    database: Database
    fitter: Fitter
    span_s: int
    kept: Kept
    saw: Callable[[Seen], None]
    stopped: Callable[[], bool]

    def advance(self, batch: Batch, end: int) -> Fitted:
        """The batch has looked at all ticks before `end`; by which baselines it is judged then. Not stored yet.

        Once `stopped`, at least its baselines are there, and `batch.until` says how far it is.
        """
        held = self.kept.baselines(batch.key, batch.until)
        while True:
            now = self._held_at(batch, held)
            if batch.until >= end or self.stopped():
                return now.fitted
            self._run(batch, now.fitted, min(end, self._next_stop(batch)))

    def rest_anew(self, batch: Batch, places: Integers) -> None:
        """Series of which people said what theirs rests on have baselines of that at once, and start anew."""
        held = self.kept.baselines(batch.key, batch.until)
        if not held:
            return
        last = held[-1].fitted
        rests_on, fresh = self.fitter.baselines(batch, places, batch.until, held[-1])
        mixed, basis = last.matched(batch.rows, batch.key.kind), last.basis_of(batch.rows)
        mixed, basis[places] = detecting.replaced(mixed, places, fresh), rests_on
        batch.restart(places, mixed)
        fitted = Fitted(batch.rows.ids.copy(), batch.rows.fingerprint.copy(), basis, mixed)
        self.kept.keep_baseline(batch.key, Held(held[-1].holds_from, fitted))

    def waiting(self, batch: Batch) -> Integers:
        """Series of which a change was accepted in the last days that have no baseline of it yet: at whole hours."""
        basis = batch.rows.basis
        young = (basis > 0) & (basis > batch.until - _WAITING_S)
        if not young.any() or batch.until % grid.HOUR_S >= self.fitter.tick_s:
            return np.empty(0, np.int64)
        held = self.kept.baselines(batch.key, batch.until)
        warming = held[-1].fitted.matched(batch.rows, batch.key.kind).warming if held else np.zeros(len(basis))
        return np.flatnonzero(young & (warming != Warming.WATCHED))

    def _next_stop(self, batch: Batch) -> int:
        """The end of the hour that the batch is at, or the tick from which other baselines hold."""
        tick_s = self.fitter.tick_s
        hour = grid.ceiling(grid.ceiling(batch.until + 1, grid.HOUR_S), tick_s)
        return min(hour, grid.learning(batch.key.number, batch.until + 1, tick_s))

    def _held_at(self, batch: Batch, held: list[Held]) -> Held:
        """The baseline for the next tick; made, and added to those held, where it is time for it."""
        past = [one for one in held if one.holds_from <= batch.until]
        due = batch.until == grid.learning(batch.key.number, batch.until, self.fitter.tick_s)
        due = due and bool(batch.series)  # all of them may have gone for good
        due = due and not batch.key.of_successors  # what they succeed is learned once
        if past and not (due and past[-1].holds_from != batch.until):
            now, before = past[-1], past[-2] if len(past) > 1 else None
        else:
            before = past[-1] if past else None
            now = self._fit(batch, before)
            held.append(now)
        if now.holds_from == batch.until:
            self._judge_anew(batch, before, now)
        return now

    def _fit(self, batch: Batch, before: Held | None) -> Held:
        fitted = self.fitter.fit(batch, batch.until, before)
        made = Held(batch.until, fitted)
        kind, lane, number = batch.key
        logger.info("baselines of %d series are learned (%s, lane %s, batch %d)", len(batch.series), kind, lane, number)
        self.kept.keep_baseline(batch.key, made)
        return made

    def _judge_anew(self, batch: Batch, before: Held | None, now: Held) -> None:
        """Who was not watched before, or is not from now on, starts anew; who is gone for good goes."""
        after = now.fitted.matched(batch.rows, batch.key.kind)
        anew = after.warming != Warming.WATCHED
        if before is None:
            batch.restart(np.flatnonzero(anew), after)
            return
        anew |= before.fitted.matched(batch.rows, batch.key.kind).warming != Warming.WATCHED
        batch.restart(np.flatnonzero(anew), after)
        batch.keep((after.warming != Warming.NO_RECORDS) | (batch.rows.basis != 0))

    def _run(self, batch: Batch, fitted: Fitted, stop: int) -> None:
        if not batch.series:
            batch.until = stop
            return
        fitter, kind = self.fitter, batch.key.kind
        span = Span(fitter.base_s, fitter.tick_s, batch.until, stop)
        baseline = fitter.judging(fitted, batch)
        levels = batch.rows.labels if kind == "category" else baseline.bins
        cells = reading.cells(self.database, kind, fitter.watched, batch.series, batch.rows.ids, levels, span)
        cells = cells[np.argsort(cells["at"], kind="stable")]
        borders = np.searchsorted(cells["at"], [*span.ticks, stop])
        for tick, first, last in zip(span.ticks, borders, borders[1:], strict=False):
            baseline = self._tick(batch, fitted, baseline, int(tick), cells[first:last])
            batch.until = int(tick) + fitter.tick_s
            if batch.until // self.span_s != int(tick) // self.span_s:
                self.kept.keep(batch, slot_of(batch.until, self.span_s))
            self.saw(Seen(batch, baseline))

    def _tick(self, batch: Batch, fitted: Fitted, baseline: Baseline, tick: int, cells: Cells) -> Baseline:
        fitter, kind = self.fitter, batch.key.kind
        mine, turned = batch.follow(cells)
        if len(turned):
            baseline = fitter.judging(fitted, batch)
            batch.restart(turned, baseline)
        cells = cells[mine]
        start = np.array([tick], np.int64)
        place = batch.places(cells["series"])
        some = detecting.windows(
            kind, cells, place, len(batch.series), start, batch.rows.labels, fitter.scale(batch.series)
        )
        before = batch.rows.state.alarms.on.copy()
        detecting.run(baseline, batch.rows.state, some)
        batch.note_alarms(before, tick, fitter.tick_s, tick - fitter.history_s - fitter.lateness_s)
        return baseline
