"""Query the evidence of rule problems: totals, the baseline, the app's traffic, examples and failure reasons."""

import math
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from ragtide.drift.rules import (
    Rule,
    Series,
    Statistics,
    Verdict,
    bound_parameters,
    has_class,
    out_of_bounds,
    record_query,
    record_source,
)
from ragtide.drift.stats import Interval
from ragtide.drift.windows import SegmentValues
from ragtide.sinks.clickhouse.database import Database

_EXAMPLES = 10
BASELINE_INTERVALS = 50  # good intervals in the mean that is the baseline
_VERDICTS = """
    FROM verdicts FINAL
    WHERE run_id = 'live' AND rule_id = {rule:String} AND app = {app:String} AND environment = {environment:String}
        AND metric = {metric:String} AND model = {model:String} AND segment = {segment:String}
        AND segment_value = {segment_value:String} AND fingerprint = {fingerprint:String}"""
_WINDOWS = """
    FROM windows FINAL
    WHERE run_id = 'live' AND app = {app:String} AND environment = {environment:String} AND metric = {metric:String}
        AND model = {model:String} AND segment = '' AND start >= {since:DateTime64(3, 'UTC')}
        AND start < {until:DateTime64(3, 'UTC')}"""


class VerdictTotals(NamedTuple):
    """The records of all verdicts since the onset, and the mean over the good intervals before.

    `missing` of the bad records are in windows that are not closed.
    """

    samples: int
    bad: int
    missing: int
    baseline: float | None


def verdict_totals(
    database: Database, series: Series, rule: Rule, breaching: Sequence[Verdict], since: datetime, until: datetime
) -> VerdictTotals:
    """Add up the stored verdicts in [since, until); `breaching` are the bad ones among them, at least one."""
    totals = database.rows(
        f"SELECT sum(samples) AS n, sum(wrong) AS n_wrong, sumIf(wrong, revision = 0) AS n_missing {_VERDICTS} "
        "AND start >= {since:DateTime64(3, 'UTC')} AND end <= {until:DateTime64(3, 'UTC')}",
        {**_verdict_parameters(series, rule, breaching, since), "until": until},
    )[0]
    baseline = _baseline(database, series, rule, breaching, since)
    return VerdictTotals(totals["n"], totals["n_wrong"], totals["n_missing"], baseline)


def statistics(
    database: Database, series: Series, rule: Rule, breaching: Sequence[Verdict], since: datetime, totals: VerdictTotals
) -> Statistics:
    """Compute the numbers of a problem; `breaching` are the bad verdicts since then, at least one."""
    weight = sum(v.samples for v in breaching)
    value = sum(v.value * v.samples for v in breaching) / weight
    until = max(v.end for v in breaching)
    reasons: tuple[str, ...] = ()
    if rule.kind.counts_unscored:
        reasons = _reasons(database, series, since, until)
        # In windows that are not closed, these traces have no row at all, neither scored nor failed.
        reasons += (f"missing {totals.missing}",) if totals.missing else ()
    return Statistics(
        value=float(totals.bad) if rule.kind.value_type == "count" else value,
        threshold=breaching[-1].threshold,
        baseline=totals.baseline,
        effect_size=_effect_size(rule, value, totals.baseline),
        samples=totals.samples,
        bad=totals.bad,
        traffic=traffic(database, series, since, until),
        reasons=reasons,
        interval=_interval(rule, breaching, value),
        bad_traces=estimate_bad_traces(
            database, series, rule, totals.bad / totals.samples if totals.samples else 0.0, since, until
        ),
    )


def estimate_bad_traces(
    database: Database, series: Series, rule: Rule, bad_share: float, since: datetime, until: datetime
) -> int | None:
    """Estimate how many traces of the series a judge would call bad; `bad_share` of those that it applies to are.

    None if it judged all traces. Counted are windows of the smallest size.
    """
    if rule.metric_ref.evaluator.judge is None or rule.kind.counts_unscored:
        return None
    rows = database.rows(
        "SELECT sum(seen) AS traces, sum(sampled) AS in_sample, sum(applicable) AS applies FROM windows FINAL "
        "WHERE run_id = 'live' AND app = {app:String} AND environment = {environment:String} "
        "AND metric = {metric:String} AND model = {model:String} AND segment = {segment:String} "
        "AND segment_value = {segment_value:String} AND start >= {since:DateTime64(3, 'UTC')} "
        "AND start < {until:DateTime64(3, 'UTC')} GROUP BY size_s ORDER BY size_s LIMIT 1",
        {**series._asdict(), "since": since, "until": until},
    )
    if not rows or rows[0]["in_sample"] >= rows[0]["traces"]:
        return None
    applies: float = rows[0]["traces"] * rows[0]["applies"] / max(rows[0]["in_sample"], 1)
    return round(applies * bad_share)


def _interval(rule: Rule, verdicts: Sequence[Verdict], value: float) -> Interval | None:
    """Return the interval of the mean of estimates; None if they are none. Windows are independent."""
    ends = [(one.samples, one.low, one.high) for one in verdicts if one.low is not None and one.high is not None]
    if not ends:
        return None
    records = sum(one.samples for one in verdicts)
    reach = math.sqrt(sum((n * (high - low) / 2) ** 2 for n, low, high in ends)) / records
    metric = rule.metric_ref.metric
    least, greatest = (0.0, 1.0) if rule.kind.value_type == "share" else (metric.low, metric.high)
    return Interval(max(value - reach, least), min(value + reach, greatest))


