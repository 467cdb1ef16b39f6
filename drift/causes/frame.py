"""Which rows a question is about: their place, their time, and what of it is compared."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from drift.causes.question import Question, Timeline, timeline
from drift.causes.splits import Marks
from drift.windows import sql
from drift.windows.segments import SegmentValues
from sinks.clickhouse.database import Database


@dataclass(frozen=True, slots=True)
class Frame:
    """What all readings of one question share; `fingerprints` of each application, since others never mix."""

    question: Question
    time: Timeline
    kept: Marks
    fingerprints: Mapping[str, str]
    segments: SegmentValues
    base_s: int

    @property
    def after(self) -> Marks:
        """Which of the kept steps are since the onset."""
        return (np.arange(len(self.kept)) >= self.time.before)[self.kept]

    def kept_steps(self, step: str) -> str:
        """Condition on an expression of a step: it is one of the kept ones."""
        steps = np.arange(-self.time.before, self.time.after)[self.kept]
        return f"{step} IN ({', '.join(map(str, steps))})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The dimensions that every row has and the question leaves open."""
        open_ = {"app": self.question.app is None, "model": self.question.model is None, "prompt_version": True}
        return tuple(name for name, is_open in open_.items() if is_open)

    @property
    def place(self) -> str:
        """Condition on rows of `windows` and `scores`: app, environment, model, fingerprint."""
        conditions = ["run_id = 'live'", f"environment = {sql.text(self.question.environment)}"]
        conditions += [f"app = {sql.text(self.question.app)}"] if self.question.app is not None else []
        conditions += [f"model = {sql.text(self.question.model)}"] if self.question.model is not None else []
        pairs = (f"({sql.text(app)}, {sql.text(found)})" for app, found in sorted(self.fingerprints.items()))
        return " AND ".join([*conditions, f"(app, fingerprint) IN ({', '.join(pairs)})"])

    def named(self, segment: str) -> tuple[str, ...]:
        """The values beside which `OTHER` stands for all else: of the question's own segment those at the onset."""
        if segment == self.question.segment:
            return tuple(self.segments.at(self.time.since, self.question.app or "").get(segment, ()))
        return self.steady().get(segment, ())

    @property
    def cut_by(self) -> set[str]:
        """The segments that some of the applications has had series of since the onset."""
        return {name for app in self._apps for name in self.segments.at(self.time.since, app)}

    def steady(self) -> dict[str, tuple[str, ...]]:
        """By segment the values that had series of their own all the time: others moved into or out of `OTHER`."""
        changes = (int(choice.holds_from.timestamp()) for choice in self.segments.choices)
        times = [self.time.start, *(at for at in changes if self.time.start < at < self.time.end)]
        held = [self.segments.at(at, app) for at in times for app in self._apps]
        names = set.intersection(*(set(one) for one in held))
        return {name: tuple(sorted(set.intersection(*(set(one[name]) for one in held)))) for name in sorted(names)}

    @property
    def _apps(self) -> tuple[str, ...]:
        """Those in question."""
        return (self.question.app,) if self.question.app is not None else tuple(self.fingerprints) or ("",)

    def windows(self, metric: str) -> str:
        """Condition on base windows of a metric, cut and uncut, all the time; place and segment are not in it."""
        return (
            f"size_s = {self.base_s} AND metric = {sql.text(metric)} "
            f"AND start >= toDateTime({self.time.start}, 'UTC') AND start < toDateTime({self.time.end}, 'UTC')"
        )


def frame_of(database: Database, question: Question, segments: SegmentValues, base_s: int) -> Frame:
    """Of each app the fingerprint that most records since the onset have; without what the rule found bad before."""
    time = timeline(question, base_s)
    frame = Frame(question, time, time.kept(_bad(database, question, time)), {}, segments, base_s)
    place = [f"environment = {sql.text(question.environment)}"]
    place += [f"app = {sql.text(question.app)}"] if question.app is not None else []
    rows = database.rows(
        f"""
        SELECT app, argMax(fingerprint, n) AS newest FROM (
            SELECT app, fingerprint, sum(applicable) AS n FROM windows FINAL
            WHERE run_id = 'live' AND {" AND ".join(place)} AND {frame.windows(question.watched.name)}
                AND segment = '' AND start >= toDateTime({time.since}, 'UTC')
            GROUP BY app, fingerprint HAVING n > 0
        ) GROUP BY app ORDER BY app"""
    )
    return replace(frame, fingerprints={row["app"]: row["newest"] for row in rows})


def _bad(database: Database, question: Question, time: Timeline) -> list[tuple[int, int]]:
    """Stretches before the onset that the question's rule found bad: what is compared with is what was good."""
    if question.rule is None or question.app is None or question.model is None:
        return []
    rows = database.rows(
        f"""
        SELECT toUnixTimestamp(start) AS first, toUnixTimestamp(end) AS last FROM verdicts FINAL
        WHERE run_id = 'live' AND rule_id = {{rule:String}} AND app = {{app:String}}
            AND environment = {{environment:String}} AND metric = {{metric:String}} AND model = {{model:String}}
            AND segment = {{segment:String}} AND segment_value = {{segment_value:String}} AND breached
            AND end > toDateTime({time.start}, 'UTC') AND start < toDateTime({time.since}, 'UTC')""",
        {
            "rule": question.rule.rule_id,
            "app": question.app,
            "environment": question.environment,
            "metric": question.watched.name,
            "model": question.model,
            "segment": question.segment,
            "segment_value": question.segment_value,
        },
    )
    return [(row["first"], row["last"]) for row in rows]
