"""A scheduled job that keeps failing, or falls behind its interval, is a problem of no application.

Falling behind is judged over an hour, or ten intervals where those are longer: what is slow once a day, as learning
baselines is, delays no more than some of its runs. A leader that has not led for so long says nothing of it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from drift.job_runs import JobRun, runs
from drift.leadership import Term
from drift.phrases import moment, number
from drift.problems.accounts import account_of
from drift.problems.events import Place, place_of_none
from drift.problems.problem import Kind
from drift.problems.troubles import Over, Trouble, Watched, standing, tell
from drift.settings import JobSettings, RuleSettings
from sinks.clickhouse.database import Database

_FAILS: Kind = "failure_rate"
_BEHIND: Kind = "threshold"
_JUDGED = timedelta(hours=1)
_INTERVALS = 10
_RELIEF = 1.5  # times the share that is behind: from there on it keeps up again
_ALL = 100_000  # more runs than there are in the time looked at


def watch_jobs(
    database: Database,
    every_s: Mapping[str, float],
    settings: JobSettings,
    rules: RuleSettings,
    term: Term,
    now: datetime,
) -> Watched:
    """Problems of the jobs that this leader runs, by name with their intervals, are told when this returns.

    Those of jobs that are scheduled no more are over. `now` is the server's time.
    """
    spans = {job: max(_JUDGED, timedelta(seconds=_INTERVALS * interval)) for job, interval in every_s.items()}
    since = now - max(spans.values(), default=_JUDGED)
    known: dict[str, list[JobRun]] = {job: [] for job in every_s}
    for run in runs(database, since, most=_ALL):
        known.setdefault(run.job, []).append(run)
    told: list[Trouble | Over] = []
    for job, interval in every_s.items():
        told += _failing(job, known[job][: settings.failing_runs], settings, rules)
        if term.elected_at <= now - spans[job]:
            told += _behind(job, known[job], interval, now - spans[job], settings, rules, now)
    gone = [
        Over(place, kind, now)
        for kind in (_FAILS, _BEHIND)
        for place in standing(database, kind)
        if place.aspect == "jobs" and place.segment_value not in every_s
    ]
    return Watched(sum(map(len, known.values())), tell(database, [*told, *gone], rules, term, now))


def _failing(
    job: str, newest: Sequence[JobRun], settings: JobSettings, rules: RuleSettings
) -> Iterator[Trouble | Over]:
    """Nothing where some of the newest runs failed and some did not, or where there are too few of them."""
    if len(newest) < settings.failing_runs:
        return
    until, since = newest[0].finished_at, newest[-1].started_at
    if not any(run.failed for run in newest):
        yield Over(_place(job), _FAILS, until)
    elif all(run.failed for run in newest):
        said = (
            f"Job {job} of `ragwatch jobs` fails: its last {len(newest)} runs did, since {moment(since)}; "
            f"the newest of: {newest[0].failed.rstrip('.')}."
        )
        reasons = Counter(run.failed for run in newest)
        told = {
            "value": 1.0,
            "sample_size": len(newest),
            "wrong": len(newest),
            "reasons": [f"{why} ({count} of them)" for why, count in reasons.most_common()],
        }
        account = account_of(_FAILS, _place(job), None, said, told, rules, severity="high")
        yield Trouble(_place(job), account, since, until)


def _behind(
    job: str,
    known: Sequence[JobRun],
    interval_s: float,
    since: datetime,
    settings: JobSettings,
    rules: RuleSettings,
    now: datetime,
) -> Iterator[Trouble | Over]:
    """Runs that ended, failed or not, against those that its interval asks for; one that hangs never ends."""
    ended = [run for run in known if since < run.finished_at <= now]
    asked = (now - since).total_seconds() / interval_s
    share = len(ended) / asked
    if share >= min(settings.behind_share * _RELIEF, 1 - 1 / asked):
        yield Over(_place(job), _BEHIND, now)
    elif share < settings.behind_share:
        took_s = max((run.took_s for run in ended), default=None)
        longest = "" if took_s is None else f"; the longest took {number(took_s, 's')}"
        said = (
            f"Job {job} of `ragwatch jobs` falls behind: only {len(ended)} of {asked:.0f} runs have ended since "
            f"{moment(since)}, where one is due every {number(interval_s, 's')}{longest}."
        )
        told = {
            "value": share,
            "limit": settings.behind_share,
            "sample_size": round(asked),
            "wrong": max(round(asked) - len(ended), 0),
            "longest_s": took_s,
        }
        account = account_of(_BEHIND, _place(job), None, said, told, rules, severity="medium")
        yield Trouble(_place(job), account, since, now)


def _place(job: str) -> Place:
    return place_of_none("jobs", "job", job)
