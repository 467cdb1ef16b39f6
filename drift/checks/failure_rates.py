"""Too great a share of the traces fails a metric though its mean looks well: a problem at the same place as the mean's.

The share beyond the threshold is exact, from the windows' bins. Of the failing traces it is told how many had bad
contexts (see `ragtide.drift.rootcause.retrieval_or_generation`: the cause is retrieval), how many had good ones
(generation), and of how many that is not known; and beside them how many traces the evaluator could not read (parse).
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.drift.checks.hysteresis import WindowCount, k_of_m, pool_backward
from ragtide.drift.leadership import Term
from ragtide.drift.problems import evidence
from ragtide.drift.problems.classification import type_of
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
from ragtide.drift.rootcause.retrieval_or_generation import ARE_BAD, context_metrics, select_context_results
from ragtide.drift.rules.evaluator_versions import Interval, VersionStart, active_versions
from ragtide.drift.rules.model import Rule, Series
from ragtide.drift.rules.queries import bound_parameters, out_of_bounds, record_query
from ragtide.drift.rules.resolve import rule_of_app
from ragtide.drift.settings import RuleSettings
from ragtide.drift.text import percent, timestamp
from ragtide.drift.windows.histogram import bin_bounds, count_out_of_bounds
from ragtide.drift.windows.metrics import MetricRef
from ragtide.drift.windows.segments import SegmentValues
from ragtide.sinks.clickhouse.database import Database

_KIND: Kind = "failure_rate"
LOOKBACK = timedelta(hours=6)
_MAX_TRACES = 5_000  # failing traces whose contexts are looked at


class SeriesFailures(NamedTuple):
    """The windows of one series by fingerprint, each in order of time."""

    series: Series
    windows: Mapping[str, Sequence[WindowCount]]


def check_failure_rates(
    database: Database,
    metrics: Mapping[str, MetricRef],
    rules: RuleSettings,
    base_s: int,
    segments: SegmentValues,
    term: Term,
    now: datetime,
) -> CheckResult:
    """What closed windows of the last hours say of metrics judged by their mean is told when this returns.

    `now` is the server's time.
    """
    reports: dict[ProblemKey, Detection | Clear] = {
        key: Clear(key, _KIND, now) for key in open_detections(database, _KIND) if key.aspect == "level"
    }
    until = int(now.timestamp())
    live = scored_windows(base_s, until - int(LOOKBACK.total_seconds()))
    read = 0
    for app in apps_in(database, live):
        watched = mean_rules(app, metrics, rules)
        own = rules.of(app)
        for one in load_series_failures(database, app, watched, live, base_s):
            read += sum(map(len, one.windows.values()))
            rule = watched[one.series.metric]
            key = ProblemKey(aspect="level", **one.series._asdict())
            found = k_of_m(windows_of_active_version(one.windows, own.min_sample), rule.failure_limit, own)
            if found.breach is not None:
                reports[key] = detection_of(database, one.series, rule, found.breach, metrics, segments, rules)
            elif found.state == "unclear":
                reports.pop(key, None)
    return CheckResult(read, report(database, list(reports.values()), rules, term, now))


def scored_windows(base_s: int, since: int, until: int | None = None) -> str:
    """Condition on live base windows with scores, uncut, that start since then and before `until`; seconds."""
    end = "" if until is None else f" AND start < toDateTime({until}, 'UTC')"
    return (
        f"run_id = 'live' AND size_s = {base_s} AND segment = '' AND scored > 0 "
        f"AND start >= toDateTime({since}, 'UTC'){end}"
    )


def apps_in(database: Database, live: str) -> list[str]:
    """Applications with such windows."""
    return [row["app"] for row in database.rows(f"SELECT DISTINCT app FROM windows WHERE {live} ORDER BY app")]


def mean_rules(app: str, metrics: Mapping[str, MetricRef], rules: RuleSettings) -> dict[str, Rule]:
    """By metric the rules whose failures are counted: others than the mean look at single records already."""
    found = {name: rule_of_app(app, metric, rules) for name, metric in metrics.items()}
    return {name: rule for name, rule in found.items() if rule is not None and rule.kind.is_average}


def load_series_failures(
    database: Database, app: str, watched: Mapping[str, Rule], live: str, base_s: int
) -> list[SeriesFailures]:
    """Of each metric and model the records of every window, and how many fail."""
    names = sql.array(map(sql.text, watched), "String")
    good = [bin_bounds(rule.metric_ref.scale, rule.min, rule.max) for rule in watched.values()]
    lowest, highest = ([str(one.min_bin) for one in good], [str(one.max_bin) for one in good])
    rows = database.rows(
        f"""
        WITH {names} AS names, {sql.array(lowest, "Int64")} AS lowest, {sql.array(highest, "Int64")} AS highest
        SELECT environment, metric, model, groupArray((fingerprint, windows)) AS fingerprints
        FROM (
            SELECT environment, metric, model, fingerprint, groupArray((at, n, wrong)) AS windows
            FROM (
                SELECT environment, metric, model, fingerprint, toUnixTimestamp(start) AS at, sum(scored) AS n,
                    sum({count_out_of_bounds("lowest[nth]", "highest[nth]")}) AS wrong
                FROM (
                    SELECT *, indexOf(names, metric) AS nth FROM windows FINAL
                    WHERE {live} AND app = {sql.text(app)} AND metric IN {sql.texts(watched)}
                )
                GROUP BY environment, metric, model, fingerprint, at
            ) GROUP BY environment, metric, model, fingerprint
        ) GROUP BY environment, metric, model ORDER BY environment, metric, model"""
    )
    return [
        SeriesFailures(
            Series(app, row["environment"], row["metric"], row["model"], "", ""),
            {
                name: sorted(WindowCount(at, at + base_s, n, wrong) for at, n, wrong in some)
                for name, some in row["fingerprints"]
            },
        )
        for row in rows
    ]


def windows_of_active_version(windows: Mapping[str, Sequence[WindowCount]], min_sample: int) -> tuple[WindowCount, ...]:
    """Those of the newest fingerprint that scores now, with enough records for one stretch."""
    spans: dict[VersionStart, list[Interval]] = {}
    for name, some in windows.items():
        judged = [Interval(one.start, one.end) for one in pool_backward(some, min_sample)]
        if judged:
            spans[VersionStart(min(one.start for one in some), name)] = judged[::-1]
    scoring = active_versions(spans)
    if not scoring:
        return ()
    newest = scoring[-1]
    return tuple(one for one in windows[newest.version.fingerprint] if one.start >= newest.since)


def detection_of(
    database: Database,
    series: Series,
    rule: Rule,
    breach: WindowCount,
    metrics: Mapping[str, MetricRef],
    segments: SegmentValues,
    rules: RuleSettings,
) -> Detection:
    """What is said of a series whose records fail too often."""
    key = ProblemKey(aspect="level", **series._asdict())
    since, until = (datetime.fromtimestamp(at, UTC) for at in (breach.start, breach.end))
    causes = _causes(database, series, rule, metrics, segments, breach)
    known = ", ".join(f"{cause} {count}" for cause, count in causes.items() if count)
    message = (
        f"{series.label}: {breach.bad} of {breach.records} traces ({percent(breach.share)}) fail "
        f"{series.metric}, above "
        f"the limit of {percent(rule.failure_limit)} (by cause: {known}); since {timestamp(since)}."
    )
    attributes = {
        **bad_share_attributes(breach.bad, breach.records, rule.failure_limit),
        "min": rule.min,
        "max": rule.max,
        "causes": causes,
    }
    details = build_details(
        _KIND,
        key,
        rule.metric_ref,
        message,
        attributes,
        rules,
        bad=breach.bad,
        traffic=evidence.traffic(database, series, since, until),
        severity=rule.severity,
        examples=evidence.examples(database, series, rule, segments, since, until),
    )
    return Detection(key, details, since, until)


def _causes(
    database: Database,
    series: Series,
    rule: Rule,
    metrics: Mapping[str, MetricRef],
    segments: SegmentValues,
    breach: WindowCount,
) -> dict[str, int]:
    """Traces by what they failed for; `unknown` where no retrieval metric looked at them, or it is not of answers."""
    records = record_query(series, segments, breach.start, breach.end)
    where = (
        "run_id = 'live' AND app = {app:String} AND environment = {environment:String} "
        f"AND time >= toDateTime({breach.start}, 'UTC') AND time < toDateTime({breach.end}, 'UTC')"
    )
    parameters = records.parameters | bound_parameters(rule)
    failed = database.rows(
        f"SELECT count() AS n FROM scores FINAL WHERE {where} AND evaluator = {{evaluator:String}} "
        "AND model = {model:String} AND status = 'failed'",
        parameters,
    )
    parse = {"parse": int(failed[0]["n"])}
    type_, judging = type_of(rule.metric_ref, _KIND), context_metrics(metrics)
    if type_ == "retrieval":
        return {"retrieval": breach.bad, "generation": 0, "unknown": 0, **parse}
    if type_ != "accuracy" or not judging:
        return {"retrieval": 0, "generation": 0, "unknown": breach.bad, **parse}
    failing = (
        f"SELECT trace_id FROM {records.rows} AND {out_of_bounds()} ORDER BY cityHash64(trace_id) LIMIT {_MAX_TRACES}"
    )
    rows = database.rows(
        f"""
        SELECT countIf(are_bad) AS retrieval, countIf(NOT are_bad) AS generation
        FROM (
            SELECT trace_id, {ARE_BAD} AS are_bad
            FROM ({select_context_results(judging, f"{where} AND trace_id IN ({failing})")}) GROUP BY trace_id
        )""",
        parameters,
    )
    found = {name: int(rows[0][name]) for name in ("retrieval", "generation")}
    return {**found, "unknown": max(breach.bad - sum(found.values()), 0), **parse}
