"""The roll-up: stores closed windows whose rows changed, base size first, larger ones from smaller ones.

Idempotent at every point where it may stop: windows that did not change are not written again, marks are taken back
and the watermark is stored last.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import get_args

from drift.leadership import Term
from drift.settings import WindowSettings
from drift.windows import dirty, watermark
from drift.windows.changes import Closing, first_revision, store_changes, store_new
from drift.windows.contents import base_contents
from drift.windows.kept import Kept
from drift.windows.merged import merged_contents
from drift.windows.metrics import OwnMetrics, lanes_of, metrics_by_name, own_metrics
from drift.windows.scope import MINUTE, STREAMED, WHOLE_MINUTES, Scope, WindowKey, listed
from drift.windows.segments import SegmentValues, segment_values
from drift.windows.values import store_values
from drift.windows.watermark import FAST, Idleness, Watermark
from evaluators.spec import Evaluator, Lane
from sinks.clickhouse.database import Database
from sinks.settings import RetentionSettings

logger = logging.getLogger(__name__)
_LANES = frozenset(get_args(Lane))
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RolledUp:
    """What a roll-up did; `closing`: up to when each lane's live windows are closed; `segments`: how they are cut.

    `expired` of the `marks` came after the scores of their day were deleted: the windows stay as they were.
    """

    windows: int
    marks: int
    expired: int
    waiting: int
    closing: Mapping[str, Watermark]
    segments: SegmentValues


@dataclass(slots=True)
class Rollup:
    """Rolls up for one leader's term."""

    database: Database
    evaluators: Mapping[str, Evaluator]
    settings: WindowSettings
    term: Term
    idleness: Idleness
    retention: RetentionSettings

    def run(self, now: datetime) -> RolledUp:
        """Every window that closed or changed since the last roll-up is stored when this returns."""
        stored = watermark.read_stored(self.database)
        fresh = watermark.watermarks(watermark.read_progress(self.database), now, self.idleness, self.settings)
        watermarks = watermark.never_back(fresh, stored)
        before = watermark.closing({key: Watermark(stored[key], False) for key in watermarks if key in stored})
        after = watermark.closing(watermarks)
        marked = dirty.pending(self.database, self.term, after)
        lanes = lanes_of(self.evaluators.values())
        segments = segment_values(self.database, self.settings, self.term, now)
        kept = Kept(self.retention, now)
        expired = [one for one in marked if not kept.scores(one.window)]
        count, done = 0, list(expired)
        for lane in sorted({*after, *lanes, *(one.lane for one in marked)}):
            closes = after.get(lane)
            ready = [one for one in marked if kept.scores(one.window)]
            ready = [one for one in ready if self._closed(one.window, self.settings.base_s, closes)]
            # A trace that came late changes what was seen for the evaluators of every lane.
            touched = {one.window for one in ready if one.lane in (lane, FAST) or one.lane not in _LANES}
            done += [one for one in ready if one.lane == lane]
            others = [id_ for other, ids in lanes.items() if other != lane for id_ in ids]
            frozen = before[lane].at if lane in before else _NEVER
            count += self._base(touched, segments, others, kept, frozen, closes)
            self._larger(touched, segments, others, kept, frozen, closes)
        dirty.take_back(self.database, self.term, done)
        watermark.store(self.database, watermarks)
        marks, too_late = (sum(len(one.mark_ids) for one in some) for some in (done, expired))
        if too_late:
            logger.warning("%d marks came after the scores of their day were deleted; no window changes", too_late)
        return RolledUp(count, marks, too_late, len(marked) - len(done), after, segments)

    def _base(
        self,
        touched: set[WindowKey],
        segments: SegmentValues,
        others: Sequence[str],
        kept: Kept,
        frozen: datetime,
        closes: Watermark | None,
    ) -> int:
        size_s = self.settings.base_s
        windows = [w for w in _same_minute(touched, size_s) if self._closed(w, size_s, closes)]
        windows = [w for w in windows if kept.windows(w, size_s)]
        known = self._known(windows, size_s, others)
        metrics = metrics_by_name(self.evaluators)
        own = own_metrics(metrics.values())
        for revised in (False, True):
            cut = segments.alike(w for w in windows if (w in known) == revised)
            for values, scope in [(values, scope) for values, alike in cut for scope in listed(alike, size_s, others)]:
                how = self._how(kept.now, frozen, closes)
                if revised:
                    contents = base_contents(scope, metrics, values, revised=True)
                    changed = store_changes(scope, contents, how, own.per)
                else:
                    also = first_revision(scope, how)
                    changed = store_new(base_contents(scope, metrics, values, revised=False, also=also))
                self._store(scope, changed, how, own)
        return len(windows)

    def _larger(
        self,
        touched: set[WindowKey],
        segments: SegmentValues,
        others: Sequence[str],
        kept: Kept,
        frozen: datetime,
        closes: Watermark | None,
    ) -> None:
        """Larger windows in which a base window changed, and those that the watermark passed since the last roll-up.

        Made of the next smaller ones or, where these are deleted already, of the scores.
        """
        metrics = metrics_by_name(self.evaluators)
        own = own_metrics(metrics.values())
        for smaller_s, size_s in pairwise(self.settings.all_sizes_s):
            changed = {w._replace(start=w.start // size_s * size_s) for w in touched}
            changed = {w for w in changed if self._closed(w, size_s, closes)}
            merged = {w for w in changed if kept.windows(w, smaller_s)}
            scopes = (*listed(merged, size_s, others), *_passed(size_s, others, frozen, closes))
            made = [(scope, merged_contents(scope, smaller_s, own)) for scope in scopes]
            made += [
                (scope, base_contents(scope, metrics, values, revised=True))
                for values, alike in segments.alike(changed - merged)
                for scope in listed(alike, size_s, others, most=1)  # each reads all rows of its window
            ]
            for scope, contents in made:
                how = self._how(kept.now, frozen, closes)
                self._store(scope, store_changes(scope, contents, how, own.per), how, own)

    def _store(self, scope: Scope, changed: str, how: Closing, own: OwnMetrics) -> None:
        """Contents first, then what is made of them: who stops between finds the numbers missing and makes them."""
        self.database.command(changed, settings=WHOLE_MINUTES)
        if evaluators := {id_: self.evaluators[id_] for id_ in sorted(own.evaluators - {*scope.others})}:
            store_values(self.database, evaluators, scope, how, self.term.next_version())

    def _closed(self, window: WindowKey, size_s: int, closes: Watermark | None) -> bool:
        if window.run_id not in STREAMED:
            return True  # marks of a run that is not complete are not handed out
        return closes is not None and window.start + size_s <= closes.at.timestamp()

    def _how(self, now: datetime, frozen: datetime, closes: Watermark | None) -> Closing:
        frozen_end = frozen - timedelta(seconds=self.settings.allowed_lateness_s)
        return Closing(
            version=self.term.next_version(),
            now_ms=int(now.timestamp() * 1000),
            frozen_end=int(frozen_end.timestamp()),
            incomplete=closes is not None and closes.incomplete,
        )

    def _known(self, windows: Sequence[WindowKey], size_s: int, others: Sequence[str]) -> set[WindowKey]:
        """Which of these windows closed before, as far as the lane's evaluators go."""
        found: set[WindowKey] = set()
        for scope in listed(windows, size_s, others):
            rows = self.database.rows(
                "SELECT DISTINCT run_id, app, environment, toUnixTimestamp(start) AS at FROM windows "
                f"WHERE {scope.stored(size_s)}"
            )
            found.update(WindowKey(row["run_id"], row["app"], row["environment"], row["at"]) for row in rows)
        return found


def _passed(size_s: int, others: Sequence[str], frozen: datetime, closes: Watermark | None) -> Iterator[Scope]:
    """The windows that end between the watermark before and the one now."""
    if closes is not None and frozen > _NEVER:
        first, end = (int(at.timestamp()) // size_s * size_s for at in (frozen, closes.at))
        if first < end:
            yield Scope(size_s, STREAMED, first, end, tuple(others))


def _same_minute(windows: Iterable[WindowKey], size_s: int) -> set[WindowKey]:
    """The windows, and where several make a minute all of it: a newer version of a row may have left one of them."""
    minutes = {window._replace(start=window.start // MINUTE * MINUTE) for window in windows}
    if size_s >= MINUTE:
        return set(windows)
    return {minute._replace(start=minute.start + at) for minute in minutes for at in range(0, MINUTE, size_s)}
