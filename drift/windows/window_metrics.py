"""Store the metrics of evaluators of method `window`, and a series for each class, combined from windows' parts.

The contents are stored before (`store`); only `combine` makes the values. A second run writes nothing; a run after a
crash writes the missing ones.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from ragtide.drift import sql
from ragtide.drift.windows.scope import STREAMED_RUNS, Scope
from ragtide.drift.windows.store import CloseParams
from ragtide.evaluators.combining import combine_parts
from ragtide.evaluators.parts import ClassValue, Combined
from ragtide.evaluators.spec import Evaluator, Metric
from ragtide.sinks.clickhouse.database import Database

_GROUP = "run_id, app, environment, evaluator, start, fingerprint, model, prompt_version"


class WindowRow(NamedTuple):
    """Table `windows`."""

    run_id: str
    size_s: int
    app: str
    environment: str
    evaluator: str
    metric: str
    start: datetime
    fingerprint: str
    model: str
    prompt_version: str
    segment: str
    segment_value: str
    seen: int
    sampled: int
    applicable: int
    scored: int
    failed: int
    skipped: Mapping[str, int]
    failures: Mapping[str, int]
    sum: float
    sum_squares: float
    min: float | None
    max: float | None
    bins: Mapping[int, int]
    category_counts: Mapping[str, int]
    parts: Mapping[str, float]
    value: float | None
    late: int
    revision: int
    state: str
    incomplete: int
    closed_at: datetime
    version: int
    estimate: float | None = None
    estimate_low: float | None = None
    estimate_high: float | None = None
    weighted_mean: float | None = None
    saved_calls: float | None = None


WINDOW_COLUMNS = ", ".join(f"`{name}`" for name in WindowRow._fields)
_WITHOUT_RECORDS: Mapping[str, Any] = {
    **dict.fromkeys(("seen", "sampled", "applicable", "scored", "failed"), 0),
    **{key: {} for key in ("skipped", "failures", "bins", "category_counts", "parts")},
    **dict.fromkeys(("sum", "sum_squares"), 0.0),
    **dict.fromkeys(("min", "max", "value"), None),
}


def segment_of(metric: Metric) -> str:
    """Return the segment of a metric with `per`: `class`, or `class/iou`."""
    return "/".join(metric.per)


def segment_value_of(labels: Sequence[str]) -> str:
    """Return the segment's value for these labels: `dog`, or `dog/0.5`."""
    return "/".join(labels)


def store_window_metrics(
    database: Database, evaluators: Mapping[str, Evaluator], scope: Scope, closing: CloseParams, version: int
) -> None:
    """Store the values of every window of these evaluators in the scope.

    The contents were stored with `closing`; new rows have `version`.
    """
    there = f"{scope.windows_condition(scope.size_s)} AND evaluator IN {sql.texts(evaluators)}"
    rows = database.rows(
        f"SELECT {WINDOW_COLUMNS} FROM windows FINAL WHERE {there} AND ({_GROUP}) IN "
        f"(SELECT {_GROUP} FROM windows FINAL WHERE {there} AND (notEmpty(parts) OR isNotNull(value)))"
    )
    windows: dict[tuple[object, ...], list[WindowRow]] = {}
    for row in (WindowRow(**found) for found in rows):
        key = (row.run_id, row.app, row.environment, row.evaluator, row.start, row.fingerprint)
        windows.setdefault((*key, row.model, row.prompt_version), []).append(row)
    writing = _Writer(closing, version)
    written = [new for some in windows.values() for new in writing.changes(evaluators[some[0].evaluator], some)]
    database.insert("windows", written)


class _RowKey(NamedTuple):
    """One of a window's rows."""

    metric: str
    segment: str
    segment_value: str


class _Writer(NamedTuple):
    closing: CloseParams
    version: int

    def changes(self, evaluator: Evaluator, rows: Sequence[WindowRow]) -> Iterator[WindowRow]:
        """Find the rows of one window, of all segments, whose values differ from those of its parts."""
        assert evaluator.carrier is not None
        metrics = {f"{evaluator.id}.{metric.key}": metric for metric in evaluator.metrics}
        carrier = f"{evaluator.id}.{evaluator.carrier.key}"
        whole = {(row.segment, row.segment_value): row for row in rows if row.metric == carrier}
        made = {cut: combine_parts(evaluator, row.parts) for cut, row in whole.items()}
        per: dict[_RowKey, WindowRow] = {}
        for row in rows:
            metric = metrics.get(row.metric)
            if metric is not None and metric.per:
                per[_RowKey(row.metric, row.segment, row.segment_value)] = row
            elif metric is not None and (row.segment, row.segment_value) in made:
                yield from self._with_value(row, made[row.segment, row.segment_value].metrics.get(metric.key))
        if ("", "") in whole:
            yield from self._class_rows(evaluator, whole["", ""], made["", ""], per)

    def _with_value(self, row: WindowRow, value: float | None) -> Iterator[WindowRow]:
        if not nearly_equal(row.value, value):
            now = row._replace(value=value, version=self.version)
            # Contents that were stored just now are no revision: no reader has them yet.
            yield now if row.version == self.closing.version else self._revision(now, row)

    def _class_rows(
        self, evaluator: Evaluator, whole: WindowRow, made: Combined, stored: Mapping["_RowKey", WindowRow]
    ) -> Iterator[WindowRow]:
        """Make a row for each class, and one of zeros for each class that is gone."""
        found = {
            _RowKey(f"{evaluator.id}.{metric.key}", segment_of(metric), segment_value_of(labels)): value
            for metric in evaluator.metrics
            for labels, value in made.per.get(metric.key, {}).items()
        }
        for key in {**stored, **found}:
            before, now = stored.get(key), _class_window(whole, key, found.get(key))
            if before is None or _counts(before) != _counts(now) or not nearly_equal(before.value, now.value):
                yield self._revision(now, before)

    def _revision(self, now: WindowRow, before: WindowRow | None) -> WindowRow:
        """Make the row that replaces the one before."""
        return revision_of(now, before, self.closing, self.version)


def revision_of(now: WindowRow, before: WindowRow | None, closing: CloseParams, version: int) -> WindowRow:
    """Make the row that replaces the one before."""
    frozen = now.run_id in STREAMED_RUNS and now.start.timestamp() + now.size_s <= closing.frozen_end
    state = "frozen" if frozen else "closed" if before is None else "revised"
    return now._replace(revision=1 if before is None else before.revision + 1, state=state, version=version)


def _class_window(whole: WindowRow, key: _RowKey, found: ClassValue | None) -> WindowRow:
    """Make the row of one class with its records and its value, or with neither if the class is gone."""
    now = whole._replace(**key._asdict(), **_WITHOUT_RECORDS)
    if found is None:
        return now
    now = now._replace(seen=whole.seen, sampled=whole.sampled)
    return now._replace(applicable=found.records, scored=found.records, value=found.value)


def _counts(row: WindowRow) -> tuple[int, ...]:
    return row.seen, row.sampled, row.scored


def nearly_equal(one: float | None, other: float | None) -> bool:
    """Compare to nine digits: sums of floats inside `combine` depend on the order of the parts."""
    return one == other if one is None or other is None else math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
