"""Check the scheduled jobs: one that keeps failing, or is behind its interval, is a problem of no application.

Windows that the roll-up cannot store are a problem of their application; the roll-up continues with the others.

Being behind is judged over an hour, or ten intervals if those are longer: a job that is slow once a day, as learning
baselines is, delays only some of its runs. A leader judges it once it has led for that long.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from ragtide.drift import sql
from ragtide.drift.checks.engine import Check, CheckContext, Observation
from ragtide.drift.job_history import JobRun, load_runs
from ragtide.drift.problems import Detection, ProblemKey, build_details
from ragtide.drift.settings import RuleSettings
from ragtide.drift.text import number, scope_label, timestamp
from ragtide.drift.windows import Application, FailureState, RollupBackoff

_LOOKBACK = timedelta(hours=1)
_INTERVALS = 10
_CLEAR_FACTOR = 1.5  # times the share at which a job is behind
_ROLLUP_JOB = "watch"  # the job that stores windows
_ATTEMPTS = 2  # one failure may be chance
_LONGEST_NAME = 128  # characters of an application's name in its problem
_MAX_RUNS = 100_000  # more than any lookback has


@dataclass(frozen=True, slots=True)
class JobFailures(Check):
    """The last `jobs.failing_runs` runs of a job all failed; the problem clears once as many succeeded.

    `every_s`: the intervals of the jobs that this leader runs, by name; problems of other jobs clear.
    """

    every_s: Mapping[str, float] = field(default_factory=dict)

    kind = "failure_rate"
    has_history = False

    @classmethod
    def owns(cls, key: ProblemKey) -> bool:
        """Exclude metrics of applications, which have the same kind."""
        return key.is_of_system("jobs", "job")

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Observe every job; unclear if some of the newest runs failed and some succeeded, or if there are too few."""
        for job, runs in _load_runs(ctx, self.every_s, now).items():
            newest = runs[: ctx.jobs.failing_runs]
            failed = sum(bool(run.failed) for run in newest)
            yield Observation.of(
                _job_key(job),
                bad=failed == ctx.jobs.failing_runs,
                cleared=not failed and len(newest) == ctx.jobs.failing_runs,
                detection=partial(_failures, job, newest, ctx.rules),
                read=len(runs),
            )


@dataclass(frozen=True, slots=True)
class JobsBehind(Check):
    """Fewer runs of a job ended than its interval asks for; `every_s` as in `JobFailures`."""

    every_s: Mapping[str, float] = field(default_factory=dict)

    kind = "threshold"
    has_history = False

    @classmethod
    def owns(cls, key: ProblemKey) -> bool:
        """Exclude rules, which have the same kind."""
        return key.is_of_system("jobs", "job")

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Observe every job; unclear if this leader has not led for the whole lookback."""
        assert ctx.term is not None
        for job, runs in _load_runs(ctx, self.every_s, now).items():
            since = now - _lookback(self.every_s[job])
            ended = [run for run in runs if since < run.finished_at <= now]  # failed or not; one that hangs never ends
            expected = (now - since).total_seconds() / self.every_s[job]
            share, limit = len(ended) / expected, ctx.jobs.behind_share
            if ctx.term.elected_at > since:
                yield Observation(_job_key(job), "unclear")
                continue
            yield Observation.of(
                _job_key(job),
                bad=share < limit,
                cleared=share >= min(limit * _CLEAR_FACTOR, 1 - 1 / expected),
                detection=partial(_behind, job, ended, self.every_s[job], since, ctx, now),
            )


@dataclass(frozen=True, slots=True)
class RollupFailures(Check):
    """Windows of an application cannot be stored; the problem clears once none of them waits."""

    backoff: RollupBackoff = field(default_factory=RollupBackoff)

    kind = "failure_rate"
    has_history = False

    @classmethod
    def owns(cls, key: ProblemKey) -> bool:
        """Exclude jobs and metrics, which have the same kind."""
        return key.aspect == "jobs" and bool(key.app)

    def judged_until(self, ctx: CheckContext, key: ProblemKey, now: datetime) -> datetime | None:
        """Return now, for applications whose windows this leader stored."""
        return now if key in map(_application_key, self.backoff.succeeded.copy()) else None

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Observe every application with windows that failed."""
        for application, failing in self.backoff.failing().items():
            key, bad = _application_key(application), failing.attempts >= _ATTEMPTS
            yield Observation.of(
                key, bad=bad, cleared=False, detection=partial(_failing_windows, key, failing, ctx.rules, now)
            )


