"""Schedule of the jobs: name, interval and work of each, by the settings."""

import asyncio
import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from importlib import metadata

from ragtide.drift.checks import Check, ConsumerLag, JobFailures, JobsBehind, RollupFailures
from ragtide.drift.export import EventSender, Measured, ScoreExport
from ragtide.drift.job_history import RunResult
from ragtide.drift.jobs import JobContext, every_check
from ragtide.drift.leadership import is_newest
from ragtide.drift.notify import Backlog, DeliveryJob, Holding, Target
from ragtide.drift.rootcause_job import RootCauseJob
from ragtide.drift.topics import fit_topics, fitted_at, missing_package
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.kafka.lag_age import group_lags
from ragtide.stream.labels.job import LabelJob
from ragtide.stream.labels.sending import send
from ragtide.stream.notification_targets import alert_context, notification_targets
from ragtide.stream.score_targets import score_targets
from ragtide.stream.settings.loader import Settings
from ragtide.stream.stage_letters import store_stage_letters
from ragtide.stream.telemetry.registry import Telemetry
from ragtide.stream.worker.backoff import delays

log = logging.getLogger(__name__)

Job = Callable[[JobContext, datetime], RunResult]

_DUE_CHECK_S = 60.0  # how often a new leader may find that something slow is due
_CANARY_RUN_S = 300.0  # between two runs of its job, each of which scores for some minutes
_LONGEST_PAUSE_S = 300.0  # between two looks whether a target is back
_LONGEST_ALERT_PAUSE_S = 30.0  # the same of an Alertmanager: who is paged waits for it


def job_schedule(
    settings: Settings, database: Database, telemetry: Telemetry, stopped: Callable[[], bool]
) -> list[tuple[str, float, Job]]:
    """Name, interval and work of each job. Jobs that may take minutes stop early once `stopped`."""
    jobs: list[tuple[str, float, Job]] = [
        ("watch", settings.jobs.every_s, cycle_job(telemetry)),
        ("insights", min(settings.jobs.insights_every_s, _DUE_CHECK_S), _run_insights),
        ("explain", settings.jobs.explain_every_s, _root_cause_job(telemetry)),
        *_check_jobs(settings),
        ("retention", settings.jobs.checks_every_s, _consumer_lag_job(settings)),
        ("stage_letters", settings.jobs.checks_every_s, _stage_letters_job(settings, database)),
    ]
    if settings.topics.enabled and settings.privacy.stores_embeddings and not _topics_unavailable():
        jobs.append(("topics", min(settings.topics.every_s, _DUE_CHECK_S), topic_job(settings, database, telemetry)))
    if settings.drift.monitors_any_app:
        jobs.append(("drift", settings.drift.every_s, _anomaly_job(stopped)))
    if settings.drift.monitors_any_app and settings.privacy.stores_embeddings:
        jobs.append(
            ("questions", settings.drift.questions_every_s, partial(JobContext.check_input_drift, stopped=stopped))
        )
    if settings.evaluators.judge.canaries.enabled:
        every_s = min(settings.evaluators.judge.canaries.every_s, _CANARY_RUN_S)
        jobs.append(("canaries", every_s, _canary_job(settings, database, telemetry, stopped)))
    if settings.kafka.labels_topic:
        jobs.append(("labels", settings.jobs.every_s, _label_job(settings, database, telemetry)))
    for name, target in notification_targets(settings).items():
        jobs.append((name, settings.jobs.every_s, _delivery_job(target, settings, database, telemetry)))
    for name, sender in score_targets(settings).items():
        jobs.append((name, settings.jobs.every_s, _export_job(sender, settings, database, telemetry, stopped)))
    if settings.alertmanager.urls:
        jobs.append(("alerts", settings.alertmanager.every_s, _alert_job(settings, database, telemetry)))
    jobs.append(("jobs", settings.jobs.checks_every_s, _job_health_job({name: every_s for name, every_s, _ in jobs})))
    return jobs


