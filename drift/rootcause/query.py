"""Define a root-cause query: the series that shifted, when, what it is compared with, and its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from ragtide.drift import sql
from ragtide.drift.rootcause.slices import Flags
from ragtide.drift.rules.kinds import record_source
from ragtide.drift.rules.model import Rule, Series
from ragtide.drift.windows.metrics import MetricRef
from ragtide.drift.windows.scope import MINUTE
from ragtide.drift.windows.segments import SegmentValues
from ragtide.sinks.clickhouse.database import Database

_MAX_STEPS = 480
_LEAST_BEFORE = 240  # base windows
_MAX_AFTER_S = 86_400  # later windows say nothing new of an onset


@dataclass(frozen=True, slots=True)
class RcaQuery:
    """A metric of an environment moved at `since`, and that lasted until `until`.

    None is every app, or every model. `rule` says what counts where there is one: its lines, or that coverage is meant.
    `problem_id` seeds what is drawn.
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


def rca_query(series: Series, rule: Rule, since: datetime, until: datetime, problem_id: str) -> RcaQuery:
    """Of a series that a rule judges. What a window is made of is asked of the records behind it."""
    source = record_source(series, rule)
    return RcaQuery(
        *(series.environment, source.rule.metric_ref, since, until, series.app, series.model, source.series.segment),
        *(source.series.segment_value, source.rule, problem_id),
    )


@dataclass(frozen=True, slots=True)
class Timeline:
    """[start, end) in equal steps, seconds since 1970; step 0 begins at `since`, those before are negative."""

    since: int
    step_s: int
    before: int
    after: int
    end: int

    @property
    def start(self) -> int:
        """Where the stretch begins that the time since the onset is compared with."""
        return self.since - self.before * self.step_s

    @property
    def minutes(self) -> tuple[datetime, datetime]:
        """Widened to whole minutes, the grain of the sorting keys (see `Scope.minutes`)."""
        first, last = self.start // MINUTE * MINUTE, -(-self.end // MINUTE) * MINUTE
        return datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC)

    def step_of(self, seconds: str) -> str:
        """Expression: the step of a time that is an expression in seconds since 1970."""
        return f"toInt32(floor(({seconds} - {self.since}) / {self.step_s}))"

    def within(self, seconds: str) -> str:
        """Condition on such a time."""
        return f"{seconds} >= {self.start} AND {seconds} < {self.end}"

    def step_mask(self, excluded: Sequence[tuple[int, int]]) -> Flags:
        """Which steps, from the first, are to be compared: not those before the onset that stand in a bad stretch."""
        starts = self.start + np.arange(self.before + self.after) * self.step_s
        mask = np.ones(len(starts), dtype=bool)
        for first, last in excluded:
            mask &= (starts >= self.since) | (starts + self.step_s <= first) | (starts >= last)
        return mask