def _lookback(interval_s: float) -> timedelta:
    return max(_LOOKBACK, timedelta(seconds=_INTERVALS * interval_s))


def _load_runs(ctx: CheckContext, every_s: Mapping[str, float], now: datetime) -> dict[str, list[JobRun]]:
    """Load runs by job, the newest first."""
    since = now - max(map(_lookback, every_s.values()), default=_LOOKBACK)
    found: dict[str, list[JobRun]] = {job: [] for job in every_s}
    for run in load_runs(ctx.database, since, most=_MAX_RUNS):
        if run.job in found:
            found[run.job].append(run)
    return found


def _failures(job: str, newest: Sequence[JobRun], rules: RuleSettings) -> Detection:
    key, until, since = _job_key(job), newest[0].finished_at, newest[-1].started_at
    message = (
        f"Job {job} failed its last {len(newest)} runs (since {timestamp(since)}). "
        f"Latest error: {newest[0].failed.rstrip('.')}."
    )
    reasons = Counter(run.failed for run in newest)
    attributes = {
        "value": 1.0,
        "sample_size": len(newest),
        "wrong": len(newest),
        "reasons": [f"{why} (runs: {count})" for why, count in reasons.most_common()],
    }
    details = build_details(JobFailures.kind, key, None, message, attributes, rules, severity="critical")
    return Detection(key, details, since, until)


def _behind(
    job: str, ended: Sequence[JobRun], interval_s: float, since: datetime, ctx: CheckContext, now: datetime
) -> Detection:
    key, expected = _job_key(job), (now - since).total_seconds() / interval_s
    took_s = max((run.took_s for run in ended), default=None)
    longest = "" if took_s is None else f" The longest took {number(took_s, 's')}."
    message = (
        f"Job {job} is behind its interval of {number(interval_s, 's')}: {len(ended)} of {expected:.0f} runs ended "
        f"since {timestamp(since)}.{longest}"
    )
    attributes = {
        "value": len(ended) / expected,
        "limit": ctx.jobs.behind_share,
        "sample_size": round(expected),
        "wrong": max(round(expected) - len(ended), 0),
        "longest_s": took_s,
    }
    details = build_details(JobsBehind.kind, key, None, message, attributes, ctx.rules, severity="warning")
    return Detection(key, details, since, now)


def _failing_windows(key: ProblemKey, failing: FailureState, rules: RuleSettings, now: datetime) -> Detection:
    message = (
        f"Job {_ROLLUP_JOB} failed {failing.attempts} times to store a window of "
        f"{scope_label(key.app, key.environment)} (since {timestamp(failing.since)}). It retries. "
        f"Latest error: {failing.reason.rstrip('.')}."
    )
    attributes = {
        "value": 1.0,
        "sample_size": failing.attempts,
        "wrong": failing.attempts,
        "reasons": [failing.reason],
    }
    details = build_details(RollupFailures.kind, key, None, message, attributes, rules, severity="critical")
    return Detection(key, details, failing.since, now)


def _job_key(job: str) -> ProblemKey:
    return ProblemKey.of_system("jobs", "job", job)


def _application_key(application: Application) -> ProblemKey:
    app, environment = map(_short, application)
    return ProblemKey(app, environment, model="", aspect="jobs", metric="", segment="job", segment_value=_ROLLUP_JOB)


def _short(name: str) -> str:
    """Return the name, or its beginning and a digest if it is too long."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}~{sql.digest(name)[:8]}"
