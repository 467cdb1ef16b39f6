"""A scheduled job that keeps failing, or falls behind its interval, is a problem of no application.

Windows that the roll-up cannot store are a problem of their application: the job goes on with all others.

Falling behind is judged over an hour, or ten intervals where those are longer: what is slow once a day, as learning
baselines is, delays no more than some of its runs. A leader that has not led for so long says nothing of it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from ragtide.drift import sql
from ragtide.drift.job_history import JobRun, load_runs
from ragtide.drift.leadership import Term
from ragtide.drift.problems.model import Kind
from ragtide.drift.problems.report import (
    CheckResult,
    Clear,
    Detection,
    ProblemKey,
    build_details,
    key_of_system,
    open_detections,
    report,
)
from ragtide.drift.settings import JobSettings, RuleSettings
from ragtide.drift.text import number, scope_label, timestamp
from ragtide.drift.windows.backoff import Application, RollupBackoff
from ragtide.sinks.clickhouse.database import Database

_FAILS: Kind = "failure_rate"
_BEHIND: Kind = "threshold"
_LOOKBACK = timedelta(hours=1)
_INTERVALS = 10
_CLEAR_FACTOR = 1.5  # times the share that is behind: from there on it keeps up again
_ROLLUP_JOB = "watch"  # the job that stores windows
_ATTEMPTS = 2  # the first failure may be a busy moment of the server's
_LONGEST_NAME = 128  # characters of an application's name in its problem
_MAX_RUNS = 100_000  # more runs than there are in the time looked at


def check_jobs(
    database: Database,
    every_s: Mapping[str, float],
    settings: JobSettings,
    rules: RuleSettings,
    term: Term,
    now: datetime,
    pace: RollupBackoff | None = None,
) -> CheckResult:
    """Problems of the jobs that this leader runs, by name with their intervals, are told when this returns.

    Those of jobs that are scheduled no more are over. `now` is the server's time, `pace` the roll-up's.
    """
    lookbacks = {job: max(_LOOKBACK, timedelta(seconds=_INTERVALS * interval)) for job, interval in every_s.items()}
    since = now - max(lookbacks.values(), default=_LOOKBACK)
    known: dict[str, list[JobRun]] = {job: [] for job in every_s}
    for run in load_runs(database, since, most=_MAX_RUNS):
        known.setdefault(run.job, []).append(run)
    told: list[Detection | Clear] = []
    for job, interval in every_s.items():
        told += _failing(job, known[job][: settings.failing_runs], settings, rules)
        if term.elected_at <= now - lookbacks[job]:
            told += _behind(job, known[job], interval, now - lookbacks[job], settings, rules, now)
    open_keys = [
        (key, kind) for kind in (_FAILS, _BEHIND) for key in open_detections(database, kind) if key.aspect == "jobs"
    ]
    told += [Clear(key, kind, now) for key, kind in open_keys if not key.app and key.segment_value not in every_s]
    if pace is not None:
        told += _applications(pace, [key for key, _ in open_keys if key.app], rules, now)
    return CheckResult(sum(map(len, known.values())), report(database, told, rules, term, now))


def _applications(
    pace: RollupBackoff, open_keys: Sequence[ProblemKey], rules: RuleSettings, now: datetime
) -> Iterator[Detection | Clear]:
    """Trouble of applications whose windows failed more than once, until none of them waits any more."""
    failing = {_application_key(application): one for application, one in pace.failing().items()}
    worked = {_application_key(application) for application in pace.succeeded.copy()}
    for key, one in failing.items():
        if one.attempts >= _ATTEMPTS:
            message = (
                f"Job {_ROLLUP_JOB} failed {one.attempts} times since {timestamp(one.since)} to store a window of "
                f"{scope_label(key.app, key.environment)}, and retries. Latest error: {one.reason.rstrip('.')}."
            )
            told = {"value": 1.0, "sample_size": one.attempts, "wrong": one.attempts, "reasons": [one.reason]}
            details = build_details(_FAILS, key, None, message, told, rules, severity="critical")
            yield Detection(key, details, one.since, now)
    yield from (Clear(key, _FAILS, now) for key in open_keys if key in worked and key not in failing)


def _failing(
    job: str, newest: Sequence[JobRun], settings: JobSettings, rules: RuleSettings
) -> Iterator[Detection | Clear]:
    """Nothing where some of the newest runs failed and some did not, or where there are too few of them."""
    if len(newest) < settings.failing_runs:
        return
    until, since = newest[0].finished_at, newest[-1].started_at
    if not any(run.failed for run in newest):
        yield Clear(_job_key(job), _FAILS, until)
    elif all(run.failed for run in newest):
        message = (
            f"Job {job} of `ragtide jobs` fails: its last {len(newest)} runs did, since {timestamp(since)}; "
            f"the newest of: {newest[0].failed.rstrip('.')}."
        )
        reasons = Counter(run.failed for run in newest)
        told = {
            "value": 1.0,
            "sample_size": len(newest),
            "wrong": len(newest),
            "reasons": [f"{why} ({count} of them)" for why, count in reasons.most_common()],
        }
        details = build_details(_FAILS, _job_key(job), None, message, told, rules, severity="critical")
        yield Detection(_job_key(job), details, since, until)


def _behind(
    job: str,
    known: Sequence[JobRun],
    interval_s: float,
    since: datetime,
    settings: JobSettings,
    rules: RuleSettings,
    now: datetime,
) -> Iterator[Detection | Clear]:
    """Runs that ended, failed or not, against those that its interval asks for; one that hangs never ends."""
    ended = [run for run in known if since < run.finished_at <= now]
    expected = (now - since).total_seconds() / interval_s
    share = len(ended) / expected
    if share >= min(settings.behind_share * _CLEAR_FACTOR, 1 - 1 / expected):
        yield Clear(_job_key(job), _BEHIND, now)
    elif share < settings.behind_share:
        took_s = max((run.took_s for run in ended), default=None)
        longest = "" if took_s is None else f"; the longest took {number(took_s, 's')}"
        message = (
            f"Job {job} of `ragtide jobs` falls behind: only {len(ended)} of {expected:.0f} runs have ended since "
            f"{timestamp(since)}, where one is due every {number(interval_s, 's')}{longest}."
        )
        told = {
            "value": share,
            "limit": settings.behind_share,
            "sample_size": round(expected),
            "wrong": max(round(expected) - len(ended), 0),
            "longest_s": took_s,
        }
        details = build_details(_BEHIND, _job_key(job), None, message, told, rules, severity="warning")
        yield Detection(_job_key(job), details, since, now)


def _job_key(job: str) -> ProblemKey:
    return key_of_system("jobs", "job", job)


def _application_key(application: Application) -> ProblemKey:
    app, environment = map(_short, application)
    return ProblemKey(app, environment, model="", aspect="jobs", metric="", segment="job", segment_value=_ROLLUP_JOB)


def _short(name: str) -> str:
    """The name, or its beginning with a digest that tells it from every other."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}~{sql.digest(name)[:8]}"
