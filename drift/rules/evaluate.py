"""Evaluate rules on closed live windows: each (rule, interval, revision) once, whichever leader runs."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from itertools import groupby
from operator import attrgetter
from typing import Any

from ragtide.drift.leadership import Term
from ragtide.drift.rules import queries
from ragtide.drift.rules.model import NO_RESULT, Rule, RuleResult, Series, Verdict, Window
from ragtide.drift.rules.pooling import JudgedInterval, due
from ragtide.drift.rules.queries import bound_parameters, out_of_bounds, record_query
from ragtide.drift.rules.resolve import rules_for
from ragtide.drift.settings import RuleSettings
from ragtide.drift.stats import HOUR_S
from ragtide.drift.windows import MetricRef, SegmentValues
from ragtide.evaluators.outcome import MOST_EVIDENCE, Evidence
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE

_LOOKBACK_S = HOUR_S  # of a rule that is new to a series
_WINDOWS_PER_QUERY = 50_000  # read together where more changed: a window takes a kilobyte, and a backlog has millions


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of one evaluation of the rules; `cursor` is for `commit_rule_cursor`."""

    rules: Mapping[Series, tuple[Rule, ...]]
    verdicts: int
    cursor: int


def evaluate_rules(
    database: Database,
    metrics: Mapping[str, MetricRef],
    settings: RuleSettings,
    base_s: int,
    segments: SegmentValues,
    term: Term,
) -> Evaluation:
    """Evaluate the rules of every series that changed. The verdicts are stored on return.

    Called again before `commit_rule_cursor`, it returns the same rules and evaluates nothing twice.
    """
    since = queries.rule_cursor(database)
    changed, cursor = queries.changes_since(database, base_s, since)
    rules = {
        one.series: rules_for(one.series, metrics[one.series.metric], settings)
        for one in changed
        if one.series.metric in metrics
    }
    verdict_intervals = queries.judged_intervals(
        database, {rule.rule_id for found in rules.values() for rule in found}, changed
    )
    runs = [
        _RuleRun(rule, one, intervals, _read_from(intervals, one, base_s * rule.m))
        for one in changed
        for rule in rules.get(one.series, ())
        for intervals in [verdict_intervals.get((rule.rule_id, one.series, one.fingerprint), [])]
    ]
    count = 0
    for batch in _batches(runs):
        changes = [run.changed for run in batch]
        windows = queries.load_windows(database, metrics, base_s, batch[0].hour, changes, since)
        rows = []
        for run in batch:
            rule, one = run.rule, run.changed
            for window in run.due(windows.get((one.series, one.fingerprint), ())):
                result = evaluate_window(database, rule, one.series, segments, window)
                rows.append(verdict_row(rule, one.series, one.fingerprint, window, result, term))
        database.insert("verdicts", rows)
        count += len(rows)
    return Evaluation({series: found for series, found in rules.items() if found}, count, cursor)


@dataclass(frozen=True, slots=True)
class _RuleRun:
    """One rule on one series: the intervals that have verdicts, and the start of the windows to read."""

    rule: Rule
    changed: queries.ChangedSeries
    intervals: Sequence[JudgedInterval]
    read_from: int

    @property
    def hour(self) -> int:
        """The hour from which its windows are read."""
        return self.read_from // HOUR_S * HOUR_S

    @property
    def query_key(self) -> tuple[int, str, str, str]:
        """The same for runs whose windows are read together."""
        return self.hour, *self.changed.series[:3]

    def due(self, windows: Iterable[Window]) -> Iterator[Window]:
        """Pool the windows that the rule has to evaluate."""
        recent = [window for window in windows if window.start >= self.read_from]
        return due(recent, self.intervals, self.rule.min_sample, self.rule.kind.sample_size)


def _batches(runs: Iterable[_RuleRun]) -> Iterator[list[_RuleRun]]:
    """Runs of one hour and of few windows; those of one application and metric are together."""
    batch: list[_RuleRun] = []
    windows = 0
    for _, group in groupby(sorted(runs, key=attrgetter("query_key")), key=attrgetter("query_key")):
        alike = list(group)
        changed = sum(run.changed.windows for run in alike)
        if batch and (alike[0].hour != batch[0].hour or windows + changed > _WINDOWS_PER_QUERY):
            yield batch
            batch, windows = [], 0
        batch += alike
        windows += changed
    if batch:
        yield batch