def _check_jobs(settings: Settings) -> Iterator[tuple[str, float, Job]]:
    """Checks that name the same job run in it one after the other."""
    by_job: dict[str, list[Check]] = {}
    for check in every_check():
        if check.job:
            by_job.setdefault(check.job, []).append(check())
    for name, checks in by_job.items():
        yield name, min(one.interval_s(settings.jobs) for one in checks), partial(_run_checks, checks)


def _run_checks(checks: Sequence[Check], jobs: JobContext, now: datetime) -> RunResult:
    return jobs.run_checks(checks, now)


def _job_health_job(every_s: Mapping[str, float]) -> Job:
    """It does not check itself: while it hangs it could not."""

    def job(jobs: JobContext, now: datetime) -> RunResult:
        return jobs.run_checks([JobFailures(every_s), JobsBehind(every_s), RollupFailures(jobs.pace)], now)

    return job


def _root_cause_job(telemetry: Telemetry) -> Job:
    explaining = RootCauseJob()

    def job(jobs: JobContext, now: datetime) -> RunResult:
        found = explaining.run(jobs, now)
        telemetry.explanations.labels("explained").inc(found.explained)
        telemetry.explanations.labels("failed").inc(found.failed)
        return RunResult(read=found.explained + found.failed, raised=found.explained)

    return job


def _consumer_lag_job(settings: Settings) -> Job:
    return partial(_run_checks, [ConsumerLag(lambda: asyncio.run(group_lags(settings.kafka)))])


def _stage_letters_job(settings: Settings, database: Database) -> Job:
    """Stage `assemble` has no ClickHouse: its dead letters are stored from their topic."""

    def job(jobs: JobContext, now: datetime) -> RunResult:
        return RunResult(read=store_stage_letters(settings.kafka, settings.otel, database), raised=0)

    return job


def _run_insights(jobs: JobContext, now: datetime) -> RunResult:
    return jobs.run_insights(now)


def _anomaly_job(stopped: Callable[[], bool]) -> Job:
    def job(jobs: JobContext, now: datetime) -> RunResult:
        found = jobs.scan_for_changes(now, stopped)
        return RunResult(read=found.scan.series, raised=found.events)

    return job


def _canary_job(settings: Settings, database: Database, telemetry: Telemetry, stopped: Callable[[], bool]) -> Job:
    from ragtide.stream.canary_job import CanaryJob  # aiohttp takes a tenth of a second

    scoring = CanaryJob(settings, database, telemetry, stopped)

    def job(jobs: JobContext, now: datetime) -> RunResult:
        return scoring.run(jobs.evaluators, now, partial(is_newest, database, jobs.term))

    return job


def _label_job(settings: Settings, database: Database, telemetry: Telemetry) -> Job:
    kafka = settings.kafka
    labels = LabelJob(database, kafka, settings.ingest.max_bytes, telemetry, partial(send, kafka))
    is_asked = settings.sampling.always.thumbs_down

    def job(jobs: JobContext, now: datetime) -> RunResult:
        judges = [id_ for id_, one in jobs.evaluators.items() if one.judge is not None] if is_asked else []
        found = labels.run(now, judges)
        return RunResult(read=sum(found.values()), raised=found.get("sent", 0))

    return job


def _topics_unavailable() -> bool:
    """Whether topics are unavailable here; logs what to install."""
    missing = missing_package()
    if missing:
        log.warning("topics are off: %s", missing)
    return missing is not None


def topic_job(settings: Settings, database: Database, telemetry: Telemetry) -> Job:
    """Make the job that fits due topics and exports their age."""
    named = settings.privacy.store_texts in ("full", "masked")

    def job(jobs: JobContext, now: datetime) -> RunResult:
        try:
            made = fit_topics(database, settings.topics, named, jobs.term, now)
            return RunResult(read=sum(one.questions for one in made), raised=len(made))
        finally:  # export the age of models also if they cannot be fitted
            since = now - timedelta(days=settings.topics.period_days)
            telemetry.topic_model_age_seconds.clear()
            for app, at in fitted_at(database, since).items():
                telemetry.topic_model_age_seconds.labels(app).set((now - at).total_seconds())

    return job


