"""Define a root-cause query: the series that shifted, when, what it is compared with, and its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from ragtide.drift import sql
from ragtide.drift.rootcause.slices import Flags
from ragtide.drift.rules import Rule, Series, record_source
from ragtide.drift.stats import DAY_S
from ragtide.drift.windows import MINUTE_S, MetricRef, SegmentValues
from ragtide.sinks.clickhouse.database import Database

COLUMNS = ("app", "model", "prompt_version")  # dimensions that every row has
_MAX_STEPS = 480
_LEAST_BEFORE = 240  # base windows
_MAX_AFTER_S = DAY_S  # later windows say nothing new of an onset


@dataclass(frozen=True, slots=True)
class RcaQuery:
    """A metric of an environment shifted at `since`, and that lasted until `until`.

    None is every app, or every model. The bounds of `rule`, if there is one, decide what is bad. `problem_id` seeds
    permutations.
    """

    environment: str
    metric_ref: MetricRef
    since: datetime
    until: datetime
    app: str | None = None
    model: str | None = None
    segment: str = ""
    segment_value: str = ""
    rule: Rule | None = None
    problem_id: str = ""

    @property
    def seed(self) -> int:
        """The same for the same problem."""
        return int.from_bytes(self.problem_id.encode("utf-8", "replace")[:16], "big")

    @property
    def condition(self) -> str:
        """Condition on live rows of any table: environment and app."""
        app = "" if self.app is None else f" AND app = {sql.text(self.app)}"
        return f"run_id = 'live' AND environment = {sql.text(self.environment)}{app}"


def rca_query(
    series: Series, metric_ref: MetricRef, rule: Rule | None, since: datetime, until: datetime, problem_id: str
) -> RcaQuery:
    """Return the query of a series; if its rule judges a window metric, that of the records behind it."""
    if rule is not None:
        source = record_source(series, rule)
        series, rule, metric_ref = source.series, source.rule, source.rule.metric_ref
    app, environment, model = series.app, series.environment, series.model
    segment = (series.segment, series.segment_value)
    return RcaQuery(environment, metric_ref, since, until, app, model, *segment, rule, problem_id)


@dataclass(frozen=True, slots=True)
class Timeline:
    """[start, end) in equal steps, seconds since 1970; step 0 starts at `since`, those before it are negative."""

    since: int
    step_s: int
    before: int
    after: int
    end: int

    @property
    def start(self) -> int:
        """The start of the interval that the time since the onset is compared with."""
        return self.since - self.before * self.step_s

    @property
    def in_minutes(self) -> str:
        """Condition on `time`, widened to whole minutes, the grain of the sorting keys (see `Scope.minutes`)."""
        first, last = self.start // MINUTE_S * MINUTE_S, -(-self.end // MINUTE_S) * MINUTE_S
        return f"time >= toDateTime64({first}, 3, 'UTC') AND time < toDateTime64({last}, 3, 'UTC')"

    def step_of(self, seconds: str) -> str:
        """Expression: the step of a time, which is an expression in seconds since 1970."""
        return f"toInt32(floor(({seconds} - {self.since}) / {self.step_s}))"

    @property
    def step_of_window(self) -> str:
        """Expression: the step of a row of `windows`."""
        return self.step_of("toInt64(toUnixTimestamp(start))")

    def contains(self, seconds: str) -> str:
        """Condition on such a time."""
        return f"{seconds} >= {self.start} AND {seconds} < {self.end}"

    def step_mask(self, excluded: Sequence[tuple[int, int]]) -> Flags:
        """Which steps, from the first, are compared: not those before the onset in an excluded interval."""
        starts = self.start + np.arange(self.before + self.after) * self.step_s
        mask = np.ones(len(starts), dtype=bool)
        for first, last in excluded:
            mask &= (starts >= self.since) | (starts + self.step_s <= first) | (starts >= last)
        return mask


def timeline(query: RcaQuery, base_s: int) -> Timeline:
    """Return at least 240 windows before the onset, and eight times the length of the shift, a day at most."""
    since = int(query.since.timestamp()) // base_s * base_s
    end = -(-int(query.until.timestamp()) // base_s) * base_s
    end = max(min(end, since + _MAX_AFTER_S), since + base_s)
    before_s = max(_LEAST_BEFORE * base_s, min(8 * (end - since), _MAX_AFTER_S))
    step_s = base_s * -(-(before_s + end - since) // (base_s * _MAX_STEPS))
    return Timeline(since, step_s, before_s // step_s, -(-(end - since) // step_s), end)


@dataclass(frozen=True, slots=True)
class RcaScope:
    """What all reads of one query share; `fingerprints` are the evaluator version of each application."""

    query: RcaQuery
    timeline: Timeline
    step_mask: Flags
    fingerprints: Mapping[str, str]
    segments: SegmentValues
    base_s: int

    @property
    def after(self) -> Flags:
        """Which of the compared steps are since the onset."""
        return (np.arange(len(self.step_mask)) >= self.timeline.before)[self.step_mask]

    def step_condition(self, step: str) -> str:
        """Condition on an expression of a step: it is compared."""
        steps = np.arange(-self.timeline.before, self.timeline.after)[self.step_mask]
        return f"{step} IN ({', '.join(map(str, steps))})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the query leaves open."""
        fixed = {"app": self.query.app, "model": self.query.model}
        return tuple(name for name in COLUMNS if fixed.get(name) is None)

    @property
    def condition(self) -> str:
        """Condition on rows of `windows` and `scores`: app, environment, model, fingerprint."""
        model = "" if self.query.model is None else f" AND model = {sql.text(self.query.model)}"
        pairs = (f"({sql.text(app)}, {sql.text(found)})" for app, found in sorted(self.fingerprints.items()))
        return f"{self.query.condition}{model} AND (app, fingerprint) IN ({', '.join(pairs)})"

    @property
    def segment_condition(self) -> str:
        """Condition on windows: those of the query's segment, or unsegmented."""
        return f"segment = {sql.text(self.query.segment)} AND segment_value = {sql.text(self.query.segment_value)}"

    @property
    def windows_condition(self) -> str:
        """Condition on base windows of the metric in the timeline, whatever their segment."""
        return f"{self.condition} AND {_windows_condition(self.query, self.timeline, self.base_s)}"

    @property
    def series_condition(self) -> str:
        """Condition on the base windows of the query's series in the timeline."""
        return f"{self.windows_condition} AND {self.segment_condition}"

    def named_values(self, segment: str) -> tuple[str, ...]:
        """Return the values beside `OTHER_VALUES`; of the query's own segment those at the onset."""
        if segment == self.query.segment:
            return tuple(self.segments.at(self.timeline.since, self.query.app or "").get(segment, ()))
        return self.stable_segments().get(segment, ())

    @property
    def segment_names(self) -> set[str]:
        """The segments that some of the applications has had series of since the onset."""
        return {name for app in self._apps for name in self.segments.at(self.timeline.since, app)}

    def stable_segments(self) -> dict[str, tuple[str, ...]]:
        """By segment the values that had series of their own all the time: others joined or left the rest."""
        changes = (int(choice.holds_from.timestamp()) for choice in self.segments.choices)
        times = [self.timeline.start, *(at for at in changes if self.timeline.start < at < self.timeline.end)]
        held = [self.segments.at(at, app) for at in times for app in self._apps]
        names = set.intersection(*(set(one) for one in held))
        return {name: tuple(sorted(set.intersection(*(set(one[name]) for one in held)))) for name in sorted(names)}

    @property
    def _apps(self) -> tuple[str, ...]:
        return (self.query.app,) if self.query.app is not None else tuple(self.fingerprints) or ("",)


