"""Deliver messages to one target: in order per problem, at growing intervals while it fails.

A message is stored in the outbox before it is sent, and marked afterwards. So one may be sent twice after a crash; its
id stays the same. Each target has a delivery of its own, so that one that is down holds back no other.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ragtide.drift.notify import outbox
from ragtide.drift.notify.channel import Channel, InsightChannel, Sender
from ragtide.drift.notify.insight_messages import enqueue_insights
from ragtide.drift.notify.messages import enqueue
from ragtide.drift.notify.outbox import Backlog, Message
from ragtide.evaluators.errors import ConfigError, RagtideError, Refused, Transient
from ragtide.sinks.clickhouse.database import Database

logger = logging.getLogger(__name__)

_MAX_FAILED = 3  # messages that fail although the target answers, before the others wait for the next run


@dataclass(frozen=True, slots=True)
class Target:
    """A target's channel and sender. `insights`: the same channel, if it gets insights."""

    sender: Sender
    channel: Channel | None = None
    insights: InsightChannel | None = None

    @property
    def name(self) -> str:
        """The target's name in the outbox."""
        channel = self.channel or self.insights
        assert channel is not None, "a target has at least one channel"
        return channel.name


@dataclass(slots=True)
class DeliveryResult:
    """The number of problems or insights opened and closed in this run, and of messages refused or given up.

    `failed` are ids of messages that failed although the target answers.
    """

    opened: int = 0
    closed: int = 0
    refused: int = 0
    failed: list[str] = field(default_factory=list)
    given_up: int = 0
    attempted: int = field(default=0, compare=False)


def deliver(
    database: Database,
    target: Target,
    epoch: int,
    clock: Callable[[], datetime],
    backing_off: Collection[str] = (),
    group_wait: timedelta = timedelta(),
) -> DeliveryResult:
    """Store the target's new messages, and send those that wait, in the order in which the changes happened.

    New problems wait for `group_wait`. At most the oldest `outbox.MOST`; the next run goes on. A message that the
    target refuses for its content is marked as refused and blocks nothing. A message that fails although the target
    answers blocks later ones of its problem only; so do the ids of `backing_off`, which are not tried. Stops if a
    newer leader than `epoch` was elected. Raises `Transient` or `ConfigError` if the target or the database is down or
    rejects the credentials.
    """
    _enqueue(database, target, epoch, clock(), group_wait)
    result = DeliveryResult()
    waiting = outbox.pending(database, target.name)
    if not waiting:
        return result
    with ExitStack() as stack:
        try:
            stack.enter_context(target.sender.connected())
        except (Transient, ConfigError) as error:
            outbox.mark(database, waiting[0], epoch, "pending", why=str(error))
            raise
        _send_all(database, target, epoch, clock, waiting, backing_off, result)
    return result


def _send_all(
    database: Database,
    target: Target,
    epoch: int,
    clock: Callable[[], datetime],
    waiting: Sequence[Message],
    backing_off: Collection[str],
    result: DeliveryResult,
) -> None:
    blocked: set[str] = set()  # problems with an earlier message that is not sent yet
    for position, message in enumerate(waiting):
        if message.subject in blocked or message.message_id in backing_off:
            blocked.add(message.subject)
            continue
        if _is_superseded(database, epoch):
            logger.info("notifications stop: a newer leader than epoch %d was elected", epoch)
            return
        result.attempted += 1
        try:
            external_id = target.sender.send(message)
        except (Transient, ConfigError) as error:
            expired = _is_expired(target, message, clock())
            outbox.mark(database, message, epoch, "gave_up" if expired else "pending", why=str(error))
            result.given_up += expired
            if isinstance(error, ConfigError) or not target.sender.answers():
                later = [one for one in waiting[position + 1 :] if _is_expired(target, one, clock())]
                outbox.give_up(database, later, epoch, str(error))
                raise
            logger.warning(
                "notification %s of %s to %s failed and %s: %s",
                message.action,
                message.thread,
                target.name,
                "was given up" if expired else "will be retried",
                error,
            )
            if expired:
                continue
            result.failed.append(message.message_id)
            blocked.add(message.subject)
            if len(result.failed) == _MAX_FAILED:
                return
            continue
        except Refused as error:
            logger.error("%s refused notification %s of %s: %s", target.name, message.action, message.thread, error)
            outbox.mark(database, message, epoch, "refused", why=str(error))
            result.refused += 1
            continue
        outbox.mark(database, message, epoch, "sent", external_id=external_id)
        result.opened += message.action == "open"
        result.closed += message.action == "close"


def _enqueue(database: Database, target: Target, epoch: int, now: datetime, group_wait: timedelta) -> None:
    if target.channel is not None:
        enqueue(database, target.channel, epoch, now, group_wait)
    if target.insights is not None:
        enqueue_insights(database, target.insights, epoch, now)


def _is_expired(target: Target, message: Message, now: datetime) -> bool:
    """Whether the message has been tried for long enough."""
    retry_for = target.sender.retry_for
    return retry_for is not None and now - message.written_at > retry_for


def _is_superseded(database: Database, epoch: int) -> bool:
    return int(database.rows("SELECT max(epoch) AS newest FROM leaders")[0]["newest"]) > epoch


@dataclass(slots=True)
class _Backoff:
    """When a message is tried again, and the delays after that."""

    retry_at: datetime
    delays_s: Iterator[float]


class DeliveryJob:
    """Deliver to one target at intervals; remembers when to retry.

    `measure` gets the backlog after each run; `delays` makes the pauses in seconds, from the first failure on. A target
    that asks for a longer pause (`Transient` with `retry_after_s`) gets it.
    """

    def __init__(
        self,
        database: Database,
        target: Target,
        measure: Callable[[Backlog], None],
        delays: Callable[[], Iterator[float]],
        group_wait: timedelta = timedelta(),
    ) -> None:
        self._database = database
        self._target = target
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
                _enqueue(self._database, self._target, epoch, now, self._group_wait)
                left_s = (self._retry_at - now).total_seconds()
                raise Transient(f"notifications wait after a failure; next attempt in {left_s:.0f} s")
            return self._send(epoch, now)
        finally:
            self._measure(outbox.backlog(self._database, self._target.name, now))

    def _send(self, epoch: int, now: datetime) -> DeliveryResult:
        backing_off = {message for message, backoff in self._backoffs.items() if now < backoff.retry_at}
        try:
            result = deliver(self._database, self._target, epoch, lambda: now, backing_off, self._group_wait)
        except RagtideError as error:
            asked_s = float(getattr(error, "retry_after_s", 0.0))
            self._retry_at = now + timedelta(seconds=max(next(self._delays_s), asked_s))
            raise
        self._delays_s, self._retry_at = self._delays(), None
        failed = {message: self._backoffs.get(message) or _Backoff(now, self._delays()) for message in result.failed}
        for backoff in failed.values():
            backoff.retry_at = now + timedelta(seconds=next(backoff.delays_s))
        self._backoffs = {message: self._backoffs[message] for message in backing_off} | failed
        return result