def traffic(database: Database, series: Series, since: datetime, until: datetime) -> int:
    """Count traces of the app, of all models."""
    rows = database.rows(
        "SELECT count() AS n FROM traces FINAL WHERE run_id = 'live' AND app = {app:String} "
        "AND environment = {environment:String} AND time >= {since:DateTime64(3, 'UTC')} "
        "AND time < {until:DateTime64(3, 'UTC')}",
        {"app": series.app, "environment": series.environment, "since": since, "until": until},
    )
    return int(rows[0]["n"])


def examples(
    database: Database,
    series: Series,
    rule: Rule,
    segments: SegmentValues,
    since: datetime,
    until: datetime,
) -> tuple[str, ...]:
    """Find ids of bad traces, the worst first; for coverage, of traces without a score, the latest first."""
    if rule.kind.counts_unscored:
        return _examples_without_score(database, series, rule, since, until)
    series, rule, class_ = record_source(series, rule)
    records = record_query(series, segments, int(since.timestamp()), math.ceil(until.timestamp()))
    worst_first = "metrics[{key:String}]" if rule.max is None else "-metrics[{key:String}]"
    if rule.min is not None and rule.max is not None:  # the further beyond its bound the worse
        worst_first = "-greatest({least:Float64} - metrics[{key:String}], metrics[{key:String}] - {greatest:Float64})"
    rows = database.rows(
        f"SELECT trace_id FROM {records.rows} AND {out_of_bounds()} AND {has_class()} "
        f"ORDER BY {worst_first}, time DESC, trace_id LIMIT {_EXAMPLES}",
        records.parameters | bound_parameters(rule) | {"class": class_},
    )
    return tuple(row["trace_id"] for row in rows)


def _examples_without_score(
    database: Database, series: Series, rule: Rule, since: datetime, until: datetime
) -> tuple[str, ...]:
    """Find traces that failed or, if there are none, traces without a row."""
    parameters = {
        "app": series.app,
        "environment": series.environment,
        "evaluator": rule.metric_ref.evaluator.id,
        "model": series.model,
        "since": since,
        "until": until,
    }
    scope = (
        "run_id = 'live' AND app = {app:String} AND environment = {environment:String} "
        "AND time >= {since:DateTime64(3, 'UTC')} AND time < {until:DateTime64(3, 'UTC')} AND model = {model:String}"
    )
    rows_of = f"scores FINAL WHERE {scope} AND evaluator = {{evaluator:String}}"
    latest = f"ORDER BY time DESC, trace_id LIMIT {_EXAMPLES}"
    rows = database.rows(f"SELECT trace_id FROM {rows_of} AND status = 'failed' {latest}", parameters)
    unknown = f"trace_id NOT IN (SELECT trace_id FROM {rows_of})"
    rows = rows or database.rows(f"SELECT trace_id FROM traces FINAL WHERE {scope} AND {unknown} {latest}", parameters)
    return tuple(row["trace_id"] for row in rows)


def prompt_versions(database: Database, series: Series, since: datetime, until: datetime) -> tuple[str, ...]:
    """List the prompt versions of the series' windows."""
    rows = database.rows(
        f"SELECT DISTINCT prompt_version {_WINDOWS} AND scored > 0 ORDER BY prompt_version",
        _window_parameters(series, since, until),
    )
    return tuple(row["prompt_version"] for row in rows)


def _baseline(
    database: Database, series: Series, rule: Rule, breaching: Sequence[Verdict], since: datetime
) -> float | None:
    """Compute the mean over the good intervals before."""
    rows = database.rows(
        "SELECT sum(value * samples) / sum(samples) AS level, sum(samples) AS n FROM ("
        f"SELECT value, samples {_VERDICTS} AND NOT breached AND samples > 0 "
        f"AND end <= {{since:DateTime64(3, 'UTC')}} ORDER BY end DESC LIMIT {BASELINE_INTERVALS})",
        _verdict_parameters(series, rule, breaching, since),
    )
    return float(rows[0]["level"]) if rows[0]["n"] else None


def _effect_size(rule: Rule, value: float, baseline: float | None) -> float | None:
    """Compute Cohen's h of two shares; of other numbers the relative change."""
    if baseline is None or rule.kind.value_type == "count":
        return None
    if rule.kind.value_type == "share":
        return 2 * math.asin(math.sqrt(value)) - 2 * math.asin(math.sqrt(baseline))
    return (value - baseline) / abs(baseline) if baseline else None


def _reasons(database: Database, series: Series, since: datetime, until: datetime) -> tuple[str, ...]:
    """List why records were not scored, the most frequent reason first, with counts."""
    rows = database.rows(
        f"SELECT kind, sum(n) AS total FROM (SELECT failures {_WINDOWS} "
        "AND size_s = (SELECT min(size_s) FROM windows WHERE run_id = 'live' AND metric = {metric:String})) "
        "ARRAY JOIN mapKeys(failures) AS kind, mapValues(failures) AS n "
        "GROUP BY kind ORDER BY total DESC, kind LIMIT 5",
        _window_parameters(series, since, until),
    )
    return tuple(f"{row['kind']} {row['total']}" for row in rows)


def _verdict_parameters(series: Series, rule: Rule, breaching: Sequence[Verdict], since: datetime) -> dict[str, object]:
    """Return the parameters of `_VERDICTS`, and `since`."""
    return {**series._asdict(), "rule": rule.rule_id, "fingerprint": breaching[-1].fingerprint, "since": since}


def _window_parameters(series: Series, since: datetime, until: datetime) -> dict[str, object]:
    """Return the parameters of `_WINDOWS`."""
    return {**series._asdict(), "since": since, "until": until}
