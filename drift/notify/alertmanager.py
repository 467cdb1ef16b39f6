"""Keep the alerts of every Alertmanager equal to the open problems.

Each Alertmanager is served by a thread of its own, so that one that is away or slow does not hold back the others. What
it may hold is stored before it is posted (`ragtide.drift.notify.posted_alerts`); posting twice adds nothing there.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timedelta

from ragtide.drift.leadership import Term
from ragtide.drift.notify.alert import AlertContext
from ragtide.drift.notify.alertmanager_target import AlertmanagerTarget, Holding, PostResult
from ragtide.drift.notify.open_problems import OpenProblems, WantedAlerts
from ragtide.drift.notify.silences import end_silences_of_others
from ragtide.evaluators.errors import ConfigError, RagtideError, Transient
from ragtide.sinks.alertmanager import AlertmanagerGateway, Busy
from ragtide.sinks.alertmanager_settings import AlertmanagerSettings
from ragtide.sinks.clickhouse.database import Database


@dataclass(slots=True)
class _Lane:
    """One Alertmanager, its thread, and when it is tried again after a failure."""

    target: AlertmanagerTarget
    thread: ThreadPoolExecutor
    delays_s: Iterator[float]
    running: "Future[PostResult] | None" = None
    retry_at: datetime | None = None


class AlertmanagerJob:
    """Post alerts at intervals; remembers what each Alertmanager holds and when to retry.

    `measure` gets the state of each URL after each run; `delays` makes the pauses in seconds from the first failure on.
    """

    def __init__(
        self,
        database: Database,
        settings: AlertmanagerSettings,
        context: AlertContext,
        measure: Callable[[str, Holding], None],
        delays: Callable[[], Iterator[float]],
    ) -> None:
        self._problems = OpenProblems(database, context)
        self._wait_s = settings.every_s / 2  # one that hangs must not hold back the next look at problems
        self._database = database
        self._term: Term | None = None
        self._measure = measure
        self._delays = delays
        self._lanes = [
            _Lane(
                AlertmanagerTarget(database, AlertmanagerGateway(url, settings), settings, self._problems.alert),
                ThreadPoolExecutor(1, thread_name_prefix="alertmanager"),
                delays(),
            )
            for url in settings.urls
        ]

    def run(self, term: Term, now: datetime) -> PostResult:
        """Post what is due everywhere. `now` is the server's time.

        An Alertmanager that takes longer than half the interval goes on in its thread, and a later run collects its
        result.
        Raises `Transient` or `ConfigError` after all were tried, if one is down, refuses the credentials, or pauses.
        """
        wanted = self._problems.look(now)
        if self._term is not term:
            end_silences_of_others(self._database, [lane.target.url for lane in self._lanes], term, now)
            self._term = term
        late = [self._submit(lane, wanted, term, now) for lane in self._lanes]
        wait([lane.running for lane in self._lanes if lane.running is not None], self._wait_s)
        found = [*late, *(self._collect(lane, now) for lane in self._lanes)]
        for lane in self._lanes:
            self._measure(lane.target.url, lane.target.holding())
        errors = [one for one in found if isinstance(one, RagtideError)]
        if errors:
            kind = ConfigError if any(isinstance(one, ConfigError) for one in errors) else Transient
            raise kind("; ".join(str(one) for one in errors))
        return sum((one for one in found if isinstance(one, PostResult)), PostResult())

    def close(self) -> None:
        """Wait for posts that run, and release the connections."""
        for lane in self._lanes:
            lane.thread.shutdown()
            lane.target.close()

    def _submit(self, lane: _Lane, wanted: WantedAlerts, term: Term, now: datetime) -> PostResult | RagtideError | None:
        """Start a round unless one runs or a pause goes on; return the result of one that ended meanwhile."""
        late = self._collect(lane, now)
        if lane.running is None and late is None and lane.retry_at is not None and now < lane.retry_at:
            left_s = (lane.retry_at - now).total_seconds()
            return Transient(f"{lane.target.name} failed before; next attempt in {left_s:.0f} s")
        if lane.running is None and not isinstance(late, RagtideError):
            lane.running = lane.thread.submit(lane.target.sync, wanted, term, now)
        return late

    def _collect(self, lane: _Lane, now: datetime) -> PostResult | RagtideError | None:
        """Return the result of the round that ended; None if none did."""
        if lane.running is None or not lane.running.done():
            return None
        done, lane.running = lane.running, None
        try:
            result = done.result()
        except RagtideError as error:
            asked_s = error.retry_after_s if isinstance(error, Busy) else 0.0
            lane.retry_at = now + timedelta(seconds=max(next(lane.delays_s), asked_s))
            return error
        lane.delays_s, lane.retry_at = self._delays(), None
        return result
