"""Roll up: store closed windows whose rows changed, base size first, larger ones from smaller ones.

Rows of older messages in those windows are deleted first (`replaced_rows`). Windows are stored in batches; the marks of
a batch are cleared once its windows of every size are stored. A run may stop anywhere and run again: unchanged windows
are not written, and the watermark is stored last. A batch that is too much for the server is halved. A window that
fails alone waits, and the others go on. Windows are not built from rows or windows that retention deleted.
"""

import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import get_args

from ragtide.drift.leadership import Term
from ragtide.drift.settings import WindowSettings
from ragtide.drift.stats import DAY_S
from ragtide.drift.windows import dirty, watermark
from ragtide.drift.windows.backoff import RollupBackoff
from ragtide.drift.windows.contents import base_contents
from ragtide.drift.windows.estimates import store_estimates
from ragtide.drift.windows.merge import merged_contents
from ragtide.drift.windows.metrics import (
    MetricRef,
    WindowMetricNames,
    counter_metrics,
    evaluators_by_lane,
    metrics_by_name,
    window_metrics,
)
from ragtide.drift.windows.replaced_rows import delete_replaced
from ragtide.drift.windows.scope import MINUTE_S, STREAMED_RUNS, WHOLE_MINUTES, Scope, WindowKey, batch_scopes
from ragtide.drift.windows.segments import SegmentValues, update_segment_values
from ragtide.drift.windows.store import CloseParams, first_revision, store_changes, store_new
from ragtide.drift.windows.watermark import FAST_LANE, Idleness, Watermark
from ragtide.drift.windows.window_metrics import store_window_metrics
from ragtide.evaluators.errors import RagtideError
from ragtide.evaluators.spec import Evaluator, Lane
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.errors import STATEMENT_FAILED, describe_failure
from ragtide.sinks.rows import LIVE
from ragtide.sinks.settings import RetentionSettings

logger = logging.getLogger(__name__)
_LANES = frozenset(get_args(Lane))
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_FAILING_S = 30.0  # for which a run without success tries further applications


