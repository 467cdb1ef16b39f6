"""The jobs that the settings ask for: name, interval and work of each."""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial

from drift.explaining import Explaining
from drift.flips.disagreeing import watch_answers
from drift.flips.inconsistency import watch_inconsistency
from drift.flips.watching import watch_flips
from drift.job_runs import Done
from drift.jobs import Jobs
from drift.kinds.evaluator_errors import watch_errors
from drift.kinds.failing_jobs import watch_jobs
from drift.kinds.failure_rates import watch_failure_rates
from drift.kinds.findings import watch_findings
from drift.kinds.retention import Retention
from drift.kinds.slo_burn import watch_objectives
from drift.kinds.storage import watch_dead_letters, watch_disks
from drift.problems.troubles import Watched
from drift.topics.clusters import what_is_missing as what_is_missing_for_topics
from drift.topics.fit import fit_topics
from drift.topics.shown import fitted_at
from drift.windows.segments import segment_values
from sinks.clickhouse.database import Database
from stream.kafka.retention import waits
from stream.labels.job import LabelJob
from stream.labels.sending import send
from stream.lanes.backoff import delays
from stream.settings import Settings
from stream.telemetry.registry import Telemetry

log = logging.getLogger(__name__)

Job = Callable[[Jobs, datetime], Done]

_LOOK_S = 60.0  # how often a new leader may find that something slow is due
_LONGEST_PAUSE_S = 300.0  # between two looks whether Grafana is back


def schedule(
    settings: Settings, database: Database, telemetry: Telemetry, stopped: Callable[[], bool]
) -> list[tuple[str, float, Job]]:
    """Name, interval and work of each job; what may take minutes leaves off once `stopped`."""
    jobs: list[tuple[str, float, Job]] = [
        ("watch", settings.jobs.every_s, watching(telemetry)),
        ("insights", min(settings.jobs.insights_every_s, _LOOK_S), _stating),
        ("explain", settings.jobs.explain_every_s, _explaining(telemetry)),
        ("errors", settings.jobs.checks_every_s, _watching_errors),
        ("findings", settings.jobs.checks_every_s, _watching_findings),
        ("failure_rates", settings.jobs.rates_every_s, _watching_failure_rates),
        ("objectives", settings.jobs.checks_every_s, _watching_objectives),
        ("flips", settings.jobs.rates_every_s, _watching_flips),
        ("inconsistency", settings.jobs.repeats_every_s, _watching_inconsistency),
        ("storage", settings.jobs.checks_every_s, _watching_disks),
        ("dead_letters", settings.jobs.checks_every_s, _watching_dead_letters),
        ("retention", settings.jobs.checks_every_s, _watching_retention(settings)),
    ]
    if settings.topics.enabled and settings.privacy.stores_embeddings and not _warned_of_a_lack():
        jobs.append(("topics", min(settings.topics.every_s, _LOOK_S), finding_topics(settings, database, telemetry)))
    if settings.drift.watches_somebody:
        jobs.append(("drift", settings.drift.every_s, _looking(stopped)))
    if settings.drift.watches_somebody and settings.privacy.stores_embeddings:
        jobs.append(("questions", settings.drift.questions_every_s, partial(Jobs.watch_questions, stopped=stopped)))
    if settings.kafka.labels_topic:
        jobs.append(("labels", settings.jobs.every_s, _joining(settings, database, telemetry)))
    if settings.grafana.url:
        jobs.append(("announce", settings.jobs.every_s, _announcing(settings, database, telemetry)))
    jobs.append(("jobs", settings.jobs.checks_every_s, _watching_jobs({name: every_s for name, every_s, _ in jobs})))
    return jobs


def _done(found: Watched) -> Done:
    return Done(read=found.read, raised=len(found.events))


def _watching_jobs(every_s: Mapping[str, float]) -> Job:
    """It says nothing of itself: while it hangs it could not."""

    def job(jobs: Jobs, now: datetime) -> Done:
        return _done(watch_jobs(jobs.database, every_s, jobs.settings, jobs.rules, jobs.term, now))

    return job


def _watching_errors(jobs: Jobs, now: datetime) -> Done:
    base_s, known = jobs.windows.base_s, jobs.evaluators.values()
    return _done(watch_errors(jobs.database, known, jobs.rules, base_s, jobs.term, now))


def _watching_findings(jobs: Jobs, now: datetime) -> Done:
    return _done(watch_findings(jobs.database, jobs.evaluators, jobs.rules, jobs.term, now))


