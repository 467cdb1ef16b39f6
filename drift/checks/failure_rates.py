"""Check metrics with a good mean that too great a share of the traces fails. Shares the problem of the mean.

The share beyond the threshold comes from the windows' bins; of a sampled judge it is weighted. The detection counts
failing traces by cause: bad contexts (retrieval, see `ragtide.drift.rootcause.retrieval_or_generation`), good ones
(generation), unknown, and traces that the evaluator could not read (parse).
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.drift.checks.engine import Check, CheckContext, Observation
from ragtide.drift.checks.hysteresis import (
    HysteresisState,
    WindowCount,
    k_of_m,
    k_of_m_history,
    windows_of_active_version,
)
from ragtide.drift.problems import Detection, ProblemKey, bad_share_attributes, build_details, evidence, type_of
from ragtide.drift.rootcause import CONTEXTS_ARE_BAD, context_metrics, select_context_results
from ragtide.drift.rules import Rule, Series, bound_parameters, out_of_bounds, record_query, rule_of_app
from ragtide.drift.settings import JobSettings
from ragtide.drift.stats import calendar
from ragtide.drift.text import percent, timestamp
from ragtide.drift.windows import bin_bounds, count_out_of_bounds, sum_weights
from ragtide.sinks.clickhouse.database import Database

_LOOKBACK = timedelta(hours=6)
_MAX_TRACES = 5_000  # failing traces whose contexts are read


class FailureRates(Check):
    """Too great a share of the traces fails a metric that is judged by its mean, in k of m intervals."""

    kind = "failure_rate"
    job = "failure_rates"
    history_lookback_s = int(_LOOKBACK.total_seconds())

    def interval_s(self, jobs: JobSettings) -> float:
        """Return the seconds between two runs."""
        return jobs.rates_every_s

    @classmethod
    def owns(cls, key: ProblemKey) -> bool:
        """Exclude jobs that fail, which have the same kind."""
        return key.aspect == "level"

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Observe every series with scores in windows of the last hours."""
        live = _scored_windows(ctx.windows.base_s, int((now - _LOOKBACK).timestamp()))
        for one, rule in _load_series(ctx, live):
            own = ctx.rules.of(one.series.app)
            found = k_of_m(windows_of_active_version(one.windows, own.min_sample), rule.failure_limit, own)
            yield _observation(ctx, one, rule, found)

    def history(self, ctx: CheckContext, first: int, until: int) -> Iterator[tuple[int, Observation]]:
        """Observe at each end of a base window; windows before `first` are not known."""
        instants = range(first + ctx.windows.base_s, until + 1, ctx.windows.base_s)
        for one, rule in _load_series(ctx, _scored_windows(ctx.windows.base_s, first, until)):
            own = ctx.rules.of(one.series.app)
            for at, found in k_of_m_history(one.windows, rule.failure_limit, own, instants, _LOOKBACK):
                yield at, _observation(ctx, one, rule, found)


class _SeriesFailures(NamedTuple):
    """The windows of one series by evaluator version, each in order of time."""

    series: Series
    windows: Mapping[str, Sequence[WindowCount]]


def _observation(ctx: CheckContext, one: _SeriesFailures, rule: Rule, found: HysteresisState) -> Observation:
    key = ProblemKey(aspect="level", **one.series._asdict())
    detection = None if found.breach is None else partial(_detection, ctx, one.series, rule, found.breach)
    return Observation(key, found.state, detection, sum(map(len, one.windows.values())))


def _load_series(ctx: CheckContext, live: str) -> Iterator[tuple[_SeriesFailures, Rule]]:
    for row in ctx.database.rows(f"SELECT DISTINCT app FROM windows WHERE {live} ORDER BY app"):
        rules = _mean_rules(ctx, row["app"])
        for one in _load_series_of_app(ctx.database, row["app"], rules, live, ctx.windows.base_s):
            yield one, rules[one.series.metric]


def _scored_windows(base_s: int, since: int, until: int | None = None) -> str:
    """Return the condition on live base windows with scores, without segments, that start in [since, until)."""
    end = "" if until is None else f" AND start < toDateTime({until}, 'UTC')"
    return (
        f"run_id = 'live' AND size_s = {base_s} AND segment = '' AND scored > 0 "
        f"AND start >= toDateTime({since}, 'UTC'){end}"
    )


def _mean_rules(ctx: CheckContext, app: str) -> dict[str, Rule]:
    """Return the rules of means, by metric; other rules check single records already."""
    found = {name: rule_of_app(app, metric, ctx.rules) for name, metric in ctx.metrics.items()}
    return {name: rule for name, rule in found.items() if rule is not None and rule.kind.is_average}


