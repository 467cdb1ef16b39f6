"""Check latency, tokens and cost of a series that is too young for a baseline, against its own first windows.

A series is young for two days from its first record: then it has a baseline (`ragtide.drift.anomalies`). It is bad if
its 95th percentile is more than `rules.early_ratio` times both the one of its first ten minutes and the one of the hour
before: traffic that grows over a day raises nothing. The percentiles compared with are the upper ends of their 95 %
intervals. In records: more than 5 % of them exceed that level in k of the last m windows, and not by chance. It clears
near its first level only, since the hour before soon looks as bad.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.drift.anomalies import monitored_metrics
from ragtide.drift.checks.engine import Check, CheckContext, Observation
from ragtide.drift.checks.hysteresis import WindowCount, k_of_m
from ragtide.drift.problems import Detection, ProblemKey, bad_share_attributes, build_details, evidence
from ragtide.drift.rules import RULE_KINDS, Rule, Series
from ragtide.drift.settings import JobSettings, RuleSettings
from ragtide.drift.stats import CONFIDENCE, calendar
from ragtide.drift.text import number, percent, timestamp
from ragtide.drift.windows import MetricRef, quantile

_YOUNG_S = 2 * calendar.DAY_S  # a baseline needs a day, and is learned once a day
_FIRST_S = 600  # of a series, at least, make its first level
_FIRST_WITHIN_S = calendar.HOUR_S
_RECENT_S = 900  # that are judged
_BEFORE_S = calendar.HOUR_S  # until then
_MIN_RECORDS = 100
_QUANTILE = 0.95
_BAD_SHARE = 1 - _QUANTILE  # of records are above the level where the percentile is that level
_CLEAR_FRACTION = 0.75  # of the level: below it, it is over


class _Young(NamedTuple):
    """A series with the bins of its first and last windows by start, in order; seconds since 1970."""

    series: Series
    metric: MetricRef
    windows: Mapping[int, Mapping[int, int]]


class _Levels(NamedTuple):
    """A record above `bad` counts as bad, above `clear` as not clear; `usual` is the percentile of the first windows.

    The first windows end at `until`.
    """

    usual: float
    bad: float
    clear: float
    until: int


class EarlyChanges(Check):
    """The slowest or most expensive twentieth of a young series is far beyond its own first windows."""

    kind = "early_change"
    job = "early_changes"

    def interval_s(self, jobs: JobSettings) -> float:
        """Seconds between two runs."""
        return jobs.every_s

    def judged_until(self, ctx: CheckContext, key: ProblemKey, now: datetime) -> datetime | None:
        """The watermark of the metric's lane; now, where the evaluator is gone."""
        metric = ctx.metrics.get(key.metric)
        return now if metric is None else ctx.watermarks.get(metric.evaluator.lane)

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Every young series with first windows to compare with, by the watermark of its lane."""
        for lane, closed_until in sorted(ctx.watermarks.items()):
            until = int(min(now, closed_until).timestamp())
            for one in _load_young(ctx, lane, until):
                own = ctx.rules.of(one.series.app)
                levels = _levels(one, own, until)
                if levels is not None:
                    yield _observation(ctx, one, levels, own, until)


def _load_young(ctx: CheckContext, lane: str, until: int) -> Iterator[_Young]:
    """Load series of a lane, without segments, whose first record is less than two days old."""
    monitored = monitored_metrics(one for one in ctx.evaluators.values() if one.lane == lane).values()
    positive = {one.name: one.ref for one in monitored if one.kind == "positive" and one.ref is not None}
    metrics = {name: ref for name, ref in positive.items() if ref.metric.better == "lower"}
    if not metrics:
        return
    base_s, largest_s = ctx.windows.all_sizes_s[0], ctx.windows.all_sizes_s[-1]
    key, old = "app, environment, metric, model", f"toDateTime({until - _YOUNG_S}, 'UTC')"
    live = f"run_id = 'live' AND segment = '' AND scored > 0 AND metric IN {sql.texts(sorted(metrics))}"
    live_base = f"{live} AND size_s = {base_s} AND start >= {old} AND start < toDateTime({until}, 'UTC')"
    rows = ctx.database.rows(
        f"""
        WITH young AS (
            SELECT {key}, min(start) AS first FROM windows WHERE {live_base} AND ({key}) NOT IN (
                SELECT {key} FROM windows WHERE {live} AND size_s = {largest_s} AND start < {old}
            ) GROUP BY {key}
        )
        SELECT {key}, groupArray((at, counts)) AS found FROM (
            SELECT {key}, toUnixTimestamp(start) AS at, sumMap(windows.bins) AS counts
            FROM windows FINAL INNER JOIN young USING ({key})
            WHERE {live_base} AND (start < first + {_FIRST_WITHIN_S}
                OR start >= toDateTime({until - _RECENT_S - _BEFORE_S}, 'UTC'))
            GROUP BY {key}, at
        ) GROUP BY {key} ORDER BY {key}"""
    )
    for row in rows:
        series = Series(row["app"], row["environment"], row["metric"], row["model"], "", "")
        yield _Young(series, metrics[series.metric], dict(sorted(row["found"])))


def _levels(one: _Young, settings: RuleSettings, until: int) -> _Levels | None:
    """Compute the levels; None without a ratio, or where the first windows have too few records or are not over."""
    ratio = settings.early_ratio
    first = _first_windows(one.windows)
    recent_from = until - _RECENT_S
    if ratio is None or not first:
        return None
    usual = _upper_quantile([one.windows[at] for at in first])
    before = _upper_quantile([bins for at, bins in one.windows.items() if recent_from - _BEFORE_S <= at < recent_from])
    if usual is None:
        return None
    bad = ratio * max(usual, before or 0.0)
    clear = max(1.0, ratio * _CLEAR_FRACTION) * usual
    return _Levels(usual, bad, clear, first[-1])


def _first_windows(windows: Mapping[int, Mapping[int, int]]) -> list[int]:
    """Return the starts of windows that make the first level; empty where they have too few records."""
    found: list[int] = []
    records = 0
    begin = min(windows)
    for at, bins in windows.items():
        if at >= begin + _FIRST_WITHIN_S:
            break
        found.append(at)
        records += sum(bins.values())
        if at - begin >= _FIRST_S and records >= _MIN_RECORDS:
            return found
    return []


def _upper_quantile(some: Sequence[Mapping[int, int]]) -> float | None:
    """Return the upper end of the percentile's interval; None for too few records, or where it is 0."""
    merged: Counter[int] = Counter()
    for bins in some:
        merged.update(bins)
    if sum(merged.values()) < _MIN_RECORDS:
        return None
    found = quantile(merged, _QUANTILE, CONFIDENCE)
    return None if found is None else found[1].high or None


