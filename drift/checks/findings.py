"""Check what evaluators report beside their scores: one problem per remark, or per kind of leak.

A remark (an answer too short to embed, an unsound artifact) is a problem if many traces of an hour have it, in number
and as a share; a kind of leak (an address, a key) if many answers have it. Every single leak is a problem by rule
`any`, whose limits and allow-lists hold here too; if texts are allowed, kinds are not reported. A problem clears once
an hour has half as many.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ragtide.drift import sql
from ragtide.drift.checks.engine import Check, CheckContext, CumulativeCounts, Observation
from ragtide.drift.problems import Detection, ProblemKey, bad_share_attributes, build_details, type_of
from ragtide.drift.rules import limits_for, rule_of_app, rule_of_every_app
from ragtide.drift.settings import RuleSettings
from ragtide.drift.stats import calendar
from ragtide.drift.text import percent, scope_label, timestamp
from ragtide.drift.windows import MetricRef, is_out_of_bounds
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database

_LOOKBACK = timedelta(hours=1)
_LOOKBACK_S = int(_LOOKBACK.total_seconds())
_READ_S = 6 * calendar.HOUR_S  # of a long time that are read by one statement
_EXAMPLES = 10
_CLEAR_FRACTION = 0.5
_EVALUATOR_COLUMNS = "app, environment, evaluator"
_FINDING_COLUMNS = f"{_EVALUATOR_COLUMNS}, finding, leaked"
_LIVE = (
    "run_id = 'live' AND evaluator IN {evaluators} AND time >= {{since:DateTime64(3, 'UTC')}} "
    "AND time < {{until:DateTime64(3, 'UTC')}}"
)


_TimedCounts = list[tuple[int, int]]  # starts of intervals, in order, and how many traces


class _Finding(NamedTuple):
    """A remark of an evaluator on an application's traces, or a kind of what they `leaked`."""

    app: str
    environment: str
    evaluator: str
    name: str
    leaked: bool

    @property
    def key(self) -> ProblemKey:
        """The remark or kind on this application."""
        return ProblemKey(self.app, self.environment, "", "finding", self.evaluator, "finding", self.name)


class _FindingCount(NamedTuple):
    """`affected` of the evaluator's `traces` in an hour have the finding, the earliest at `first`."""

    finding: _Finding
    affected: int
    traces: int
    first: datetime
    examples: tuple[str, ...]


