"""An evaluator, judge or model that keeps failing is a problem of its own: what it says of the rest is little worth.

Told apart from coverage, which asks how many traces lack a score for whatever reason: there the limit is higher, and
where this problem is open that one is expected (see `ragtide.drift.problems.inhibition`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ragtide.drift.checks.hysteresis import WindowCount, k_of_m
from ragtide.drift.leadership import Term
from ragtide.drift.problems.model import Kind
from ragtide.drift.problems.report import (
    CheckResult,
    Clear,
    Detection,
    ProblemKey,
    bad_share_attributes,
    build_details,
    open_detections,
    report,
)
from ragtide.drift.rules.resolve import limits_for
from ragtide.drift.settings import RuleSettings
from ragtide.drift.text import percent, scope_label, timestamp
from ragtide.drift.windows.metrics import MetricRef
from ragtide.drift.windows.traffic import live_windows
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database

_KIND: Kind = "evaluator_error"
LOOKBACK = timedelta(hours=6)
_REASONS = 5
_EXAMPLES = 10


class EvaluatorFailures(NamedTuple):
    """One evaluator on one application's traces: its windows, those without a failure too."""

    app: str
    environment: str
    evaluator: str
    windows: tuple[WindowCount, ...]
    reasons: tuple[tuple[int, Mapping[str, int]], ...]  # by start of the window

    @property
    def key(self) -> ProblemKey:
        """Where its trouble is told."""
        return ProblemKey(self.app, self.environment, "", "error", self.evaluator)


def check_evaluator_errors(
    database: Database,
    evaluators: Iterable[Evaluator],
    rules: RuleSettings,
    base_s: int,
    term: Term,
    now: datetime,
) -> CheckResult:
    """What closed windows of the last hours say is told when this returns; `now` is the server's time."""
    known = {one.id: one for one in evaluators}
    reports: dict[ProblemKey, Detection | Clear] = {
        key: Clear(key, _KIND, now) for key in open_detections(database, _KIND)
    }
    until = int(now.timestamp())
    read = 0
    for one in load_failures(database, known.values(), base_s, until - int(LOOKBACK.total_seconds()), until):
        read += len(one.windows)
        limit = limits_for(one.app, one.evaluator, rules).error_limit
        found = k_of_m(one.windows, limit, rules.of(one.app))
        if found.breach is not None:
            reports[one.key] = detection_of(database, one, known[one.evaluator], found.breach, limit, rules)
        elif found.state == "unclear":
            reports.pop(one.key, None)
    return CheckResult(read, report(database, list(reports.values()), rules, term, now))


def load_failures(
    database: Database, evaluators: Iterable[Evaluator], base_s: int, since: int, until: int
) -> list[EvaluatorFailures]:
    """Those that failed at all in that time (seconds since 1970), by one metric each: it is told of every trace."""
    first = {
        next(m for m in one.metrics if not m.per): one for one in evaluators if not all(m.per for m in one.metrics)
    }
    names = [MetricRef(one, metric).name for metric, one in first.items()]
    windows = live_windows(base_s, names, since, until)
    rows = database.rows(
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
        EvaluatorFailures(
            row["app"],
            row["environment"],
            row["evaluator"],
            tuple(sorted(WindowCount(at, at + base_s, n, wrong) for at, n, wrong, _ in row["windows"])),
            tuple((at, why) for at, _, _, why in row["windows"]),
        )
        for row in rows
    ]


def detection_of(
    database: Database,
    one: EvaluatorFailures,
    evaluator: Evaluator,
    breach: WindowCount,
    limit: float,
    rules: RuleSettings,
) -> Detection:
    """What is said of an evaluator that fails too often."""
    since, until = (datetime.fromtimestamp(at, UTC) for at in (breach.start, breach.end))
    why = Counter[str]()
    for at, counts in one.reasons:
        if breach.start <= at < breach.end:
            why.update(counts)
    reasons = [f"{reason} {count}" for reason, count in sorted(why.items(), key=lambda r: (-r[1], r[0]))[:_REASONS]]
    message = (
        f"{scope_label(one.app, one.environment)}: {one.evaluator} failed on {breach.bad} of {breach.records} traces "
        f"({percent(breach.share)}), above the limit of {percent(limit)}: {', '.join(reasons)}; "
        f"since {timestamp(since)}."
    )
    details = build_details(
        _KIND,
        one.key,
        MetricRef(evaluator, evaluator.metrics[0]),
        message,
        {**bad_share_attributes(breach.bad, breach.records, limit), "reasons": reasons},
        rules,
        bad=breach.bad,
        traffic=breach.records,
        examples=_examples(database, one, since, until),
    )
    return Detection(one.key, details, since, until)


def _examples(database: Database, one: EvaluatorFailures, since: datetime, until: datetime) -> list[str]:
    """Traces that it failed on, the latest first."""
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
