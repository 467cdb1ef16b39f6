"""Schedule of the jobs: name, interval and work of each, by the settings."""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial

from ragtide.drift.checks.consumer_lag import ConsumerLag
from ragtide.drift.checks.error_budget import check_error_budgets
from ragtide.drift.checks.evaluator_errors import check_evaluator_errors
from ragtide.drift.checks.failure_rates import check_failure_rates
from ragtide.drift.checks.findings import check_findings
from ragtide.drift.checks.job_health import check_jobs
from ragtide.drift.checks.storage import check_dead_letters, check_disks
from ragtide.drift.job_history import RunResult
from ragtide.drift.jobs import JobContext
from ragtide.drift.notify.outbox import Backlog
from ragtide.drift.problems.report import CheckResult
from ragtide.drift.robustness.answer_agreement import check_answer_agreement
from ragtide.drift.robustness.flip_rate import check_flip_rate
from ragtide.drift.robustness.score_consistency import check_score_consistency
from ragtide.drift.rootcause_job import RootCauseJob
from ragtide.drift.topics.clusters import missing_package as what_is_missing_for_topics
from ragtide.drift.topics.fit import fit_topics
from ragtide.drift.topics.store import fitted_at
from ragtide.drift.windows.segments import update_segment_values
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.kafka.lag_age import group_lags
from ragtide.stream.labels.job import LabelJob
from ragtide.stream.labels.sending import send
from ragtide.stream.settings.loader import Settings
from ragtide.stream.telemetry.registry import Telemetry
from ragtide.stream.worker.backoff import delays

log = logging.getLogger(__name__)

Job = Callable[[JobContext, datetime], RunResult]

_DUE_CHECK_S = 60.0  # how often a new leader may find that something slow is due
_LONGEST_PAUSE_S = 300.0  # between two looks whether Grafana is back


def job_schedule(
    settings: Settings, database: Database, telemetry: Telemetry, stopped: Callable[[], bool]
) -> list[tuple[str, float, Job]]:
    """Name, interval and work of each job. Jobs that may take minutes stop early once `stopped`."""
    jobs: list[tuple[str, float, Job]] = [
        ("watch", settings.jobs.every_s, cycle_job(telemetry)),
        ("insights", min(settings.jobs.insights_every_s, _DUE_CHECK_S), _run_insights),
        ("explain", settings.jobs.explain_every_s, _root_cause_job(telemetry)),
        ("errors", settings.jobs.checks_every_s, _check_errors),
        ("findings", settings.jobs.checks_every_s, _check_findings),
        ("failure_rates", settings.jobs.rates_every_s, _check_failure_rates),
        ("objectives", settings.jobs.checks_every_s, _check_objectives),
        ("flips", settings.jobs.rates_every_s, _check_flips),
        ("inconsistency", settings.jobs.repeats_every_s, _check_inconsistency),
        ("storage", settings.jobs.checks_every_s, _check_disks),
        ("dead_letters", settings.jobs.checks_every_s, _check_dead_letters),
        ("retention", settings.jobs.checks_every_s, _consumer_lag_job(settings)),
    ]
    if settings.topics.enabled and settings.privacy.stores_embeddings and not _topics_unavailable():
        jobs.append(("topics", min(settings.topics.every_s, _DUE_CHECK_S), topic_job(settings, database, telemetry)))
    if settings.drift.monitors_any_app:
        jobs.append(("drift", settings.drift.every_s, _anomaly_job(stopped)))
    if settings.drift.monitors_any_app and settings.privacy.stores_embeddings:
        jobs.append(
            ("questions", settings.drift.questions_every_s, partial(JobContext.check_input_drift, stopped=stopped))
        )
    if settings.kafka.labels_topic:
        jobs.append(("labels", settings.jobs.every_s, _label_job(settings, database, telemetry)))
    if settings.grafana.url:
        jobs.append(("announce", settings.jobs.every_s, _delivery_job(settings, database, telemetry)))
    jobs.append(("jobs", settings.jobs.checks_every_s, _job_health_job({name: every_s for name, every_s, _ in jobs})))
    return jobs


def _result(found: CheckResult) -> RunResult:
    return RunResult(read=found.read, raised=len(found.events))


def _job_health_job(every_s: Mapping[str, float]) -> Job:
    """It does not check itself: while it hangs it could not."""

    def job(jobs: JobContext, now: datetime) -> RunResult:
        return _result(check_jobs(jobs.database, every_s, jobs.settings, jobs.rules, jobs.term, now, jobs.pace))

    return job


