"""The job that empties the outbox. While Grafana is away it is asked ever more rarely, and messages still queue up.

A message on which it fails though it answers is tried again ever more rarely by itself.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from drift import outbox
from drift.announce import Announced, announce
from drift.messages import enqueue
from evaluators.errors import RagwatchError, Transient
from sinks.clickhouse.database import Database
from sinks.grafana import GrafanaGateway
from stream.telemetry.registry import Telemetry


@dataclass(slots=True)
class _Rest:
    """When a message is tried again, and how long it rests after that."""

    again_at: datetime
    pauses_s: Iterator[float]


class Announcing:
    """Remembers from run to run when to ask again. `delays`: the pauses in seconds, from the first failure on."""

    def __init__(
        self,
        database: Database,
        grafana: GrafanaGateway,
        telemetry: Telemetry,
        delays: Callable[[], Iterator[float]],
    ) -> None:
        self._database = database
        self._grafana = grafana
        self._telemetry = telemetry
        self._delays = delays
        self._pauses_s = delays()
        self._again_at: datetime | None = None
        self._rests: dict[str, _Rest] = {}  # by message id

    def run(self, epoch: int, now: datetime) -> Announced:
        """What waits is sent, and how much is left is measured. Raises as `announce` does, `Transient` in a pause.

        `now` is the server's time.
        """
        try:
            if self._again_at is not None and now < self._again_at:
                enqueue(self._database, epoch, now)
                left_s = (self._again_at - now).total_seconds()
                raise Transient(f"announcements wait after a failure: Grafana is asked again in {left_s:.0f} s")
            return self._send(epoch, now)
        finally:
            self._measure(now)

    def _send(self, epoch: int, now: datetime) -> Announced:
        resting = {message for message, rest in self._rests.items() if now < rest.again_at}
        try:
            done = announce(self._database, self._grafana, epoch, lambda: now, resting)
        except RagwatchError:
            self._again_at = now + timedelta(seconds=next(self._pauses_s))
            raise
        self._pauses_s, self._again_at = self._delays(), None
        self._rests = {message: self._rests[message] for message in resting} | self._rested(done.failed, now)
        return done

    def _rested(self, failed: Iterable[str], now: datetime) -> dict[str, _Rest]:
        pauses = {message: rest.pauses_s for message, rest in self._rests.items()}
        found = {}
        for message in failed:
            pauses_s = pauses.get(message, self._delays())
            found[message] = _Rest(now + timedelta(seconds=next(pauses_s)), pauses_s)
        return found

    def _measure(self, now: datetime) -> None:
        found = outbox.backlog(self._database, now)
        self._telemetry.outbox_waiting.set(found.waiting)
        self._telemetry.outbox_failing.set(found.failing)
        self._telemetry.outbox_oldest_seconds.set(found.oldest_s)
        self._telemetry.outbox_refused.set(found.refused)