def _load_series_of_app(
    database: Database, app: str, rules: Mapping[str, Rule], live: str, base_s: int
) -> list[_SeriesFailures]:
    """Load records and failures of every window, by metric and model.

    Those of a sampled judge are sums of weights.
    """
    names = sql.array(map(sql.text, rules), "String")
    good = [bin_bounds(rule.metric_ref.scale, rule.min, rule.max) for rule in rules.values()]
    lowest, highest = ([str(one.min_bin) for one in good], [str(one.max_bin) for one in good])
    rows = database.rows(
        f"""
        WITH {names} AS names, {sql.array(lowest, "Int64")} AS lowest, {sql.array(highest, "Int64")} AS highest
        SELECT environment, metric, model, groupArray((fingerprint, windows)) AS fingerprints
        FROM (
            SELECT environment, metric, model, fingerprint, groupArray((at, n, bad, squares)) AS windows
            FROM (
                SELECT environment, metric, model, fingerprint, toUnixTimestamp(start) AS at, sum(scored) AS records,
                    sum({count_out_of_bounds("lowest[nth]", "highest[nth]")}) AS counted,
                    sum({sum_weights("key", "lowest[nth]", "highest[nth]")}) AS weighed,
                    sum({sum_weights("key")}) AS all_weights, sum({sum_weights("key", squared=True)}) AS squares,
                    if(squares > 0, all_weights, toFloat64(records)) AS n,
                    if(squares > 0, weighed, toFloat64(counted)) AS bad
                FROM (
                    SELECT *, indexOf(names, metric) AS nth, splitByChar('.', metric)[-1] AS key FROM windows FINAL
                    WHERE {live} AND app = {sql.text(app)} AND metric IN {sql.texts(rules)}
                )
                GROUP BY environment, metric, model, fingerprint, at
            ) GROUP BY environment, metric, model, fingerprint
        ) GROUP BY environment, metric, model ORDER BY environment, metric, model"""
    )
    return [
        _SeriesFailures(
            Series(app, row["environment"], row["metric"], row["model"], "", ""),
            {
                name: sorted(WindowCount(at, at + base_s, *sums) for at, *sums in some)
                for name, some in row["fingerprints"]
            },
        )
        for row in rows
    ]


def _detection(ctx: CheckContext, series: Series, rule: Rule, breach: WindowCount) -> Detection:
    key = ProblemKey(aspect="level", **series._asdict())
    since, until = calendar.utc(breach.start), calendar.utc(breach.end)
    causes = _causes(ctx, series, rule, breach)
    known = ", ".join(f"{cause} {count}" for cause, count in causes.items() if count)
    records, bad = map(round, breach.counts)
    failed = f"{bad} of {records} traces ({percent(breach.share)})"
    if rule.metric_ref.evaluator.judge is not None:
        failed = f"an estimated {percent(breach.share)} of traces"
    message = (
        f"{series.label}: {failed} failed {series.metric}, above the limit of {percent(rule.failure_limit)}, "
        f"since {timestamp(since)}. By cause: {known}."
    )
    estimated = evidence.estimate_bad_traces(ctx.database, series, rule, breach.share, since, until)
    attributes = {
        **bad_share_attributes(bad, records, rule.failure_limit),
        "value": breach.share,
        "min": rule.min,
        "max": rule.max,
        "causes": causes,
    }
    details = build_details(
        FailureRates.kind,
        key,
        rule.metric_ref,
        message,
        attributes,
        ctx.rules,
        bad=bad if estimated is None else estimated,
        traffic=evidence.traffic(ctx.database, series, since, until),
        severity=rule.severity,
        examples=evidence.examples(ctx.database, series, rule, ctx.segments, since, until),
    )
    return Detection(key, details, since, until)


def _causes(ctx: CheckContext, series: Series, rule: Rule, breach: WindowCount) -> dict[str, int]:
    """Count failing traces by cause; `unknown` if no retrieval metric scored them, or the metric is not of answers."""
    records = record_query(series, ctx.segments, breach.start, breach.end)
    where = (
        "run_id = 'live' AND app = {app:String} AND environment = {environment:String} "
        f"AND time >= toDateTime({breach.start}, 'UTC') AND time < toDateTime({breach.end}, 'UTC')"
    )
    parameters = records.parameters | bound_parameters(rule)
    failed = ctx.database.rows(
        f"SELECT count() AS n FROM scores FINAL WHERE {where} AND evaluator = {{evaluator:String}} "
        "AND model = {model:String} AND status = 'failed'",
        parameters,
    )
    parse = {"parse": int(failed[0]["n"])}
    bad = round(breach.counts.bad)
    type_, judging = type_of(rule.metric_ref, FailureRates.kind), context_metrics(ctx.metrics)
    if type_ == "retrieval":
        return {"retrieval": bad, "generation": 0, "unknown": 0, **parse}
    if type_ != "accuracy" or not judging:
        return {"retrieval": 0, "generation": 0, "unknown": bad, **parse}
    failing = (
        f"SELECT trace_id FROM {records.rows} AND {out_of_bounds()} ORDER BY cityHash64(trace_id) LIMIT {_MAX_TRACES}"
    )
    rows = ctx.database.rows(
        f"""
        SELECT countIf(are_bad) AS retrieval, countIf(NOT are_bad) AS generation
        FROM (
            SELECT trace_id, {CONTEXTS_ARE_BAD} AS are_bad
            FROM ({select_context_results(judging, f"{where} AND trace_id IN ({failing})")}) GROUP BY trace_id
        )""",
        parameters,
    )
    found = {name: int(rows[0][name]) for name in ("retrieval", "generation")}
    return {**found, "unknown": max(bad - sum(found.values()), 0), **parse}
