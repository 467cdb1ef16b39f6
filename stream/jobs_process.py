"""The `jobs` process: jobs on a schedule under one leader. Any number of such processes may run."""

import asyncio
import contextlib
import logging
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from ragtide.drift.job_history import StopRequested, record_failure, record_run
from ragtide.drift.jobs import JobContext, server_time
from ragtide.drift.leadership import Leadership, Term
from ragtide.drift.settings import RuleSettings
from ragtide.evaluators import registry
from ragtide.evaluators.encoder.model import what_is_missing
from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds
from ragtide.evaluators.errors import RagtideError
from ragtide.evaluators.settings import AUTO_MODEL, PACKAGED_MODEL, EncoderSettings
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.job_error_log import JobErrorLog
from ragtide.stream.job_schedule import Job, job_schedule
from ragtide.stream.kafka.leader import KafkaLeadership
from ragtide.stream.labels.reader import LabelReader
from ragtide.stream.rules_reload import RulesFile
from ragtide.stream.settings.loader import Loaded, Settings
from ragtide.stream.telemetry import logs
from ragtide.stream.telemetry.health import JobHealth
from ragtide.stream.telemetry.registry import Telemetry
from ragtide.stream.telemetry.serving import TelemetryServer
from ragtide.stream.worker.process import CRASHED, STOPPED, WRONG_SETTINGS

log = logging.getLogger(__name__)

_MISFIRE_S = 3600  # a job that could not start in time starts late rather than never


class JobRunner:
    """Runs jobs if this process leads. A job that raises is counted and logged, and the next one runs.

    `now` is the server's time, `clock` monotonic, in seconds.
    """

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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._rules = rules
        self._evaluators = evaluators
        self._database = database
        self._leadership = leadership
        self._telemetry = telemetry
        self._health = health
        self._now = now
        self._errors = JobErrorLog(clock)
        self._job_context: JobContext | None = None
        self._lock = threading.Lock()

    def run(self, name: str, job: Job) -> bool:
        """Run the job if this process leads; return whether it succeeded. Never raises."""
        try:
            term = self._leadership.term()
            self._telemetry.leader.set(term is not None)
            if term is None:
                self._health.record_progress()
                return False
            self._run_job(name, job, term)
        except StopRequested as where:
            log.info("job %s paused: %s; its next run continues", name, where)
            return False
        except RagtideError as error:
            self._errors.record_failure(name, str(error))
            self._count_failure(name, str(error))
            return False
        except Exception as error:  # a scheduled job: the next run may do better
            log.exception("job %s crashed; its next run retries", name)
            self._count_failure(name, type(error).__name__)
            return False
        self._errors.record_success(name)
        self._telemetry.job_runs.labels(name, "done").inc()
        self._telemetry.job_success_time.labels(name).set_to_current_time()
        self._health.record_progress()
        return True

    def _run_job(self, name: str, job: Job, term: Term) -> None:
        """Run the job and record its run; record and re-raise an error."""
        started, began = self._now(), time.monotonic()
        try:
            with self._telemetry.job_seconds.labels(name).time():
                done = job(self._context(term), started)
        except StopRequested:
            raise
        except Exception as error:  # a scheduled job: the caller says what becomes of it
            why = str(error) if isinstance(error, RagtideError) else ""
            with contextlib.suppress(RagtideError):  # what it failed of may keep this from being stored too
                took_s = time.monotonic() - began
                record_failure(self._database, name, term, started, took_s, why or type(error).__name__)
            raise
        record_run(self._database, name, term, started, time.monotonic() - began, done)

    def _count_failure(self, name: str, why: str) -> None:
        self._telemetry.job_runs.labels(name, "failed").inc()
        self._health.record_failure(f"job {name}: {why}")

    def _context(self, term: Term) -> JobContext:
        with self._lock:
            rules = self._rules()
            if self._job_context is None or self._job_context.term is not term or self._job_context.rules is not rules:
                settings = self._settings
                self._job_context = JobContext(
                    self._database,
                    self._evaluators,
                    settings.windows,
                    rules,
                    settings.jobs,
                    term,
                    settings.retention,
                    settings.drift,
                )
            return self._job_context


def run(loaded: Loaded) -> int:
    """Run until SIGTERM or SIGINT. Exit status: 0 stopped in order, 1 a bug, 2 settings or surroundings must change."""
    logs.configure(loaded.settings.telemetry)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        asyncio.run(_serve(loaded, stop))
    except RagtideError as error:
        log.error("jobs stopped: %s", error)
        return WRONG_SETTINGS
    except Exception:  # the edge of the process
        log.exception("jobs crashed")
        return CRASHED
    return STOPPED


async def _serve(loaded: Loaded, stop: threading.Event) -> None:
    """Serve telemetry on the loop, run jobs in threads."""
    settings = loaded.settings
    evaluators = with_encoder_thresholds(registry.load(settings.evaluators), settings.evaluators)
    warn_if_encoder_assumed(settings.evaluators.encoder)
    rules = RulesFile(loaded, evaluators, os.environ)
    database = Database(settings.clickhouse)
    leadership = KafkaLeadership(settings.kafka, database, on_end=stop.set)
    telemetry = Telemetry()
    reader = LabelReader(settings, database, telemetry, random.Random())
    health = JobHealth(time.monotonic, settings.jobs.live_after_s, lambda: leadership.trouble() or reader.trouble())
    where = settings.telemetry
    server = TelemetryServer(telemetry, health, where.host, where.jobs_port, "telemetry.jobs_port")
    await server.start()
    scheduled = JobRunner(
        settings, rules.current, evaluators, database, leadership, telemetry, health, lambda: server_time(database)
    )
    jobs = job_schedule(settings, database, telemetry, stop.is_set)
    leadership.start()
    reading = [asyncio.create_task(reader.run())] if settings.kafka.labels_topic else []
    for task in reading:
        task.add_done_callback(lambda _: stop.set())
    log.info("jobs run every %g s; serving telemetry at http://%s:%d", settings.jobs.every_s, where.host, server.port)
    try:
        await asyncio.to_thread(run_jobs, scheduled, jobs, stop)
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


def run_jobs(runner: JobRunner, jobs: Sequence[tuple[str, float, Job]], stop: threading.Event) -> None:
    """Run each job at its interval (name, seconds, work) until `stop` is set; return once none runs."""
    from apscheduler.executors.pool import ThreadPoolExecutor
    from apscheduler.schedulers.background import BackgroundScheduler

    # A thread for each job: receivers that hang must not use up those of the others.
    threads = ThreadPoolExecutor(max_workers=max(len(jobs), 1))
    scheduler = BackgroundScheduler(timezone="UTC", executors={"default": threads})
    for name, every_s, job in jobs:
        scheduler.add_job(
            runner.run,
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


def warn_if_encoder_assumed(encoder: EncoderSettings) -> None:
    """Warn if rules use the thresholds of an encoder that is not installed here, because workers may use another."""
    if encoder.model == AUTO_MODEL and what_is_missing(encoder):
        log.warning(
            "evaluators.encoder.model is %s and no encoder is installed: rules use the thresholds of %s; "
            "set it to the encoder of the workers if that is another",
            AUTO_MODEL,
            PACKAGED_MODEL,
        )
