"""The newest topic models of a worker: read at the start, and again by a background thread."""

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from prometheus_client import Counter

from ragtide.drift.topics import TopicModel, load_newest_models, newest_model_version
from ragtide.evaluators.errors import RagtideError
from ragtide.sinks.clickhouse.database import Database

log = logging.getLogger(__name__)


class TopicModelCache:
    """The models of one encoder, by application. `current` may be called from any thread and never waits.

    They are at most `refresh_s` old; while the database is away, the last ones stay.
    """

    def __init__(self, database: Database, encoder: str, refresh_s: float) -> None:
        self._database = database
        self._encoder = encoder
        self._refresh_s = refresh_s
        self._models: Mapping[str, TopicModel] = {}
        self._version = 0
        self._failures = 0
        self._counter: Counter | None = None
        self._lock = threading.Lock()

    def current(self) -> Mapping[str, TopicModel]:
        """Topic models by application; the mapping never changes."""
        return self._models

    def refresh(self) -> None:
        """Read new models. Never raises: a failure is logged and counted, and the next call retries."""
        try:
            version = newest_model_version(self._database, self._encoder)
            if version == self._version:
                return
            self._models = load_newest_models(self._database, self._encoder)
            self._version = version
        except RagtideError as error:
            log.warning("could not read topic models: %s; using the last ones", error)
            self._count_failure()
            return
        except Exception:  # as a job: a bug, or a row that is not sound, must not end the thread that looks
            log.exception("could not read topic models; using the last ones")
            self._count_failure()
            return
        log.info("read topic models of %d applications, latest version %d", len(self._models), version)

    def count_failures(self, counter: Counter) -> None:
        """Count failures in `counter`, earlier ones included."""
        with self._lock:
            counter.inc(self._failures)
            self._counter = counter

    def _count_failure(self) -> None:
        with self._lock:
            self._failures += 1
            if self._counter is not None:
                self._counter.inc()

    @contextmanager
    def refresh_in_background(self) -> Iterator[None]:
        """Refresh periodically within the context."""
        stop = threading.Event()
        thread = threading.Thread(target=self._refresh_periodically, args=(stop,), name="topic-models", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()

    def _refresh_periodically(self, stop: threading.Event) -> None:
        while not stop.wait(self._refresh_s):
            self.refresh()
