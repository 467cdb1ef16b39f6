"""Explain the shift of a metric by windows and rows, in bounded time: one `RootCause` for operators."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from ragtide.drift.rootcause import slice_queries
from ragtide.drift.rootcause.attribution import MIN_TIMES, Contribution, Shift, main_contributor, shift_of
from ragtide.drift.rootcause.measure import MeasuredQuantity, share_out_of_bounds, tail_share
from ragtide.drift.rootcause.query import RcaQuery, RcaScope, rca_scope
from ragtide.drift.rootcause.question_mix import QuestionMix, find_question_mix
from ragtide.drift.rootcause.retrieval_or_generation import Stage, find_stage
from ragtide.drift.rootcause.slice_queries import WHOLE, bins_before, splits_of_rows, splits_of_windows
from ragtide.drift.rootcause.slices import Split, with_traffic
from ragtide.drift.rootcause.versions import VersionChange, version_changes
from ragtide.drift.windows import OTHER_VALUES, MetricRef, SegmentValues
from ragtide.sinks.clickhouse.database import Database

_MAX_DEPTH = 3


class Attribution(NamedTuple):
    """Each contributor is within the one before it; none of `dimensions` explains the shift if there is none.

    `sample_share` is the smallest share of rows that was read on the way.
    """

    contributors: tuple[Contribution, ...]
    dimensions: tuple[str, ...]
    sample_share: float

    @property
    def within(self) -> dict[str, str]:
        """The values by dimension of the groups that changed themselves."""
        return {one.dimension: one.value for one in self.contributors if one.is_rate_effect}


def attribute(
    database: Database,
    scope: RcaScope,
    quantity: MeasuredQuantity,
    windows: Mapping[str, Split],
    shift: Shift,
    *,
    by_rows: bool,
) -> Attribution:
    """Find the main contributor, and the one within it; `windows` are the splits that windows give.

    Windows are cut by one segment at a time, so other dimensions, and what is within a group, are read from rows. A
    group whose share of the traffic changed, and not itself, is not looked into; nor is any unless `by_rows`.
    """
    dimensions = _dimensions(scope)
    splits = {name: split for name, split in windows.items() if name in dimensions}
    records = shift.n_before + shift.n_after
    if by_rows:
        missing = [name for name in dimensions if name not in splits]
        splits |= splits_of_rows(database, scope, quantity, {}, missing, records)
    tested = tuple(sorted(name for name, split in splits.items() if split.has_groups))
    within, sample_share = dict[str, str](), float(by_rows)
    found: list[Contribution] = []
    while splits:
        sample_share = min([sample_share, *(split.sample_share for split in splits.values())])
        one = main_contributor(list(splits.values()), scope.query.seed)
        if one is None:
            break
        found.append(one)
        within[one.dimension] = one.value
        if len(found) == _MAX_DEPTH or not (one.is_rate_effect and by_rows):
            break
        # What windows know as one may be many: its rows have their own values.
        dimensions = [name for name in dimensions if name != one.dimension or one.value == OTHER_VALUES]
        records *= one.traffic
        splits = splits_of_rows(database, scope, quantity, within, dimensions, records)
    return Attribution(tuple(found), tested, sample_share)


def _dimensions(scope: RcaScope) -> list[str]:
    """Return the dimensions that the query leaves open; values that windows know as one leave theirs."""
    fixed = scope.query.segment if scope.query.segment_value != OTHER_VALUES else ""
    return [*scope.columns, *(name for name in scope.stable_segments() if name != fixed)]


_MAX_REASONS = 5


class FailureReason(NamedTuple):
    """A kind of failure: its share of the records to be scored before and after, and of the shift."""

    kind: str
    before: float
    after: float
    share: float


def failure_reasons(database: Database, scope: RcaScope, shift: Shift) -> list[FailureReason]:
    """Return the kinds that explain most of the shift, five at most."""
    totals = database.rows(
        f"""
        SELECT kind, toFloat64(sumIf(n, at < 0)) AS before, toFloat64(sumIf(n, at >= 0)) AS after FROM (
            SELECT {scope.timeline.step_of_window} AS at, failures
            FROM windows FINAL WHERE {scope.series_condition} AND {scope.step_condition("at")}
        ) ARRAY JOIN mapKeys(failures) AS kind, mapValues(failures) AS n
        GROUP BY kind"""
    )
    found = [(row["kind"], row["before"] / shift.n_before, row["after"] / shift.n_after) for row in totals]
    parts = [FailureReason(kind, before, after, (after - before) / shift.size) for kind, before, after in found]
    return sorted(parts, key=lambda one: (-one.share, one.kind))[:_MAX_REASONS]


@dataclass(frozen=True, slots=True)
class RootCause:
    """What was found; if `shift` is None, there is nothing before the onset or after it, and nothing else is known.

    `contributors`, `dimensions` and `sample_share` are those of `Attribution`; a `sample_share` of 0 means that no rows
    were read. With `too_few` of the `times` that have records, no contributor can be found yet.
    """

    quantity: MeasuredQuantity | None
    shift: Shift | None
    compared_from: datetime
    contributors: tuple[Contribution, ...] = ()
    dimensions: tuple[str, ...] = ()
    too_few: bool = False
    times: int = 0
    versions: tuple[VersionChange, ...] = ()
    stage: Stage | None = None
    question_mix: QuestionMix | None = None
    failure_reasons: tuple[FailureReason, ...] = ()
    sample_share: float = 1.0

    @property
    def attributes(self) -> dict[str, Any]:
        """All of it for JSON, without any text of users."""
        return {
            "measure": self.quantity.kind if self.quantity else None,
            "least": self.quantity.min if self.quantity else None,
            "greatest": self.quantity.max if self.quantity else None,
            "move": self.shift._asdict() if self.shift else None,
            "compared_from": self.compared_from.isoformat(),
            "culprits": [one._asdict() for one in self.contributors],
            "tried": self.dimensions,
            "too_few": self.too_few,
            "times": self.times,
            "versions": [one._asdict() | {"at": one.at.isoformat()} for one in self.versions],
            "stage": self.stage._asdict() if self.stage else None,
            "traffic": self.question_mix._asdict() if self.question_mix else None,
            "reasons": [one._asdict() for one in self.failure_reasons],
            "sampled": self.sample_share,
        }


def explain_shift(
    database: Database,
    metrics: Mapping[str, MetricRef],
    query: RcaQuery,
    segments: SegmentValues,
    base_s: int,
) -> RootCause:
    """Find the root cause by windows first, then by rows within the contributors and by traces that failed.

    If there are millions of rows, a shorter time around the onset is read. If that still has too many, no rows are
    read: there is at most one contributor, and no stage or question mix. `segments` are the values by which windows of
    `base_s` seconds are cut.
    """
    evidence = _read_windows(database, query, segments, base_s)
    if evidence.records > slice_queries.MOST_SCANNED:
        base = timedelta(seconds=base_s)
        windows = (query.until - query.since) * (slice_queries.MOST_SCANNED / evidence.records) // base
        shorter = _read_windows(database, replace(query, until=query.since + windows * base), segments, base_s)
        evidence = shorter if 0 < shorter.records <= slice_queries.MOST_SCANNED else evidence
    scope, quantity, shift = evidence.scope, evidence.quantity, evidence.shift
    compared_from = datetime.fromtimestamp(scope.timeline.start, UTC)
    versions = tuple(version_changes(database, scope))
    if quantity is None or shift is None or not shift.size:
        return RootCause(quantity, shift, compared_from, versions=versions)
    by_rows = evidence.records <= slice_queries.MOST_SCANNED
    path = attribute(database, scope, quantity, evidence.splits, shift, by_rows=by_rows)
    times = len(with_traffic([evidence.splits[WHOLE]])[0].after)
    return RootCause(
        quantity,
        shift,
        compared_from,
        contributors=path.contributors,
        dimensions=path.dimensions,
        too_few=times < MIN_TIMES,
        times=times,
        versions=versions,
        stage=find_stage(database, scope, quantity, metrics, path.within) if by_rows else None,
        question_mix=find_question_mix(database, scope, quantity, evidence.records) if by_rows else None,
        failure_reasons=tuple(failure_reasons(database, scope, shift)) if quantity.kind == "coverage" else (),
        sample_share=path.sample_share,
    )


class _WindowEvidence(NamedTuple):
    """What windows give on a query."""

    scope: RcaScope
    quantity: MeasuredQuantity | None
    splits: Mapping[str, Split]
    shift: Shift | None

    @property
    def records(self) -> float:
        """How many there are, about as many as rows."""
        return self.shift.n_before + self.shift.n_after if self.shift else 0.0


def _read_windows(database: Database, query: RcaQuery, segments: SegmentValues, base_s: int) -> _WindowEvidence:
    scope = rca_scope(database, query, segments, base_s)
    quantity = _choose_quantity(database, scope) if scope.fingerprints else None
    windows = splits_of_windows(database, scope, quantity) if quantity else {}
    return _WindowEvidence(scope, quantity, windows, shift_of(windows[WHOLE]) if WHOLE in windows else None)


def _choose_quantity(database: Database, scope: RcaScope) -> MeasuredQuantity | None:
    """Choose what the rule evaluates, or the metric's threshold; None if no window before the onset has records."""
    metric_ref, rule = scope.query.metric_ref, scope.query.rule
    if rule is not None and rule.kind.counts_unscored:
        return MeasuredQuantity("coverage", metric_ref)
    min_value, max_value = metric_ref.bounds if rule is None else (rule.min, rule.max)
    if rule is not None and not rule.kind.is_average:
        return share_out_of_bounds(metric_ref, min_value, max_value)
    if metric_ref.scale.bounded:
        return MeasuredQuantity("mean", metric_ref, min_value, max_value)
    if rule is not None:
        return share_out_of_bounds(metric_ref, min_value, max_value)
    return tail_share(metric_ref, bins_before(database, scope))