def cycle_job(telemetry: Telemetry) -> Job:
    """Make the job of every few seconds: roll up windows, evaluate rules, raise problems."""

    def job(jobs: JobContext, now: datetime) -> RunResult:
        report = jobs.run_cycle(now)
        telemetry.expired_marks.inc(report.rollup.expired)
        telemetry.failed_windows.inc(report.rollup.failed)
        telemetry.segment_values_left_out.set(report.rollup.segments.omitted)
        for table, rows in report.rollup.replaced.items():
            telemetry.replaced_rows.labels(table).inc(rows)
        return RunResult(read=report.rollup.windows, raised=report.events)

    return job


def _alert_job(settings: Settings, database: Database, telemetry: Telemetry) -> Job:
    from ragtide.drift.notify import AlertmanagerJob

    def measure(url: str, holding: Holding) -> None:
        telemetry.alerts_firing.labels(url).set(holding.firing)
        telemetry.alerts_waiting.labels(url).set(holding.waiting)
        telemetry.alerts_refused.labels(url).set(holding.refused)

    waits = partial(delays, random.Random(), first_s=settings.alertmanager.every_s, cap_s=_LONGEST_ALERT_PAUSE_S)
    posting = AlertmanagerJob(database, settings.alertmanager, alert_context(settings), measure, waits)

    def job(jobs: JobContext, now: datetime) -> RunResult:
        posted = posting.run(jobs.term, now)
        return RunResult(read=posted.reposted + posted.begun + posted.ended, raised=posted.begun + posted.ended)

    return job


def _export_job(
    sender: EventSender, settings: Settings, database: Database, telemetry: Telemetry, stopped: Callable[[], bool]
) -> Job:
    """One job for each target, as for notifications. It reads stored scores, so that no lane waits for a target."""

    def measure(measured: Measured) -> None:
        for outcome, number in measured.events.items():
            telemetry.exported.events.labels(sender.name, outcome).inc(number)
        telemetry.exported.lag_seconds.labels(sender.name).set(measured.lag_s)

    every_s = settings.jobs.every_s
    waits = partial(delays, random.Random(), first_s=every_s, cap_s=_LONGEST_PAUSE_S)
    export = ScoreExport(
        database, settings.otel.export, sender, every_s, metadata.version("ragtide"), measure, waits, stopped
    )

    def job(jobs: JobContext, now: datetime) -> RunResult:
        sent = export.run(jobs.evaluators, jobs.term.epoch, now)
        return RunResult(read=sent, raised=sent)

    return job


def export_backlog(telemetry: Telemetry, target: str, backlog: Backlog) -> None:
    """Set the gauges of a target's messages in the outbox."""
    telemetry.outbox_waiting.labels(target).set(backlog.waiting)
    telemetry.outbox_failing.labels(target).set(backlog.failing)
    telemetry.outbox_oldest_seconds.labels(target).set(backlog.oldest_s)
    telemetry.outbox_refused.labels(target).set(backlog.refused)


def _delivery_job(target: Target, settings: Settings, database: Database, telemetry: Telemetry) -> Job:
    """One job for each target: a target that is down or slow holds back no other."""
    waits = partial(delays, random.Random(), first_s=settings.jobs.every_s, cap_s=_LONGEST_PAUSE_S)
    group_wait = timedelta(seconds=settings.jobs.group_wait_s)
    measure = partial(export_backlog, telemetry, target.name)
    delivering = DeliveryJob(database, target, measure, waits, group_wait)

    def job(jobs: JobContext, now: datetime) -> RunResult:
        sent = delivering.run(jobs.term.epoch, now)
        return RunResult(read=sent.attempted, raised=sent.opened + sent.closed)

    return job