def _check_errors(jobs: JobContext, now: datetime) -> RunResult:
    base_s, known = jobs.windows.base_s, jobs.evaluators.values()
    return _result(check_evaluator_errors(jobs.database, known, jobs.rules, base_s, jobs.term, now))


def _check_findings(jobs: JobContext, now: datetime) -> RunResult:
    return _result(check_findings(jobs.database, jobs.evaluators, jobs.rules, jobs.term, now))


def _root_cause_job(telemetry: Telemetry) -> Job:
    explaining = RootCauseJob()

    def job(jobs: JobContext, now: datetime) -> RunResult:
        found = explaining.run(jobs, now)
        telemetry.explanations.labels("told").inc(found.explained)
        telemetry.explanations.labels("failed").inc(found.failed)
        return RunResult(read=found.explained + found.failed, raised=found.explained)

    return job


def _check_objectives(jobs: JobContext, now: datetime) -> RunResult:
    return _result(check_error_budgets(jobs.database, jobs.metrics, jobs.rules, jobs.windows, jobs.term, now))


def _check_failure_rates(jobs: JobContext, now: datetime) -> RunResult:
    segments = update_segment_values(jobs.database, jobs.windows, jobs.term, now)
    base_s = jobs.windows.base_s
    return _result(check_failure_rates(jobs.database, jobs.metrics, jobs.rules, base_s, segments, jobs.term, now))


def _check_flips(jobs: JobContext, now: datetime) -> RunResult:
    seen = check_flip_rate(jobs.database, jobs.metrics, jobs.rules, jobs.term, now)
    return RunResult(read=seen.pairs, raised=len(seen.events))


def _check_inconsistency(jobs: JobContext, now: datetime) -> RunResult:
    by_scores = check_score_consistency(jobs.database, jobs.metrics, jobs.rules, jobs.term, now)
    by_answers = check_answer_agreement(jobs.database, jobs.rules, jobs.term, now)
    return RunResult(by_scores.read + by_answers.read, len(by_scores.events) + len(by_answers.events))


def _check_disks(jobs: JobContext, now: datetime) -> RunResult:
    return _result(check_disks(jobs.database, jobs.rules, jobs.term, now))


def _check_dead_letters(jobs: JobContext, now: datetime) -> RunResult:
    return _result(check_dead_letters(jobs.database, jobs.rules, jobs.term, now))


def _consumer_lag_job(settings: Settings) -> Job:
    retention = ConsumerLag()

    def job(jobs: JobContext, now: datetime) -> RunResult:
        found = asyncio.run(group_lags(settings.kafka))
        return RunResult(read=len(found), raised=len(retention.check(jobs.database, found, jobs.rules, jobs.term, now)))

    return job


def _run_insights(jobs: JobContext, now: datetime) -> RunResult:
    return jobs.run_insights(now)


def _anomaly_job(stopped: Callable[[], bool]) -> Job:
    def job(jobs: JobContext, now: datetime) -> RunResult:
        found = jobs.scan_for_changes(now, stopped)
        return RunResult(read=found.scan.series, raised=found.events)

    return job


def _label_job(settings: Settings, database: Database, telemetry: Telemetry) -> Job:
    kafka = settings.kafka
    labels = LabelJob(database, kafka, settings.ingest.max_bytes, telemetry, partial(send, kafka))

    def job(jobs: JobContext, now: datetime) -> RunResult:
        found = labels.run(now)
        return RunResult(read=sum(found.values()), raised=found.get("sent", 0))

    return job


def _topics_unavailable() -> bool:
    """Whether topics are unavailable here; logs what to install."""
    missing = what_is_missing_for_topics()
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


def export_backlog(telemetry: Telemetry, backlog: Backlog) -> None:
    """Set the gauges of the outbox."""
    telemetry.outbox_waiting.set(backlog.waiting)
    telemetry.outbox_failing.set(backlog.failing)
    telemetry.outbox_oldest_seconds.set(backlog.oldest_s)
    telemetry.outbox_refused.set(backlog.refused)


def _delivery_job(settings: Settings, database: Database, telemetry: Telemetry) -> Job:
    from ragtide.drift.notify.delivery import DeliveryJob
    from ragtide.sinks.grafana import GrafanaGateway

    waits = partial(delays, random.Random(), first_s=settings.jobs.every_s, cap_s=_LONGEST_PAUSE_S)
    announcing = DeliveryJob(database, GrafanaGateway(settings.grafana), partial(export_backlog, telemetry), waits)

    def job(jobs: JobContext, now: datetime) -> RunResult:
        sent = announcing.run(jobs.term.epoch, now)
        return RunResult(read=sent.attempted, raised=sent.opened + sent.closed)

    return job
