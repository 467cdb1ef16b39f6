"""The `jobs` process: jobs on a schedule under one leader. Any number of such processes may run."""

import asyncio
import logging
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

from drift.job_runs import record_run
from drift.jobs import Jobs, server_time
from drift.leadership import Leadership, Term
from drift.settings import RuleSettings
from evaluators import registry
from evaluators.encoder.model import what_is_missing
from evaluators.errors import RagwatchError
from evaluators.settings import AUTO_MODEL, PACKAGED_MODEL, EncoderSettings
from evaluators.spec import Evaluator
from evaluators.suited import suited
from sinks.clickhouse.database import Database
from stream.kafka.leader import KafkaLeadership
from stream.labels.job import LabelJob
from stream.labels.reader import LabelReader
from stream.labels.sending import send
from stream.lanes.backoff import delays
from stream.lanes.worker import CRASHED, STOPPED, WRONG_SETTINGS
from stream.rules_file import RulesFile
from stream.settings import Loaded, Settings
from stream.telemetry import logs
from stream.telemetry.health import JobHealth
from stream.telemetry.registry import Telemetry
from stream.telemetry.serving import TelemetryServer

log = logging.getLogger(__name__)

Job = Callable[[Jobs, datetime], object]

_LOOK_S = 60.0  # how often a new leader may find that something slow is due
_LONGEST_PAUSE_S = 300.0  # between two looks whether Grafana is back
_MISFIRE_S = 3600  # a job that could not start in time starts late rather than never