def _observation(ctx: CheckContext, one: _Young, levels: _Levels, settings: RuleSettings, until: int) -> Observation:
    bad, uncleared = (
        k_of_m(_counts(one, level, levels.until, until, ctx.windows.base_s), _BAD_SHARE, settings)
        for level in (levels.bad, levels.clear)
    )
    key = ProblemKey(aspect="level", **one.series._asdict())
    read = len(one.windows)
    if bad.breach is None:
        return Observation(key, "good" if uncleared.state == "good" else "unclear", read=read)
    return Observation(key, "bad", partial(_detection, ctx, one, levels, bad.breach), read)


def _counts(one: _Young, level: float, first_until: int, until: int, base_s: int) -> list[WindowCount]:
    """Count the records above a level in the recent windows, those of the first level left out."""
    scale = one.metric.scale
    return [
        WindowCount(at, at + base_s, sum(bins.values()), scale.above(bins, level))
        for at, bins in one.windows.items()
        if at >= until - _RECENT_S and at > first_until
    ]


def _detection(ctx: CheckContext, one: _Young, levels: _Levels, breach: WindowCount) -> Detection:
    series, unit = one.series, one.metric.metric.unit or ""
    since, until = calendar.utc(breach.start), calendar.utc(breach.end)
    records, bad = map(round, breach.counts)
    message = (
        f"{series.label}: {percent(breach.share)} of {records} traces have {series.metric} above "
        f"{number(levels.bad, unit)}. In the first {_FIRST_S // 60} minutes of this series "
        f"{percent(_BAD_SHARE)} were above {number(levels.usual, unit)}. Since {timestamp(since)}."
    )
    rule = Rule(RULE_KINDS["share"], one.metric, None, levels.bad)
    details = build_details(
        EarlyChanges.kind,
        ProblemKey(aspect="level", **series._asdict()),
        one.metric,
        message,
        {
            **bad_share_attributes(bad, records, _BAD_SHARE),
            "baseline": _BAD_SHARE,
            "max": levels.bad,
            "first_p95": levels.usual,
        },
        ctx.rules,
        bad=bad,
        traffic=evidence.traffic(ctx.database, series, since, until),
        examples=evidence.examples(ctx.database, series, rule, ctx.segments, since, until),
    )
    return Detection(ProblemKey(aspect="level", **series._asdict()), details, since, until)