def timeline(query: RcaQuery, base_s: int) -> Timeline:
    """Before the onset at least 240 windows, and eight times as long as it has lasted, a day at most."""
    since = int(query.since.timestamp()) // base_s * base_s
    end = -(-int(query.until.timestamp()) // base_s) * base_s
    end = max(min(end, since + _MAX_AFTER_S), since + base_s)
    before_s = max(_LEAST_BEFORE * base_s, min(8 * (end - since), _MAX_AFTER_S))
    step_s = base_s * -(-(before_s + end - since) // (base_s * _MAX_STEPS))
    return Timeline(since, step_s, before_s // step_s, -(-(end - since) // step_s), end)


@dataclass(frozen=True, slots=True)
class RcaScope:
    """What all readings of one question share; `fingerprints` of each application, since others never mix."""

    query: RcaQuery
    timeline: Timeline
    step_mask: Flags
    fingerprints: Mapping[str, str]
    segments: SegmentValues
    base_s: int

    @property
    def after(self) -> Flags:
        """Which of the kept steps are since the onset."""
        return (np.arange(len(self.step_mask)) >= self.timeline.before)[self.step_mask]

    def step_condition(self, step: str) -> str:
        """Condition on an expression of a step: it is one of the kept ones."""
        steps = np.arange(-self.timeline.before, self.timeline.after)[self.step_mask]
        return f"{step} IN ({', '.join(map(str, steps))})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The dimensions that every row has and the question leaves open."""
        open_ = {"app": self.query.app is None, "model": self.query.model is None, "prompt_version": True}
        return tuple(name for name, is_open in open_.items() if is_open)

    @property
    def condition(self) -> str:
        """Condition on rows of `windows_condition` and `scores`: app, environment, model, fingerprint."""
        conditions = ["run_id = 'live'", f"environment = {sql.text(self.query.environment)}"]
        conditions += [f"app = {sql.text(self.query.app)}"] if self.query.app is not None else []
        conditions += [f"model = {sql.text(self.query.model)}"] if self.query.model is not None else []
        pairs = (f"({sql.text(app)}, {sql.text(found)})" for app, found in sorted(self.fingerprints.items()))
        return " AND ".join([*conditions, f"(app, fingerprint) IN ({', '.join(pairs)})"])

    def named_values(self, segment: str) -> tuple[str, ...]:
        """The values beside which `OTHER` stands for all else: of the question's own segment those at the onset."""
        if segment == self.query.segment:
            return tuple(self.segments.at(self.timeline.since, self.query.app or "").get(segment, ()))
        return self.stable_segments().get(segment, ())

    @property
    def segment_names(self) -> set[str]:
        """The segments that some of the applications has had series of since the onset."""
        return {name for app in self._apps for name in self.segments.at(self.timeline.since, app)}

    def stable_segments(self) -> dict[str, tuple[str, ...]]:
        """By segment the values that had series of their own all the time: others moved into or out of `OTHER`."""
        changes = (int(choice.holds_from.timestamp()) for choice in self.segments.choices)
        times = [self.timeline.start, *(at for at in changes if self.timeline.start < at < self.timeline.end)]
        held = [self.segments.at(at, app) for at in times for app in self._apps]
        names = set.intersection(*(set(one) for one in held))
        return {name: tuple(sorted(set.intersection(*(set(one[name]) for one in held)))) for name in sorted(names)}

    @property
    def _apps(self) -> tuple[str, ...]:
        """Those in question."""
        return (self.query.app,) if self.query.app is not None else tuple(self.fingerprints) or ("",)

    def windows_condition(self, metric: str) -> str:
        """Condition on base windows of a metric, cut and uncut, all the time; place and segment are not in it."""
        return (
            f"size_s = {self.base_s} AND metric = {sql.text(metric)} "
            f"AND start >= toDateTime({self.timeline.start}, 'UTC') AND start < toDateTime({self.timeline.end}, 'UTC')"
        )


def rca_scope(database: Database, query: RcaQuery, segments: SegmentValues, base_s: int) -> RcaScope:
    """Of each app the fingerprint that most records since the onset have; without what the rule found bad before."""
    time = timeline(query, base_s)
    scope = RcaScope(query, time, time.step_mask(_breached_intervals(database, query, time)), {}, segments, base_s)
    conditions = [f"environment = {sql.text(query.environment)}"]
    conditions += [f"app = {sql.text(query.app)}"] if query.app is not None else []
    rows = database.rows(
        f"""
        SELECT app, argMax(fingerprint, n) AS newest FROM (
            SELECT app, fingerprint, sum(applicable) AS n FROM windows FINAL
            WHERE run_id = 'live' AND {" AND ".join(conditions)} AND {scope.windows_condition(query.metric_ref.name)}
                AND segment = '' AND start >= toDateTime({time.since}, 'UTC')
            GROUP BY app, fingerprint HAVING n > 0
        ) GROUP BY app ORDER BY app"""
    )
    return replace(scope, fingerprints={row["app"]: row["newest"] for row in rows})


def _breached_intervals(database: Database, query: RcaQuery, time: Timeline) -> list[tuple[int, int]]:
    """Stretches before the onset that the question's rule found bad: what is compared with is what was good."""
    if query.rule is None or query.app is None or query.model is None:
        return []
    rows = database.rows(
        f"""
        SELECT toUnixTimestamp(start) AS first, toUnixTimestamp(end) AS last FROM verdicts FINAL
        WHERE run_id = 'live' AND rule_id = {{rule:String}} AND app = {{app:String}}
            AND environment = {{environment:String}} AND metric = {{metric:String}} AND model = {{model:String}}
            AND segment = {{segment:String}} AND segment_value = {{segment_value:String}} AND breached
            AND end > toDateTime({time.start}, 'UTC') AND start < toDateTime({time.since}, 'UTC')""",
        {
            "rule": query.rule.rule_id,
            "app": query.app,
            "environment": query.environment,
            "metric": query.metric_ref.name,
            "model": query.model,
            "segment": query.segment,
            "segment_value": query.segment_value,
        },
    )
    return [(row["first"], row["last"]) for row in rows]