class Scheduled:
    """Runs jobs for whoever leads: a job that raises is counted and logged, and the next one runs."""

    def __init__(
        self,
        settings: Settings,
        rules: Callable[[], RuleSettings],
        evaluators: Mapping[str, Evaluator],
        database: Database,
        leadership: Leadership,
        telemetry: Telemetry,
        health: JobHealth,
        now: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._rules = rules
        self._evaluators = evaluators
        self._database = database
        self._leadership = leadership
        self._telemetry = telemetry
        self._health = health
        self._now = now
        self._jobs: Jobs | None = None
        self._lock = threading.Lock()

    def run(self, name: str, job: Job) -> bool:
        """Do the job if this process leads; whether it was done. Never raises."""
        try:
            term = self._leadership.term()
            self._telemetry.leader.set(term is not None)
            if term is None:
                self._health.moved()
                return False
            with self._telemetry.job_seconds.labels(name).time():
                job(self._of(term), self._now())
                record_run(self._database, name, term)
        except RagwatchError as error:
            log.error("job %s: %s", name, error)
            self._failed(name, str(error))
            return False
        except Exception as error:  # a scheduled job: the next run may do better
            log.exception("job %s failed", name)
            self._failed(name, type(error).__name__)
            return False
        self._telemetry.job_runs.labels(name, "done").inc()
        self._telemetry.job_success_time.labels(name).set_to_current_time()
        self._health.moved()
        return True

    def _failed(self, name: str, why: str) -> None:
        self._telemetry.job_runs.labels(name, "failed").inc()
        self._health.failed(f"job {name}: {why}")

    def _of(self, term: Term) -> Jobs:
        with self._lock:
            rules = self._rules()
            if self._jobs is None or self._jobs.term is not term or self._jobs.rules is not rules:
                settings = self._settings
                self._jobs = Jobs(
                    self._database,
                    self._evaluators,
                    settings.windows,
                    rules,
                    settings.jobs,
                    term,
                    settings.retention,
                )
            return self._jobs


def run(loaded: Loaded) -> int:
    """Until SIGTERM or SIGINT; the exit status: 0 stopped in order, 1 a bug, 2 a person must change something."""
    logs.configure(loaded.settings.telemetry)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        asyncio.run(_serve(loaded, stop))
    except RagwatchError as error:
        log.error("jobs stop: %s", error)
        return WRONG_SETTINGS
    except Exception:  # the edge of the process
        log.exception("jobs crashed")
        return CRASHED
    return STOPPED


async def _serve(loaded: Loaded, stop: threading.Event) -> None:
    """Telemetry on the loop, jobs in threads."""
    settings = loaded.settings
    evaluators = suited(registry.load(), settings.evaluators)
    warn_of_a_guess(settings.evaluators.encoder)
    rules = RulesFile(loaded, evaluators, os.environ)
    database = Database(settings.clickhouse)
    leadership = KafkaLeadership(settings.kafka, database, ended=stop.set)
    telemetry = Telemetry()
    reader = LabelReader(settings, database, telemetry, random.Random())
    health = JobHealth(time.monotonic, settings.jobs.live_after_s, lambda: leadership.trouble() or reader.trouble())
    where = settings.telemetry
    server = TelemetryServer(telemetry, health, where.host, where.jobs_port, "telemetry.jobs_port")
    await server.start()
    scheduled = Scheduled(
        settings, rules.now, evaluators, database, leadership, telemetry, health, lambda: server_time(database)
    )
    jobs = _schedule(settings, database, telemetry)
    leadership.start()
    reading = [asyncio.create_task(reader.run())] if settings.kafka.labels_topic else []
    for task in reading:
        task.add_done_callback(lambda _: stop.set())
    log.info("jobs run every %g s; telemetry on port %d", settings.jobs.every_s, server.port)
    try:
        await asyncio.to_thread(work, scheduled, jobs, stop)
    finally:
        for task in reading:
            task.cancel()
        bugs = [
            error for error in await asyncio.gather(*reading, return_exceptions=True) if isinstance(error, Exception)
        ]
        await asyncio.to_thread(leadership.stop)
        await server.stop()
        database.close()
    if leadership.failure is not None:
        raise leadership.failure
    if bugs:
        raise bugs[0]


def work(scheduled: Scheduled, jobs: Sequence[tuple[str, float, Job]], stop: threading.Event) -> None:
    """Runs each job at its interval (name, seconds, work) until `stop` is set, and returns once none runs any more."""
    from apscheduler.schedulers.background import BackgroundScheduler

    scheduler = BackgroundScheduler(timezone="UTC")
    for name, every_s, job in jobs:
        scheduler.add_job(
            scheduled.run,
            "interval",
            (name, job),
            seconds=every_s,
            id=name,
            name=name,
            max_instances=1,
            coalesce=True,
            misfire_grace_time=_MISFIRE_S,
        )
    scheduler.start()
    stop.wait()
    scheduler.shutdown()  # waits for the jobs that run


def warn_of_a_guess(encoder: EncoderSettings) -> None:
    """Say so where the thresholds are of an encoder that is not here, and which the workers may not use."""
    if encoder.model == AUTO_MODEL and what_is_missing(encoder):
        log.warning(
            "evaluators.encoder.model is %s and no encoder is here: the rules take the thresholds of %s; "
            "name the encoder that the workers use, if it is another",
            AUTO_MODEL,
            PACKAGED_MODEL,
        )


def _schedule(settings: Settings, database: Database, telemetry: Telemetry) -> list[tuple[str, float, Job]]:
    """Name, interval and work of each job."""
    jobs: list[tuple[str, float, Job]] = [
        ("watch", settings.jobs.every_s, _watching(telemetry)),
        ("insights", min(settings.jobs.insights_every_s, _LOOK_S), Jobs.state_insights),
    ]
    if settings.kafka.labels_topic:
        jobs.append(("labels", settings.jobs.every_s, _joining(settings, database, telemetry)))
    if settings.grafana.url:
        jobs.append(("announce", settings.jobs.every_s, _announcing(settings, database, telemetry)))
    return jobs


def _joining(settings: Settings, database: Database, telemetry: Telemetry) -> Job:
    kafka = settings.kafka
    labels = LabelJob(database, kafka, settings.ingest.max_bytes, telemetry, partial(send, kafka))
    return lambda _, now: labels.run(now)


def _watching(telemetry: Telemetry) -> Job:
    def job(jobs: Jobs, now: datetime) -> object:
        report = jobs.watch(now)
        telemetry.expired_marks.inc(report.rolled_up.expired)
        return report

    return job


def _announcing(settings: Settings, database: Database, telemetry: Telemetry) -> Job:
    from sinks.grafana import GrafanaGateway
    from stream.announcing import Announcing

    waits = partial(delays, random.Random(), first_s=settings.jobs.every_s, cap_s=_LONGEST_PAUSE_S)
    announcing = Announcing(database, GrafanaGateway(settings.grafana), telemetry, waits)
    return lambda jobs, now: announcing.run(jobs.term.epoch, now)
