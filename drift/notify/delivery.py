"""Deliver problem events to Grafana as annotations, exactly once in effect.

A message is stored in the outbox before it is sent, and marked afterwards. The sender of an unmarked one first looks in
Grafana for the episode's tag, so that a crash or a second leader adds nothing twice. While Grafana is down it is tried
at growing intervals; so is a message that fails although Grafana answers."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ragtide.drift.notify import outbox
from ragtide.drift.notify.messages import enqueue
from ragtide.drift.notify.outbox import Backlog, Message
from ragtide.evaluators.errors import RagtideError, Refused, Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.grafana import GrafanaGateway

logger = logging.getLogger(__name__)

_MAX_FAILED = 3  # messages that fail although Grafana answers, before the others wait for the next run


@dataclass(slots=True)
class DeliveryResult:
    """The number of problems opened and closed in Grafana in this run, and of messages that it refused.

    `failed` are ids of messages that failed although Grafana answers.
    """

    opened: int = 0
    closed: int = 0
    refused: int = 0
    failed: list[str] = field(default_factory=list)
    attempted: int = field(default=0, compare=False)


def deliver(
    database: Database,
    grafana: GrafanaGateway,
    epoch: int,
    clock: Callable[[], datetime],
    backing_off: Collection[str] = (),
    group_wait: timedelta = timedelta(),
) -> DeliveryResult:
    """Send the events of problems that are not muted to Grafana, in the order in which they happened.

    New problems wait for `group_wait`. At most the oldest `outbox.MOST`; the next run goes on. A message that
    Grafana refuses for its content is marked as refused and blocks nothing. A message that fails although Grafana
    answers blocks later ones of its episode only; so do the ids of `backing_off`, which are not tried. Stops if a
    newer leader than `epoch` was elected. Raises `Transient` or `ConfigError` if Grafana or the database is down or
    rejects the credentials.
    """
    enqueue(database, epoch, clock(), group_wait)
    result = DeliveryResult()
    blocked: set[str] = set()  # episodes with an earlier message that is not sent yet
    for message in outbox.pending(database):
        if message.thread in blocked or message.message_id in backing_off:
            blocked.add(message.thread)
            continue
        if _is_superseded(database, epoch):
            logger.info("notifications stop: a newer leader than epoch %d was elected", epoch)
            break
        result.attempted += 1
        try:
            external_id = _send(grafana, message)
        except Transient as error:
            outbox.mark(database, message, epoch, "pending", why=str(error))
            if not _answers(grafana):
                raise
            logger.warning(
                "notification %s of problem %s failed and will be retried: %s", message.action, message.thread, error
            )
            result.failed.append(message.message_id)
            blocked.add(message.thread)
            if len(result.failed) == _MAX_FAILED:
                break
            continue
        except Refused as error:
            logger.error("Grafana refused notification %s of problem %s: %s", message.action, message.thread, error)
            outbox.mark(database, message, epoch, "refused", why=str(error))
            result.refused += 1
            continue
        outbox.mark(database, message, epoch, "sent", external_id=external_id)
        result.opened += message.action == "open"
        result.closed += message.action == "close"
    return result


def _send(grafana: GrafanaGateway, message: Message) -> str:
    """Create or update the episode's one annotation; return its id, empty if a person deleted it."""
    found = [each.id for each in grafana.find_annotations(message.identity)]
    if found and grafana.patch_annotation(found[0], text=message.text, tags=message.tags, end=message.end):
        _delete(grafana, found[1:])
        return str(found[0])
    if message.action != "open":
        return ""
    created = grafana.annotate(text=message.text, tags=message.tags, start=message.start, end=message.end)
    # An old leader that does not know yet that it was replaced may have done the same between our two calls.
    first, *duplicates = sorted({created, *(each.id for each in grafana.find_annotations(message.identity))})
    _delete(grafana, duplicates)
    return str(first)


def _answers(grafana: GrafanaGateway) -> bool:
    """Whether Grafana is up, so that the message is at fault."""
    try:
        grafana.check()
    except Transient:
        return False
    return True


def _delete(grafana: GrafanaGateway, annotations: Iterable[int]) -> None:
    for annotation in annotations:
        grafana.delete_annotation(annotation)


def _is_superseded(database: Database, epoch: int) -> bool:
    return int(database.rows("SELECT max(epoch) AS newest FROM leaders")[0]["newest"]) > epoch


@dataclass(slots=True)
class _Backoff:
    """When a message is tried again, and the delays after that."""

    retry_at: datetime
    delays_s: Iterator[float]


class DeliveryJob:
    """Deliver at intervals; remembers when to retry.

    `measure` gets the backlog after each run; `delays` makes the pauses in seconds, from the first failure on.
    """

    def __init__(
        self,
        database: Database,
        grafana: GrafanaGateway,
        measure: Callable[[Backlog], None],
        delays: Callable[[], Iterator[float]],
        group_wait: timedelta = timedelta(),
    ) -> None:
        self._database = database
        self._grafana = grafana
        self._measure = measure
        self._delays = delays
        self._group_wait = group_wait
        self._delays_s = delays()
        self._retry_at: datetime | None = None
        self._backoffs: dict[str, _Backoff] = {}  # by message id

    def run(self, epoch: int, now: datetime) -> DeliveryResult:
        """Deliver pending messages and measure the backlog. `now` is the server's time.

        Raises as `deliver` does, and `Transient` during a pause.
        """
        try:
            if self._retry_at is not None and now < self._retry_at:
                enqueue(self._database, epoch, now, self._group_wait)
                left_s = (self._retry_at - now).total_seconds()
                raise Transient(f"notifications wait after a failure; next attempt in {left_s:.0f} s")
            return self._send(epoch, now)
        finally:
            self._measure(outbox.backlog(self._database, now))

    def _send(self, epoch: int, now: datetime) -> DeliveryResult:
        backing_off = {message for message, backoff in self._backoffs.items() if now < backoff.retry_at}
        try:
            result = deliver(self._database, self._grafana, epoch, lambda: now, backing_off, self._group_wait)
        except RagtideError:
            self._retry_at = now + timedelta(seconds=next(self._delays_s))
            raise
        self._delays_s, self._retry_at = self._delays(), None
        failed = {message: self._backoffs.get(message) or _Backoff(now, self._delays()) for message in result.failed}
        for backoff in failed.values():
            backoff.retry_at = now + timedelta(seconds=next(backoff.delays_s))
        self._backoffs = {message: self._backoffs[message] for message in backing_off} | failed
        return result