def verdict_row(rule: Rule, series: Series, fingerprint: str, window: Window, found: RuleResult, term: Term) -> Verdict:
    """Make the row of `verdicts`. Too few records are never a breach."""
    return Verdict(
        rule.rule_id,
        LIVE,
        *series,
        fingerprint,
        datetime.fromtimestamp(window.start, UTC),
        datetime.fromtimestamp(window.end, UTC),
        window.revision,
        int(found.breached and found.samples >= rule.min_sample),
        found.value,
        found.threshold,
        found.samples,
        found.bad,
        int(window.incomplete),
        term.next_version(),
        found.low,
        found.high,
        found.freedom,
    )


def evaluate_window(
    database: Database, rule: Rule, series: Series, segments: SegmentValues, window: Window
) -> RuleResult:
    """Evaluate a window; `NO_RESULT` if it has no records, or the result is unknown."""
    if not rule.kind.sample_size(window):
        return NO_RESULT
    allowed = 0
    if rule.kind.zero_tolerance and (rule.allow_kinds or rule.allow_texts) and rule.bad_count(window):
        allowed = _count_allowed_records(database, rule, series, segments, window.start, window.end)
    return rule.kind.evaluate(window, rule, series, allowed) or NO_RESULT


def _read_from(verdict_intervals: Sequence[JudgedInterval], one: queries.ChangedSeries, k_of_m_s: int) -> int:
    """Find where to start reading: at the changes, the interval around them, or the windows not pooled yet."""
    if not verdict_intervals:
        return one.changed_from - max(_LOOKBACK_S, k_of_m_s)
    around = [interval.start for interval in verdict_intervals if interval.end > one.changed_from]
    return min([one.changed_from, max(interval.end for interval in verdict_intervals), *around])


def _count_allowed_records(
    database: Database, rule: Rule, series: Series, segments: SegmentValues, start: int, end: int
) -> int:
    """Count records of [start, end) beyond the bounds whose evidence is all allowed, by its kind or by its text.

    Without stored texts no text is allowed. A record with `MOST_EVIDENCE` is never excused: there may be more.
    """
    records = record_query(series, segments, start, end)
    rows = database.rows(
        f"SELECT trace_id, evidence FROM {records.rows} AND {out_of_bounds()}",
        records.parameters | bound_parameters(rule),
    )
    evidence = {row["trace_id"]: [Evidence(**one) for one in json.loads(row["evidence"] or "[]")] for row in rows}
    texts = _stored_texts(database, series, sorted(evidence), start, end) if rule.allow_texts else {}
    return sum(
        0 < len(pointed) < MOST_EVIDENCE and all(_is_allowed(rule, one, texts.get(trace_id)) for one in pointed)
        for trace_id, pointed in evidence.items()
    )


def _is_allowed(rule: Rule, evidence: Evidence, texts: Mapping[str, Any] | None) -> bool:
    if evidence.kind in rule.allow_kinds:
        return True
    found = _evidence_text(evidence, texts) if texts is not None else None
    return found is not None and any(fnmatchcase(found.lower(), pattern.lower()) for pattern in rule.allow_texts)


def _evidence_text(evidence: Evidence, texts: Mapping[str, Any]) -> str | None:
    whole: str | None = None
    if evidence.field in ("question", "answer"):
        whole = texts[evidence.field]
    elif evidence.chunk_id in texts["chunk_ids"]:
        whole = texts["chunks"][texts["chunk_ids"].index(evidence.chunk_id)]
    return None if whole is None else whole[evidence.start : evidence.end]


def _stored_texts(
    database: Database, series: Series, trace_ids: Sequence[str], start: int, end: int
) -> dict[str, Mapping[str, Any]]:
    rows = database.rows(
        """
        SELECT trace_id, question, answer, chunk_ids, chunks FROM trace_texts FINAL
        WHERE run_id = 'live' AND app = {app:String} AND environment = {environment:String}
            AND time >= {start:DateTime64(3, 'UTC')} AND time < {end:DateTime64(3, 'UTC')}
            AND trace_id IN {trace_ids:Array(String)}
        """,
        {
            "app": series.app,
            "environment": series.environment,
            "start": datetime.fromtimestamp(start, UTC),
            "end": datetime.fromtimestamp(end, UTC),
            "trace_ids": list(trace_ids),
        },
    )
    return {row["trace_id"]: row for row in rows}