@dataclass(frozen=True, slots=True)
class RetentionCheck:
    """What retention has not deleted at `now`. Other runs than live are retained from when they were written."""

    retention: RetentionSettings
    now: datetime

    def has_scores(self, window: WindowKey) -> bool:
        """Whether all rows of any window around this one are there."""
        return self._is_retained(window, self.retention.traces_days)

    def has_windows(self, window: WindowKey, size_s: int) -> bool:
        """Whether all windows of that size inside this one are there."""
        return self._is_retained(window, self.retention.windows_days(size_s))

    def _is_retained(self, window: WindowKey, days: int) -> bool:
        """Compare whole days, so that a window and all its rows are on the same side."""
        first = (int(self.now.timestamp()) // DAY_S - days + 1) * DAY_S
        return window.run_id != LIVE or window.start >= first


@dataclass(frozen=True, slots=True)
class RollupResult:
    """The result of a roll-up.

    `expired` of the `marks` came after the scores of their day were deleted; those windows stay as they were. `failed`
    windows wait for another attempt. Live windows are closed up to `lane_watermarks` and split by `segments`; those up
    to `stored_until` are stored, which is less where there were more marks than one roll-up takes.
    `replaced` counts the deleted rows of older messages, by table.
    """

    windows: int
    marks: int
    expired: int
    waiting: int
    failed: int
    lane_watermarks: Mapping[str, Watermark]
    segments: SegmentValues
    replaced: Mapping[str, int]
    stored_until: Mapping[str, datetime]


@dataclass(frozen=True, slots=True)
class _RollupRun:
    """The inputs of one roll-up, the same for all batches."""

    before: Mapping[str, Watermark]
    after: Mapping[str, Watermark]
    segments: SegmentValues
    retention: RetentionCheck
    lanes: Mapping[str, Sequence[str]]  # evaluators of each
    metrics: Mapping[str, MetricRef]
    window_metric_names: WindowMetricNames
    counters: Sequence[str]
    replaced: Counter[str] = field(default_factory=Counter)  # rows of older messages deleted so far, by table

    def frozen_until(self, lane: str) -> datetime:
        return self.before[lane].at if lane in self.before else _NEVER

    def others(self, lane: str) -> list[str]:
        """Return evaluators of other lanes."""
        return [id_ for other, ids in self.lanes.items() if other != lane for id_ in ids]

    def is_closed(self, window: WindowKey, size_s: int, lane: str) -> bool:
        if window.run_id not in STREAMED_RUNS:
            return True  # marks of incomplete runs are not returned
        return lane in self.after and window.start + size_s <= self.after[lane].at.timestamp()


@dataclass(slots=True)
class _RunTotals:
    """The base windows that a run stored, the marks it cleared, the windows that failed and the last error."""

    windows: int = 0
    done: list[dirty.DirtyWindow] = field(default_factory=list)
    failed: int = 0
    error: Exception | None = None


@dataclass(slots=True)
class Rollup:
    """Roll up for one leader's term."""

    database: Database
    evaluators: Mapping[str, Evaluator]
    settings: WindowSettings
    term: Term
    idleness: Idleness
    retention: RetentionSettings
    backoff: RollupBackoff = field(default_factory=RollupBackoff)

    def run(self, now: datetime) -> RollupResult:
        """Store every window that closed or changed since the last roll-up, except those that fail and wait."""
        stored = watermark.read_watermarks(self.database)
        fresh = watermark.watermarks(watermark.read_progress(self.database), now, self.idleness, self.settings)
        watermarks = watermark.monotonic(fresh, stored)
        metrics = metrics_by_name(self.evaluators)
        run = _RollupRun(
            before=watermark.lane_watermarks(
                {key: Watermark(stored[key], False) for key in watermarks if key in stored}
            ),
            after=watermark.lane_watermarks(watermarks),
            segments=update_segment_values(self.database, self.settings, self.term, now),
            retention=RetentionCheck(self.retention, now),
            lanes=evaluators_by_lane(self.evaluators.values()),
            metrics=metrics,
            window_metric_names=window_metrics(metrics.values()),
            counters=counter_metrics(self.evaluators.values()),
        )
        self._mark_passed(run)
        marked = dirty.pending_windows(self.database, self.term, run.after, self.backoff.waiting(now), dirty.MAX_MARKS)
        are_all = sum(len(one.mark_ids) for one in marked) < dirty.MAX_MARKS
        left_out_from = None if are_all else datetime.fromtimestamp(marked[-1].window.start, UTC)
        if not are_all:  # windows of one start together, where others go before them
            marked = [one for one in marked if one.window.start < marked[-1].window.start] or marked
        if run.after and are_all:
            self.backoff.forget((one.window for one in marked), now)
        expired, ready = list[dirty.DirtyWindow](), dict[WindowKey, list[dirty.DirtyWindow]]()
        for one in marked:
            if not one.passed and not run.retention.has_scores(one.window):
                expired.append(one)
            elif run.is_closed(one.window, self.settings.base_s, one.lane):
                ready.setdefault(one.window, []).append(one)
        dirty.clear_marks(self.database, self.term, expired)
        totals = self._process(ready, run)
        watermark.store(self.database, watermarks)
        if totals.error is not None and not self.backoff.succeeded:
            raise totals.error  # no application succeeds, so the server or this code is at fault
        too_late = sum(len(one.mark_ids) for one in expired)
        if too_late:
            logger.warning("%d marks are older than the retention of scores; their windows do not change", too_late)
        marks = too_late + sum(len(one.mark_ids) for one in totals.done)
        waiting = len(marked) - len(expired) - len(totals.done)
        counts = (totals.windows, marks, too_late, waiting, totals.failed)
        stored_until = {lane: min(one.at, left_out_from or one.at) for lane, one in run.after.items()}
        return RollupResult(*counts, run.after, run.segments, run.replaced, stored_until)

    def _mark_passed(self, run: _RollupRun) -> None:
        """Mark larger windows that the watermark passed since the last roll-up, if they have smaller ones."""
        for lane, closes in run.after.items():
            for smaller_s, size_s in pairwise(self.settings.all_sizes_s):
                first, end = (int(at.timestamp()) // size_s * size_s for at in (run.frozen_until(lane), closes.at))
                if lane in run.before:
                    self._mark_larger(
                        Scope(size_s, STREAMED_RUNS, first, end, tuple(run.others(lane))), smaller_s, lane
                    )

    def _mark_larger(self, scope: Scope, smaller_s: int, lane: str) -> None:
        """Mark all at once, or in shorter steps where that is too much for the server.

        The scope may begin in 1970: until a lane stored its first record, that is its watermark.
        """
        start, step_s = scope.first, scope.end - scope.first
        while start < scope.end:
            end = min(start + step_s, scope.end)
            try:
                dirty.mark_larger(self.database, self.term, replace(scope, first=start, end=end), smaller_s, lane)
            except STATEMENT_FAILED:
                self.database.version()  # raises where it is the server that does not answer
                if step_s <= scope.size_s:
                    raise
                step_s = max(scope.size_s, step_s // 2 // scope.size_s * scope.size_s)
            else:
                start = end

    def _process(self, ready: Mapping[WindowKey, Sequence[dirty.DirtyWindow]], run: _RollupRun) -> _RunTotals:
        """Store the windows in batches. A window that fails alone postpones its application's windows."""
        now, totals, began_s = run.retention.now, _RunTotals(), time.monotonic()
        todo = self.backoff.in_order(ready, now)
        while todo and (totals.done or time.monotonic() - began_s < _FAILING_S):
            batch = self.backoff.next_batch(todo)
            marked = [one for window in batch for one in ready[window]]
            try:
                totals.windows += self._store_windows(marked, run)
            except STATEMENT_FAILED as error:  # one application's windows must not stop the others
                self.database.version()  # raises where it is the server that does not answer
                if len(batch) > 1:
                    self.backoff.halve(batch)
                    continue
                totals.failed += 1
                totals.error = error
                todo = self._postpone_app(batch[0], error, todo, now)
                continue
            dirty.clear_marks(self.database, self.term, marked)
            totals.done += marked
            self.backoff.record_success(batch)
            todo = todo[len(batch) :]
        return totals

    def _postpone_app(
        self, window: WindowKey, error: Exception, todo: Sequence[WindowKey], now: datetime
    ) -> list[WindowKey]:
        """Record the failure; return what is left to do without the window's application."""
        why = describe_failure(error)
        self.backoff.record_failure(window, why, now)
        start = f"{datetime.fromtimestamp(window.start, UTC):%Y-%m-%d %H:%M:%S} UTC"
        logger.warning(
            "window %s of application %.128s (%.128s) could not be stored and will be retried: %s",
            *(start, window.app, window.environment, why),
            exc_info=not isinstance(error, RagtideError),
        )
        return [one for one in todo if one[1:3] != window[1:3]]

    def _store_windows(self, marked: Sequence[dirty.DirtyWindow], run: _RollupRun) -> int:
        """Store the marked base windows and the larger windows around them, of the evaluators of every lane."""
        run.replaced.update(delete_replaced(self.database, {one.window for one in marked}, self.settings.base_s))
        count = 0
        lanes = {
            # A late trace changes the number of traces seen for the evaluators of every lane.
            lane: [
                one
                for one in marked
                if (one.lane in (lane, FAST_LANE) or one.lane not in _LANES)
                and run.is_closed(one.window, self.settings.base_s, lane)
            ]
            for lane in sorted({*run.after, *run.lanes, *(one.lane for one in marked)})
        }
        for lane, touched in lanes.items():
            count += self._store_base({one.window for one in touched if not one.passed}, lane, run)
        for smaller_s, size_s in pairwise(self.settings.all_sizes_s):  # each from those of every lane
            for lane, touched in lanes.items():
                self._store_larger({one.window for one in touched}, smaller_s, size_s, lane, run)
        return count

    def _store_base(self, touched: set[WindowKey], lane: str, run: _RollupRun) -> int:
        size_s, others = self.settings.base_s, run.others(lane)
        windows = [w for w in _whole_minutes(touched, size_s) if run.is_closed(w, size_s, lane)]
        windows = [w for w in windows if run.retention.has_windows(w, size_s)]
        known = self._closed_before(windows, size_s, others)
        for revised in (False, True):
            some = [w for w in windows if (w in known) == revised]
            for values, scope in run.segments.batch_scopes(some, size_s, others):
                how = self._close_params(lane, run)
                if revised:
                    contents = base_contents(scope, run.metrics, values, revised=True)
                    changed = store_changes(scope, contents, how, run.window_metric_names.per)
                else:
                    also = first_revision(scope, how)
                    changed = store_new(base_contents(scope, run.metrics, values, revised=False, also=also))
                self._store(scope, changed, how, run.window_metric_names)
        return len(windows)

    def _store_larger(self, touched: set[WindowKey], smaller_s: int, size_s: int, lane: str, run: _RollupRun) -> None:
        """Store closed windows of `size_s` around base windows.

        They are merged from the next smaller ones or, if retention deleted these, built from scores.
        """
        others, names = run.others(lane), run.window_metric_names
        changed = {w._replace(start=w.start // size_s * size_s) for w in touched}
        changed = {w for w in changed if run.is_closed(w, size_s, lane)}
        merged = {w for w in changed if run.retention.has_windows(w, smaller_s)}
        from_scores = [w for w in changed - merged if run.retention.has_scores(w)]
        made = [
            (scope, merged_contents(scope, smaller_s, names, run.counters))
            for scope in batch_scopes(merged, size_s, others)
        ]
        made += [
            (scope, base_contents(scope, run.metrics, values, revised=True))
            # Each reads all rows of its window.
            for values, scope in run.segments.batch_scopes(from_scores, size_s, others, limit=1)
        ]
        for scope, contents in made:
            how = self._close_params(lane, run)
            self._store(scope, store_changes(scope, contents, how, names.per), how, names)

    def _store(self, scope: Scope, changed: str, how: CloseParams, names: WindowMetricNames) -> None:
        """Store contents, then what is made from them: a run after a crash between finds it missing."""
        self.database.command(changed, settings=WHOLE_MINUTES)
        if evaluators := {id_: self.evaluators[id_] for id_ in sorted(names.evaluators - {*scope.others})}:
            store_window_metrics(self.database, evaluators, scope, how, self.term.next_version())
        if judges := {id_: one for id_, one in self.evaluators.items() if one.judge and id_ not in scope.others}:
            store_estimates(self.database, judges, scope, how, self.term.next_version())

    def _close_params(self, lane: str, run: _RollupRun) -> CloseParams:
        frozen_end = run.frozen_until(lane) - timedelta(seconds=self.settings.allowed_lateness_s)
        return CloseParams(
            version=self.term.next_version(),
            now_ms=int(run.retention.now.timestamp() * 1000),
            frozen_end=int(frozen_end.timestamp()),
            incomplete=lane in run.after and run.after[lane].incomplete,
        )

    def _closed_before(self, windows: Sequence[WindowKey], size_s: int, others: Sequence[str]) -> set[WindowKey]:
        """Find the windows that closed before for the lane's evaluators."""
        found: set[WindowKey] = set()
        for scope in batch_scopes(windows, size_s, others):
            rows = self.database.rows(
                "SELECT DISTINCT run_id, app, environment, toUnixTimestamp(start) AS at FROM windows "
                f"WHERE {scope.windows_condition(size_s)}"
            )
            found.update(WindowKey(row["run_id"], row["app"], row["environment"], row["at"]) for row in rows)
        return found


def _whole_minutes(windows: Iterable[WindowKey], size_s: int) -> set[WindowKey]:
    """Complete the minutes of windows shorter than one: a newer version of a row may have left any of theirs."""
    minutes = {window._replace(start=window.start // MINUTE_S * MINUTE_S) for window in windows}
    if size_s >= MINUTE_S:
        return set(windows)
    return {minute._replace(start=minute.start + at) for minute in minutes for at in range(0, MINUTE_S, size_s)}