def _explaining(telemetry: Telemetry) -> Job:
    explaining = Explaining()

    def job(jobs: Jobs, now: datetime) -> Done:
        found = explaining.run(jobs, now)
        telemetry.explanations.labels("told").inc(found.told)
        telemetry.explanations.labels("failed").inc(found.failed)
        return Done(read=found.told + found.failed, raised=found.told)

    return job


def _watching_objectives(jobs: Jobs, now: datetime) -> Done:
    return _done(watch_objectives(jobs.database, jobs.metrics, jobs.rules, jobs.windows, jobs.term, now))


def _watching_failure_rates(jobs: Jobs, now: datetime) -> Done:
    segments = segment_values(jobs.database, jobs.windows, jobs.term, now)
    base_s = jobs.windows.base_s
    return _done(watch_failure_rates(jobs.database, jobs.metrics, jobs.rules, base_s, segments, jobs.term, now))


def _watching_flips(jobs: Jobs, now: datetime) -> Done:
    seen = watch_flips(jobs.database, jobs.metrics, jobs.rules, jobs.term, now)
    return Done(read=seen.pairs, raised=len(seen.events))


def _watching_inconsistency(jobs: Jobs, now: datetime) -> Done:
    by_scores = watch_inconsistency(jobs.database, jobs.metrics, jobs.rules, jobs.term, now)
    by_answers = watch_answers(jobs.database, jobs.rules, jobs.term, now)
    return Done(by_scores.read + by_answers.read, len(by_scores.events) + len(by_answers.events))


def _watching_disks(jobs: Jobs, now: datetime) -> Done:
    return _done(watch_disks(jobs.database, jobs.rules, jobs.term, now))


def _watching_dead_letters(jobs: Jobs, now: datetime) -> Done:
    return _done(watch_dead_letters(jobs.database, jobs.rules, jobs.term, now))


def _watching_retention(settings: Settings) -> Job:
    retention = Retention()

    def job(jobs: Jobs, now: datetime) -> Done:
        found = asyncio.run(waits(settings.kafka))
        return Done(read=len(found), raised=len(retention.watch(jobs.database, found, jobs.rules, jobs.term, now)))

    return job


def _stating(jobs: Jobs, now: datetime) -> Done:
    return jobs.state_insights(now)


def _looking(stopped: Callable[[], bool]) -> Job:
    def job(jobs: Jobs, now: datetime) -> Done:
        found = jobs.look_for_changes(now, stopped)
        return Done(read=found.looked.series, raised=found.events)

    return job


def _joining(settings: Settings, database: Database, telemetry: Telemetry) -> Job:
    kafka = settings.kafka
    labels = LabelJob(database, kafka, settings.ingest.max_bytes, telemetry, partial(send, kafka))

    def job(jobs: Jobs, now: datetime) -> Done:
        found = labels.run(now)
        return Done(read=sum(found.values()), raised=found.get("sent", 0))

    return job


def _warned_of_a_lack() -> bool:
    """Whether topics cannot be found here; says so, and what to install."""
    missing = what_is_missing_for_topics()
    if missing:
        log.warning("questions get no topics: %s", missing)
    return missing is not None


def finding_topics(settings: Settings, database: Database, telemetry: Telemetry) -> Job:
    """The job that fits topics where they are due, and says how old they are."""
    named = settings.privacy.store_texts in ("full", "masked")

    def job(jobs: Jobs, now: datetime) -> Done:
        try:
            made = fit_topics(database, settings.topics, named, jobs.term, now)
            return Done(read=sum(one.questions for one in made), raised=len(made))
        finally:  # how old they are is told where they cannot be fitted, too
            since = now - timedelta(days=settings.topics.period_days)
            telemetry.topic_model_age_seconds.clear()
            for app, at in fitted_at(database, since).items():
                telemetry.topic_model_age_seconds.labels(app).set((now - at).total_seconds())

    return job


def watching(telemetry: Telemetry) -> Job:
    """The job of every few seconds: windows rolled up, verdicts, what they raise."""

    def job(jobs: Jobs, now: datetime) -> Done:
        report = jobs.watch(now)
        telemetry.expired_marks.inc(report.rolled_up.expired)
        return Done(read=report.rolled_up.windows, raised=report.events)

    return job


def _announcing(settings: Settings, database: Database, telemetry: Telemetry) -> Job:
    from sinks.grafana import GrafanaGateway
    from stream.announcing import Announcing

    waits = partial(delays, random.Random(), first_s=settings.jobs.every_s, cap_s=_LONGEST_PAUSE_S)
    announcing = Announcing(database, GrafanaGateway(settings.grafana), telemetry, waits)

    def job(jobs: Jobs, now: datetime) -> Done:
        sent = announcing.run(jobs.term.epoch, now)
        return Done(read=sent.tried, raised=sent.opened + sent.closed)

    return job