def rca_scope(database: Database, query: RcaQuery, segments: SegmentValues, base_s: int) -> RcaScope:
    """Return the scope of a query, with the evaluator version of each app that most records since the onset have.

    Steps before the onset in which the query's rule was breached are not compared.
    """
    time = timeline(query, base_s)
    rows = database.rows(
        f"""
        SELECT app, argMax(fingerprint, n) AS newest FROM (
            SELECT app, fingerprint, sum(applicable) AS n FROM windows FINAL
            WHERE {query.condition} AND {_windows_condition(query, time, base_s)}
                AND segment = '' AND start >= toDateTime({time.since}, 'UTC')
            GROUP BY app, fingerprint HAVING n > 0
        ) GROUP BY app ORDER BY app"""
    )
    compared = time.step_mask(_breached_intervals(database, query, time))
    return RcaScope(query, time, compared, {row["app"]: row["newest"] for row in rows}, segments, base_s)


def _windows_condition(query: RcaQuery, time: Timeline, base_s: int) -> str:
    return (
        f"size_s = {base_s} AND metric = {sql.text(query.metric_ref.name)} "
        f"AND start >= toDateTime({time.start}, 'UTC') AND start < toDateTime({time.end}, 'UTC')"
    )


def _breached_intervals(database: Database, query: RcaQuery, time: Timeline) -> list[tuple[int, int]]:
    """Intervals before the onset in which the query's rule was breached: good ones are what is compared with."""
    if query.rule is None or query.app is None or query.model is None:
        return []
    rows = database.rows(
        f"""
        SELECT toUnixTimestamp(start) AS first, toUnixTimestamp(end) AS last FROM verdicts FINAL
        WHERE {query.condition} AND model = {sql.text(query.model)} AND metric = {sql.text(query.metric_ref.name)}
            AND segment = {sql.text(query.segment)} AND segment_value = {sql.text(query.segment_value)}
            AND rule_id = {sql.text(query.rule.rule_id)} AND breached
            AND end > toDateTime({time.start}, 'UTC') AND start < toDateTime({time.since}, 'UTC')"""
    )
    return [(row["first"], row["last"]) for row in rows]
