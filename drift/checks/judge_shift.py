"""Check whether judges score canaries, traces that never change, as they did at first.

A shift there is the judge's own, not the application's. A version of a judge is compared with its own first runs that
scored at least half of today's canaries. A new model, prompt or parameter is another version. An accepted shift, or
other canaries, start a new reference.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from ragtide.drift.canaries import (
    REFERENCE_RUNS,
    STALE,
    CanaryScoreRow,
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

_FIRST_LATER_RUNS = 30  # that are loaded; more if a shift has lasted for longer


class JudgedMetric(NamedTuple):
    """A metric with the runs of its judge: those of the reference, and all after it."""

    metric: MetricRef
    judge: JudgeRuns
    reference: tuple[datetime, ...]
    later: tuple[datetime, ...]

    @property
    def key(self) -> ProblemKey:
        """A judge is no part of an application."""
        return key_of(self.metric.name)

    def limit(self, ctx: CheckContext) -> float:
        """Return the smallest shift that opens a problem."""
        return ctx.rules.judge_shift * (self.metric.metric.high - self.metric.metric.low)


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
            limit = one.limit(ctx)
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
    runs = {at for one in judged for at in (*one.reference, *one.later[-_FIRST_LATER_RUNS:])}
    rows = load_scored(ctx.database, [one.judge for one in judged], runs)
    return [(one, _since_onset(ctx, one, _compare(one, rows, one.later[-_FIRST_LATER_RUNS:]))) for one in judged]


def _compare(one: JudgedMetric, rows: Sequence[CanaryScoreRow], later: Sequence[datetime]) -> JudgeShift | None:
    return judge_shift(values_of(rows, one.judge, one.metric.metric.key), one.reference, later)


def _since_onset(ctx: CheckContext, one: JudgedMetric, found: JudgeShift | None) -> JudgeShift | None:
    """Load more runs until those before the shift are among them; of a shift that is no problem they do not matter."""
    loaded, limit = _FIRST_LATER_RUNS, one.limit(ctx) / 2
    while (
        found is not None
        and max(abs(found.shift), abs(found.recent)) >= limit
        and loaded < len(one.later)
        and found.before in (None, one.later[-loaded])
    ):
        loaded *= 4
        later = one.later[-loaded:]
        found = _compare(one, load_scored(ctx.database, [one.judge], {*one.reference, *later}), later)
    return found


def _judged_metrics(ctx: CheckContext, now: datetime) -> Iterator[JudgedMetric]:
    accepted = _accepted(ctx)
    for judge in load_judge_runs(ctx.database, now).values():
        evaluator = ctx.evaluators.get(judge.evaluator)
        if evaluator is None or judge.runs[-1] < now - STALE:
            continue
        for metric in (MetricRef(evaluator, one) for one in evaluator.metrics if one.primary and one.bounded):
            since = accepted.get(metric.name)
            reference = tuple(at for at in judge.scored_runs if since is None or at >= since)[:REFERENCE_RUNS]
            later = tuple(at for at in judge.runs if reference and at > reference[-1])
            yield JudgedMetric(metric, judge, reference, later)


def _accepted(ctx: CheckContext) -> Mapping[str, datetime]:
    """Return from when on the reference of a metric begins because an operator accepted a shift."""
    return {
        one.key.metric: one.since
        for one in acceptances(ctx.database)
        if one.key == key_of(one.key.metric) and JudgeShifts.kind in one.kinds
    }


def _detection(ctx: CheckContext, one: JudgedMetric, found: JudgeShift) -> Detection:
    before = found.before or one.reference[-1]
    direction = "higher" if found.shift > 0 else "lower"
    message = (
        f"Judge {one.judge.evaluator} (endpoint {one.judge.endpoint}) scores the same traces "
        f"{number(abs(found.shift))} {direction} ({number(found.baseline)} → {number(found.value)}) since "
        f"{timestamp(found.since)}, on {found.canaries} canaries in {found.runs} run{'s' if found.runs > 1 else ''}. "
        f"Changes of {one.metric.name} since {timestamp(before)} may be the judge's, not the application's."
    )
    attributes = {
        "value": found.value,
        "baseline": found.baseline,
        "limit": one.limit(ctx),
        "sample_size": found.canaries,
        "runs": found.runs,
        "p": found.p,
        "endpoint": one.judge.endpoint,
        "fingerprint": one.judge.fingerprint,
        "reference": [at.isoformat() for at in one.reference],
        # The judge changed between two runs: so exactly is the onset known.
        "window": {"start": before.isoformat(), "end": found.since.isoformat()},
    }
    details = build_details(JudgeShifts.kind, one.key, one.metric, message, attributes, ctx.rules, severity="warning")
    return Detection(one.key, details, found.since, found.until)
