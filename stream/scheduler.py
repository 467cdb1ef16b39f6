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

from drift.job_runs import Stopped, record_failure, record_run
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
from stream.job_errors import JobErrors
from stream.kafka.leader import KafkaLeadership
from stream.labels.reader import LabelReader
from stream.lanes.worker import CRASHED, STOPPED, WRONG_SETTINGS
from stream.rules_file import RulesFile
from stream.settings import Loaded, Settings
from stream.telemetry import logs
from stream.telemetry.health import JobHealth
from stream.telemetry.registry import Telemetry
from stream.telemetry.serving import TelemetryServer
from stream.timetable import Job, schedule

log = logging.getLogger(__name__)

_MISFIRE_S = 3600  # a job that could not start in time starts late rather than never


class Scheduled:
    """Runs jobs for whoever leads: a job that raises is counted and logged, and the next one runs.

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
        self._errors = JobErrors(clock)
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
            self._do(name, job, term)
        except Stopped as where:
            log.info("job %s leaves off: %s; its next run goes on", name, where)
            return False
        except RagwatchError as error:
            self._errors.failed(name, str(error))
            self._failed(name, str(error))
            return False
        except Exception as error:  # a scheduled job: the next run may do better
            log.exception("job %s failed", name)
            self._failed(name, type(error).__name__)
            return False
        self._errors.done(name)
        self._telemetry.job_runs.labels(name, "done").inc()
        self._telemetry.job_success_time.labels(name).set_to_current_time()
        self._health.moved()
        return True

    def _do(self, name: str, job: Job, term: Term) -> None:
        """The job is done and its run recorded; what it raises is recorded and goes on."""
        started, began = self._now(), time.monotonic()
        try:
            with self._telemetry.job_seconds.labels(name).time():
                done = job(self._of(term), started)
        except Stopped:
            raise
        except Exception as error:  # a scheduled job: the caller says what becomes of it
            why = str(error) if isinstance(error, RagwatchError) else ""
            with contextlib.suppress(RagwatchError):  # what it failed of may keep this from being stored too
                took_s = time.monotonic() - began
                record_failure(self._database, name, term, started, took_s, why or type(error).__name__)
            raise
        record_run(self._database, name, term, started, time.monotonic() - began, done)

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
                    settings.drift,
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
    jobs = schedule(settings, database, telemetry, stop.is_set)
    leadership.start()
    reading = [asyncio.create_task(reader.run())] if settings.kafka.labels_topic else []
    for task in reading:
        task.add_done_callback(lambda _: stop.set())
    log.info("jobs run every %g s; telemetry at http://%s:%d", settings.jobs.every_s, where.host, server.port)
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