class Findings(Check):
    """Too many traces of an hour have a remark of an evaluator, or a kind of leak."""

    kind = "finding"
    job = "findings"

    def judged_until(self, ctx: CheckContext, key: ProblemKey, now: datetime) -> datetime | None:
        """Return the watermark of the evaluator's lane; now, if the evaluator is gone."""
        evaluator = ctx.evaluators.get(key.metric)
        return now if evaluator is None else ctx.watermarks.get(evaluator.lane)

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Observe the last hour before the watermark of each lane."""
        for lane, until in sorted(ctx.watermarks.items()):
            known = {id_: one for id_, one in ctx.evaluators.items() if one.lane == lane}
            for one in _load_findings(ctx, known, until) if known else ():
                detection = partial(_detection, ctx, one, until)
                yield _observation(ctx, one.finding, one.affected, one.traces, detection)

    def history(self, ctx: CheckContext, first: int, until: int) -> Iterator[tuple[int, Observation]]:
        """Observe at each end of a base window the hour before; traces of the hour before `first` count."""
        instants = np.arange(first + ctx.windows.base_s, until + 1, ctx.windows.base_s)
        affected, evaluated = _counts_by_time(ctx, first, until)
        for one, counts in sorted(affected.items()):
            pairs = (
                CumulativeCounts.of(some).within(instants - _LOOKBACK_S, instants).tolist()
                for some in (counts, evaluated[one[:3]])
            )
            for at, n, of in zip(instants.tolist(), *pairs, strict=True):
                yield at, _observation(ctx, one, n, of, partial(_past_detection, ctx, one, at))


def _observation(
    ctx: CheckContext, one: _Finding, affected: int, traces: int, detection: Callable[[], Detection]
) -> Observation:
    bad, uncleared = (_exceeds_limit(one, affected, traces, ctx.rules, part) for part in (1.0, _CLEAR_FRACTION))
    return Observation.of(one.key, bad=bad, cleared=not uncleared, detection=detection, read=affected)


def _exceeds_limit(one: _Finding, affected: int, traces: int, rules: RuleSettings, fraction: float) -> bool:
    """Tell whether so many traces of an hour exceed this fraction of the limits."""
    limits = limits_for(one.app, one.evaluator, rules)
    often = affected >= fraction * limits.finding_traces
    return often and (
        one.leaked or (traces >= rules.of(one.app).min_sample and affected / traces > fraction * limits.finding_limit)
    )


def _is_allowed(one: _Finding, evaluator: Evaluator, rules: RuleSettings) -> bool:
    """Tell whether this kind of leak is allowed."""
    return one.leaked and all(
        rule is None or not rule.kind.zero_tolerance or one.name in rule.allow_kinds or bool(rule.allow_texts)
        for rule in (
            rule_of_app(one.app, watched, rules)
            for watched in (MetricRef(evaluator, metric) for metric in evaluator.metrics)
        )
    )


def _leaks(evaluators: Iterable[Evaluator], rules: RuleSettings) -> str:
    """Return the condition on rows of scores: beyond a bound of a rule `any`."""
    conditions = []
    for watched in (MetricRef(one, metric) for one in evaluators for metric in one.metrics):
        rule = rule_of_every_app(watched, rules)
        if rule is None or not rule.kind.zero_tolerance:
            continue
        value = f"metrics[{sql.text(watched.metric.key)}]"
        wrong = is_out_of_bounds(value, watched.scale, rule.min, rule.max)
        conditions.append(f"(evaluator = {sql.text(watched.evaluator.id)} AND {wrong})")
    return f"(status = 'scored' AND ({' OR '.join(conditions) or 'false'}))"


def _findings_query(known: Mapping[str, Evaluator], rules: RuleSettings) -> str:
    """Return a query: traces of [since, until) with each remark and kind of leak, and how many `times` they have it."""
    leaks = _leaks(known.values(), rules)
    kinds = "arrayMap(one -> JSONExtractString(one, 'kind'), JSONExtractArrayRaw(toString(evidence)))"
    has = f"(notEmpty(findings) OR ({leaks} AND evidence NOT IN ('', '[]')))"
    return f"""
        SELECT app, environment, evaluator, time, trace_id, pair.1 AS finding, pair.2 AS leaked,
            arrayCount(one -> one = pair.1, kinds) AS times
        FROM (
            SELECT app, environment, evaluator, time, trace_id, {kinds} AS kinds, arrayConcat(
                arrayMap(one -> (toString(one), false), arrayDistinct(findings)),
                if({leaks}, arrayMap(one -> (one, true), arrayDistinct(arrayFilter(one -> one != '', kinds))), [])
            ) AS pairs
            FROM scores FINAL WHERE {_LIVE.format(evaluators=sql.texts(sorted(known)))} AND {has}
        ) ARRAY JOIN pairs AS pair"""


def _load_findings(ctx: CheckContext, known: Mapping[str, Evaluator], until: datetime) -> list[_FindingCount]:
    """Load findings of the last hour that are not allowed; the examples with most of it first."""
    parameters = {"since": until - _LOOKBACK, "until": until}
    rows = ctx.database.rows(
        f"""
        SELECT {_FINDING_COLUMNS}, count() AS n, min(time) AS first,
            arrayMap(one -> one.2, arraySlice(arraySort(groupArray((-times, trace_id))), 1, {_EXAMPLES})) AS examples
        FROM ({_findings_query(known, ctx.rules)}) GROUP BY {_FINDING_COLUMNS} ORDER BY {_FINDING_COLUMNS}""",
        parameters,
    )
    looked_at = _evaluated_traces({row["evaluator"] for row in rows})
    totals = {
        (row["app"], row["environment"], row["evaluator"]): row["n"]
        for row in ctx.database.rows(
            f"SELECT {_EVALUATOR_COLUMNS}, count() AS n {looked_at} GROUP BY {_EVALUATOR_COLUMNS}", parameters
        )
    }
    found = [
        _FindingCount(one, row["n"], totals[one[:3]], row["first"], tuple(row["examples"]))
        for row, one in ((row, _finding(row)) for row in rows)
    ]
    return [one for one in found if not _is_allowed(one.finding, known[one.finding.evaluator], ctx.rules)]


def _counts_by_time(
    ctx: CheckContext, first: int, until: int
) -> tuple[Mapping[_Finding, _TimedCounts], Mapping[tuple[str, str, str], _TimedCounts]]:
    """Count affected and evaluated traces by interval of [first, until)."""
    every_s = math.gcd(ctx.windows.base_s, _LOOKBACK_S)
    intervals = [(at, min(at + _READ_S, until)) for at in range(first - _LOOKBACK_S, until, _READ_S)]
    found_query = f"FROM ({_findings_query(ctx.evaluators, ctx.rules)})"
    affected: dict[_Finding, _TimedCounts] = {}
    for row in _read_counts(ctx.database, _FINDING_COLUMNS, found_query, intervals, every_s):
        one = _finding(row)
        if not _is_allowed(one, ctx.evaluators[one.evaluator], ctx.rules):
            affected.setdefault(one, []).extend(row["counts"])
    evaluated: dict[tuple[str, str, str], _TimedCounts] = {}
    traces_query = _evaluated_traces({one.evaluator for one in affected})
    for row in _read_counts(ctx.database, _EVALUATOR_COLUMNS, traces_query, intervals if affected else [], every_s):
        evaluated.setdefault((row["app"], row["environment"], row["evaluator"]), []).extend(row["counts"])
    return affected, evaluated


def _read_counts(
    database: Database, columns: str, traces: str, intervals: Iterable[tuple[int, int]], every_s: int
) -> Iterator[Mapping[str, Any]]:
    query = f"""
        SELECT {columns}, arraySort(groupArray((at, n))) AS counts FROM (
            SELECT {columns}, toUInt32(intDiv(toUnixTimestamp(time), {every_s}) * {every_s}) AS at, count() AS n
            {traces} GROUP BY {columns}, at
        ) GROUP BY {columns} ORDER BY {columns}"""
    for since, until in intervals:
        yield from database.rows(query, {"since": calendar.utc(since), "until": calendar.utc(until)})


def _finding(row: Mapping[str, Any]) -> _Finding:
    return _Finding(row["app"], row["environment"], row["evaluator"], row["finding"], bool(row["leaked"]))


def _evaluated_traces(evaluators: Iterable[str]) -> str:
    """Return the FROM clause for traces that these evaluators evaluated."""
    live = _LIVE.format(evaluators=sql.texts(sorted(evaluators)))
    return f"FROM scores FINAL WHERE {live} AND status != 'sampled_out'"


def _past_detection(ctx: CheckContext, one: _Finding, at: int) -> Detection:
    """Read that hour again, as its run did."""
    until = calendar.utc(at)
    known = _load_findings(ctx, {one.evaluator: ctx.evaluators[one.evaluator]}, until)
    return _detection(ctx, next(found for found in known if found.finding == one), until)


def _detection(ctx: CheckContext, found: _FindingCount, until: datetime) -> Detection:
    evaluator = ctx.evaluators[found.finding.evaluator]
    one, share = found.finding, percent(found.affected / found.traces)
    message = (
        f"{scope_label(one.app, one.environment)}: {one.evaluator} {'found' if one.leaked else 'reported'} "
        f"{one.name} in {found.affected} of {found.traces} traces ({share}) of the last hour, "
        f"since {timestamp(found.first)}."
    )
    limit = None if one.leaked else limits_for(one.app, one.evaluator, ctx.rules).finding_limit
    metric = MetricRef(evaluator, evaluator.metrics[0])
    details = build_details(
        Findings.kind,
        one.key,
        metric,
        message,
        {**bad_share_attributes(found.affected, found.traces, limit), "finding": one.name},
        ctx.rules,
        bad=found.affected,
        traffic=found.traces,
        type_=type_of(metric, "threshold") if one.leaked else None,  # a leak is no fault of the data
        severity="critical" if one.leaked else None,
        examples=found.examples,
    )
    return Detection(one.key, details, found.first, until)
