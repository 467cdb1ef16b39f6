"""Why a metric moved, as far as windows and rows tell: one answer for operators, in bounded time."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from drift.causes import rows
from drift.causes.aggregates import bins_before, splits_of_windows
from drift.causes.cells import WHOLE
from drift.causes.culprit import LEAST_TIMES
from drift.causes.decomposition import Contribution, Move, move_of
from drift.causes.frame import Frame, frame_of
from drift.causes.measure import Measure, share_beyond, tail_line
from drift.causes.question import Question
from drift.causes.reasons import Reason, reasons
from drift.causes.search import search
from drift.causes.splits import Split, with_traffic
from drift.causes.stage import Stage, stage_of
from drift.causes.traffic import Traffic, traffic_of
from drift.causes.versions import VersionChange, version_changes
from drift.windows.metrics import WatchedMetric
from drift.windows.segments import SegmentValues
from sinks.clickhouse.database import Database


@dataclass(frozen=True, slots=True)
class Cause:
    """What was found. `move` is None where there is nothing before the onset or after, and then nothing else is told.

    `culprits` explain the move, each within the one before; none of the dimensions `tried` does where there is none,
    unless there are `too_few` times to tell: of `times` that have records, more are needed.
    `sampled` is the share of the rows that was read, 1 where all were, 0 where none was.
    """

    measure: Measure | None
    move: Move | None
    compared_from: datetime
    culprits: tuple[Contribution, ...] = ()
    tried: tuple[str, ...] = ()
    too_few: bool = False
    times: int = 0
    versions: tuple[VersionChange, ...] = ()
    stage: Stage | None = None
    traffic: Traffic | None = None
    reasons: tuple[Reason, ...] = ()
    sampled: float = 1.0

    @property
    def attributes(self) -> dict[str, Any]:
        """All of it for JSON; no text of users is in it."""
        return {
            "measure": self.measure.kind if self.measure else None,
            "least": self.measure.least if self.measure else None,
            "greatest": self.measure.greatest if self.measure else None,
            "move": self.move._asdict() if self.move else None,
            "compared_from": self.compared_from.isoformat(),
            "culprits": [one._asdict() for one in self.culprits],
            "tried": list(self.tried),
            "too_few": self.too_few,
            "times": self.times,
            "versions": [one._asdict() | {"at": one.at.isoformat()} for one in self.versions],
            "stage": self.stage._asdict() | {"metrics": list(self.stage.metrics)} if self.stage else None,
            "traffic": self.traffic._asdict() if self.traffic else None,
            "reasons": [one._asdict() for one in self.reasons],
            "sampled": self.sampled,
        }


def explain(
    database: Database,
    metrics: Mapping[str, WatchedMetric],
    question: Question,
    segments: SegmentValues,
    base_s: int,
) -> Cause:
    """Asks windows first; then rows within what they point at, and of traces that failed.

    Where there are millions of rows it looks at a shorter time around the onset; where that has too many too, rows are
    not read: one culprit at most is told, and nothing of stage and traffic.
    `metrics` are all that are watched, `segments` the values that windows of `base_s` seconds are cut by.
    """
    looked = _look(database, question, segments, base_s)
    if looked.move and looked.records > rows.MOST_SCANNED:
        base = timedelta(seconds=base_s)
        windows = (question.until - question.since) * (rows.MOST_SCANNED / looked.records) // base
        shorter = _look(database, replace(question, until=question.since + windows * base), segments, base_s)
        looked = shorter if 0 < shorter.records <= rows.MOST_SCANNED else looked
    frame, measure, move = looked.frame, looked.measure, looked.move
    compared_from = datetime.fromtimestamp(frame.time.start, UTC)
    versions = tuple(version_changes(database, frame))
    if measure is None or move is None or not move.size:
        return Cause(measure, move, compared_from, versions=versions)
    by_rows = looked.records <= rows.MOST_SCANNED
    path = search(database, frame, measure, looked.windows, move, by_rows=by_rows)
    return Cause(
        measure,
        move,
        compared_from,
        culprits=path.culprits,
        tried=path.tried,
        too_few=looked.times < LEAST_TIMES,
        times=looked.times,
        versions=versions,
        stage=stage_of(database, frame, measure, metrics, path.within) if by_rows else None,
        traffic=traffic_of(database, frame, measure, looked.records) if by_rows else None,
        reasons=tuple(reasons(database, frame, move)) if measure.kind == "coverage" else (),
        sampled=path.sampled,
    )


class _Look(NamedTuple):
    """What windows tell of a question."""

    frame: Frame
    measure: Measure | None
    windows: Mapping[str, Split]
    move: Move | None

    @property
    def records(self) -> float:
        """How many there are, about as many as rows."""
        return self.move.n_before + self.move.n_after if self.move else 0.0

    @property
    def times(self) -> int:
        """How many have records."""
        return sum(len(one.after) for one in with_traffic([self.windows[WHOLE]])) if self.move else 0


def _look(database: Database, question: Question, segments: SegmentValues, base_s: int) -> _Look:
    frame = frame_of(database, question, segments, base_s)
    measure = _measure(database, frame) if frame.fingerprints else None
    windows = splits_of_windows(database, frame, measure) if measure else {}
    return _Look(frame, measure, windows, move_of(windows[WHOLE]) if WHOLE in windows else None)


def _measure(database: Database, frame: Frame) -> Measure | None:
    """As the rule judges, or by the metric's own threshold; None where windows have no records before the onset."""
    watched, rule = frame.question.watched, frame.question.rule
    if rule is not None and rule.kind == "coverage":
        return Measure("coverage", watched)
    threshold, higher = watched.metric.threshold, watched.metric.better == "higher"
    least, greatest = (threshold, None) if higher else (None, threshold)
    if rule is not None:
        least, greatest = rule.least, rule.greatest
    if rule is not None and rule.kind in ("share", "any", "value"):
        return share_beyond(watched, least, greatest)
    if watched.scale.bounded:
        return Measure("mean", watched, least, greatest)
    if rule is not None:
        return share_beyond(watched, least, greatest)
    return tail_line(watched, bins_before(database, frame))
