"""Check whether judges score canaries, traces that never change, as they did at first.

A shift there is the judge's own, not the application's. A version of a judge is compared with its own first runs; a new
model, prompt or parameter is another version. An accepted shift starts a new reference.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from ragtide.drift.canaries import (
    REFERENCE_RUNS,
    JudgeRuns,
    JudgeShift,
    judge_shift,
    load_judge_runs,
    load_scored,
    values_of,
)
from ragtide.drift.checks.engine import Check, CheckContext, Observation
from ragtide.drift.problems import Detection, ProblemKey, acceptances, build_details
from ragtide.drift.settings import JobSettings
from ragtide.drift.text import number, timestamp
from ragtide.drift.windows import MetricRef

_MOST_LATER_RUNS = 30
_STALE = timedelta(days=21)  # three runs at the longest interval


class JudgedMetric(NamedTuple):
    """A metric with the runs of its judge: those of the reference, and the newest ones after it."""

    metric: MetricRef
    judge: JudgeRuns
    reference: tuple[datetime, ...]
    later: tuple[datetime, ...]

    @property
    def key(self) -> ProblemKey:
        """A judge is no part of an application."""
        return key_of(self.metric.name)

    @property
    def range(self) -> float:
        """The range of its values."""
        return self.metric.metric.high - self.metric.metric.low


def key_of(metric: str) -> ProblemKey:
    """Return the key of a judge's metric."""
    return ProblemKey("", "", "", "judge", metric)


class JudgeShifts(Check):
    """A judge scores the same canaries higher or lower than in its first runs."""

    kind = "judge_shift"
    job = "judges"
    has_history = False

    def interval_s(self, jobs: JobSettings) -> float:
        """Canaries are scored rarely."""
        return jobs.repeats_every_s

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Observe each bounded primary metric of each judge; unclear if too few canaries have scores."""
        for one, found in judge_shifts(ctx, now):
            if found is None:
                if len(one.reference) == REFERENCE_RUNS:
                    yield Observation(one.key, "unclear")
                continue
            limit = ctx.rules.judge_shift * one.range
            yield Observation.of(
                one.key,
                bad=found.is_significant(ctx.rules.chance) and abs(found.shift) >= limit,
                cleared=abs(found.recent) < limit / 2,
                detection=partial(_detection, ctx, one, found),
                read=len(one.reference) + len(one.later),
            )


def judge_shifts(ctx: CheckContext, now: datetime) -> list[tuple[JudgedMetric, JudgeShift | None]]:
    """Compare the newest runs of each judge with its reference; None: too few runs, or canaries with a score."""
    judged = list(_judged_metrics(ctx, now))
    runs = {at for one in judged for at in (*one.reference, *one.later)}
    rows = load_scored(ctx.database, [one.judge for one in judged], runs)
    return [
        (one, judge_shift(values_of(rows, one.metric.evaluator.id, one.metric.metric.key), one.reference, one.later))
        for one in judged
    ]


def _judged_metrics(ctx: CheckContext, now: datetime) -> Iterator[JudgedMetric]:
    accepted = _accepted(ctx)
    for judge in load_judge_runs(ctx.database, now).values():
        evaluator = ctx.evaluators.get(judge.evaluator)
        if evaluator is None or judge.runs[-1] < now - _STALE:
            continue
        for metric in (MetricRef(evaluator, one) for one in evaluator.metrics if one.primary and one.bounded):
            since = accepted.get(metric.name)
            runs = [at for at in judge.runs if since is None or at >= since]
            later = tuple(runs[REFERENCE_RUNS:][-_MOST_LATER_RUNS:])
            yield JudgedMetric(metric, judge, tuple(runs[:REFERENCE_RUNS]), later)


def _accepted(ctx: CheckContext) -> Mapping[str, datetime]:
    """Return from when on the reference of a metric begins because an operator accepted a shift."""
    return {
        one.key.metric: one.since
        for one in acceptances(ctx.database)
        if one.key == key_of(one.key.metric) and JudgeShifts.kind in one.kinds
    }


def _detection(ctx: CheckContext, one: JudgedMetric, found: JudgeShift) -> Detection:
    direction = "higher" if found.shift > 0 else "lower"
    message = (
        f"Judge {one.judge.evaluator} (endpoint {one.judge.endpoint}) scores the same traces "
        f"{number(abs(found.shift))} {direction} ({number(found.baseline)} → {number(found.value)}) since "
        f"{timestamp(found.since)}, on {found.canaries} canaries in {found.runs} run{'s' if found.runs > 1 else ''}. "
        f"Changes of {one.metric.name} since {timestamp(found.before)} may be the judge's, not the application's."
    )
    attributes = {
        "value": found.value,
        "baseline": found.baseline,
        "limit": ctx.rules.judge_shift * one.range,
        "sample_size": found.canaries,
        "runs": found.runs,
        "p": found.p,
        "endpoint": one.judge.endpoint,
        "fingerprint": one.judge.fingerprint,
        "reference": [at.isoformat() for at in one.reference],
        # The judge changed between two runs: so exactly is the onset known.
        "window": {"start": found.before.isoformat(), "end": found.since.isoformat()},
    }
    details = build_details(JudgeShifts.kind, one.key, one.metric, message, attributes, ctx.rules, severity="warning")
    return Detection(one.key, details, found.since, found.until)
