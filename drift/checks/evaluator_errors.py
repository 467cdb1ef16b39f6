"""Check evaluators, judges and models that keep failing, which makes their other scores unreliable.

Coverage counts traces without a score for any reason, with a higher limit; an open problem of this kind inhibits it
(see `ragtide.drift.problems.inhibition`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from ragtide.drift.checks.engine import Check, CheckContext, Observation
from ragtide.drift.checks.hysteresis import HysteresisState, WindowCount, k_of_m, k_of_m_history
from ragtide.drift.problems import Detection, ProblemKey, bad_share_attributes, build_details
from ragtide.drift.rules import limits_for
from ragtide.drift.stats import calendar
from ragtide.drift.text import percent, scope_label, timestamp
from ragtide.drift.windows import MetricRef, live_windows
from ragtide.sinks.clickhouse.database import Database

_LOOKBACK = timedelta(hours=6)
_REASONS = 5
_EXAMPLES = 10


class EvaluatorErrors(Check):
    """An evaluator fails on too great a share of an application's traces, in k of m intervals."""

    kind = "evaluator_error"
    job = "errors"
    history_lookback_s = int(_LOOKBACK.total_seconds())

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Observe every evaluator that failed at all in closed windows of the last hours."""
        until = int(now.timestamp())
        for one in _load_failures(ctx, until - int(_LOOKBACK.total_seconds()), until):
            found = k_of_m(one.windows, _limit(ctx, one), ctx.rules.of(one.app))
            yield _observation(ctx, one, found)

    def history(self, ctx: CheckContext, first: int, until: int) -> Iterator[tuple[int, Observation]]:
        """Observe at each end of a base window; windows before `first` are not known."""
        instants = range(first + ctx.windows.base_s, until + 1, ctx.windows.base_s)
        for one in _load_failures(ctx, first, until):
            windows, own = {"": one.windows}, ctx.rules.of(one.app)
            for at, found in k_of_m_history(windows, _limit(ctx, one), own, instants, _LOOKBACK):
                yield at, _observation(ctx, one, found)


class _Failures(NamedTuple):
    """One evaluator on one application's traces: all its windows, also without a failure."""

    app: str
    environment: str
    evaluator: str
    windows: tuple[WindowCount, ...]
    reasons: tuple[tuple[int, Mapping[str, int]], ...]  # by start of the window

    @property
    def key(self) -> ProblemKey:
        """The evaluator on this application."""
        return ProblemKey(self.app, self.environment, "", "error", self.evaluator)


def _limit(ctx: CheckContext, one: _Failures) -> float:
    return limits_for(one.app, one.evaluator, ctx.rules).error_limit


def _observation(ctx: CheckContext, one: _Failures, found: HysteresisState) -> Observation:
    detection = None if found.breach is None else partial(_detection, ctx, one, found.breach)
    return Observation(one.key, found.state, detection, len(one.windows))


def _load_failures(ctx: CheckContext, since: int, until: int) -> list[_Failures]:
    """Load evaluators that failed in [since, until), seconds since 1970, by one metric each that every trace has."""
    evaluators = [one for one in ctx.evaluators.values() if not all(metric.per for metric in one.metrics)]
    names = [MetricRef(one, next(metric for metric in one.metrics if not metric.per)).name for one in evaluators]
    base_s = ctx.windows.base_s
    windows = live_windows(base_s, names, since, until)
    rows = ctx.database.rows(
        f"""
        SELECT app, environment, evaluator, groupArray((at, n, wrong, why)) AS windows
        FROM (
            SELECT app, environment, evaluator, toUnixTimestamp(start) AS at, sum(applicable) AS n,
                sum(failed) AS wrong, sumMap(failures) AS why
            FROM windows FINAL WHERE {windows} GROUP BY app, environment, evaluator, at HAVING n > 0
        )
        GROUP BY app, environment, evaluator HAVING arraySum(windows.3) > 0 ORDER BY app, environment, evaluator"""
    )
    return [
        _Failures(
            row["app"],
            row["environment"],
            row["evaluator"],
            tuple(sorted(WindowCount(at, at + base_s, n, wrong) for at, n, wrong, _ in row["windows"])),
            tuple((at, why) for at, _, _, why in row["windows"]),
        )
        for row in rows
    ]


def _detection(ctx: CheckContext, one: _Failures, breach: WindowCount) -> Detection:
    since, until = calendar.utc(breach.start), calendar.utc(breach.end)
    records, bad = map(round, breach.counts)
    why = Counter[str]()
    for at, counts in one.reasons:
        if breach.start <= at < breach.end:
            why.update(counts)
    reasons = [f"{reason} {count}" for reason, count in sorted(why.items(), key=lambda r: (-r[1], r[0]))[:_REASONS]]
    evaluator = ctx.evaluators[one.evaluator]
    message = (
        f"{scope_label(one.app, one.environment)}: {one.evaluator} failed on {bad} of {records} traces "
        f"({percent(breach.share)}), above the limit of {percent(_limit(ctx, one))}, since {timestamp(since)}. "
        f"Reasons: {', '.join(reasons)}."
    )
    details = build_details(
        EvaluatorErrors.kind,
        one.key,
        MetricRef(evaluator, evaluator.metrics[0]),
        message,
        {**bad_share_attributes(bad, records, _limit(ctx, one)), "reasons": reasons},
        ctx.rules,
        bad=bad,
        traffic=records,
        examples=_examples(ctx.database, one, since, until),
    )
    return Detection(one.key, details, since, until)


def _examples(database: Database, one: _Failures, since: datetime, until: datetime) -> list[str]:
    """Return ids of traces that it failed on, the latest first."""
    rows = database.rows(
        "SELECT trace_id FROM scores FINAL WHERE run_id = 'live' AND app = {app:String} "
        "AND environment = {environment:String} AND evaluator = {evaluator:String} AND status = 'failed' "
        "AND time >= {since:DateTime64(3, 'UTC')} AND time < {until:DateTime64(3, 'UTC')} "
        f"ORDER BY time DESC, trace_id LIMIT {_EXAMPLES}",
        {
            "app": one.app,
            "environment": one.environment,
            "evaluator": one.evaluator,
            "since": since,
            "until": until,
        },
    )
    return [row["trace_id"] for row in rows]
