"""What happens to problems goes to Grafana as annotations, once each: through the table `outbox`, found again by a tag.

A message (`drift.messages`) is written before it is sent and marked afterwards. Whoever finds it unmarked looks in
Grafana for the episode's tag before it adds anything, so a process that dies in between, or a second leader, adds
nothing twice.
"""

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from drift import outbox
from drift.messages import enqueue
from drift.outbox import Message
from evaluators.errors import Refused, Transient
from sinks.clickhouse.database import Database
from sinks.grafana import GrafanaGateway

logger = logging.getLogger(__name__)

_MOST_FAILED = 3  # messages on which Grafana fails though it answers, before the others wait for the next run


@dataclass(slots=True)
class Announced:
    """How many messages were sent in this run: problems opened and closed, and messages that Grafana refused.

    `failed` are ids of those on which it failed though it answers; `tried` were taken up, whatever came of them.
    """

    opened: int = 0
    closed: int = 0
    refused: int = 0
    failed: list[str] = field(default_factory=list)
    tried: int = field(default=0, compare=False)


def announce(
    database: Database,
    grafana: GrafanaGateway,
    epoch: int,
    clock: Callable[[], datetime],
    resting: Collection[str] = (),
) -> Announced:
    """Every event of a problem that is not muted is in Grafana afterwards, in the order in which they happened.

    The oldest `outbox.MOST` where there are more; the next run goes on. What Grafana refuses for its content is set
    aside with its reason and holds nothing back. A message on which it fails though it answers, and those of `resting`
    (ids), which are not tried, hold back what is to be told of the same episode alone. Does nothing where a newer
    leader than `epoch` was elected. Raises `Transient` or `ConfigError` where Grafana or the database is away or
    refuses us; what is left is sent by the next run.
    """
    enqueue(database, epoch, clock())
    done = Announced()
    held: set[str] = set()  # episodes of which something earlier is to be told first
    for message in outbox.pending(database):
        if message.subject in held or message.message_id in resting:
            held.add(message.subject)
            continue
        if _superseded(database, epoch):
            logger.info("announcements: epoch %d is over; a newer leader goes on", epoch)
            break
        done.tried += 1
        try:
            external_id = _send(grafana, message)
        except Transient as error:
            outbox.mark(database, message, epoch, "pending", why=str(error))
            if not _answers(grafana):
                raise
            logger.warning("announcements: %s of problem %s waits: %s", message.action, message.subject, error)
            done.failed.append(message.message_id)
            held.add(message.subject)
            if len(done.failed) == _MOST_FAILED:
                break
            continue
        except Refused as error:
            logger.error("announcements: %s of problem %s is given up: %s", message.action, message.subject, error)
            outbox.mark(database, message, epoch, "refused", why=str(error))
            done.refused += 1
            continue
        outbox.mark(database, message, epoch, "sent", external_id=external_id)
        done.opened += message.action == "open"
        done.closed += message.action == "close"
    return done


def _send(grafana: GrafanaGateway, message: Message) -> str:
    """Bring the episode's one annotation to how it should look; its id, empty where a person took it away."""
    found = [each.id for each in grafana.find_annotations(message.identity)]
    if found and grafana.patch_annotation(found[0], text=message.text, tags=message.tags, end=message.end):
        _drop(grafana, found[1:])
        return str(found[0])
    if message.action != "open":
        return ""
    made = grafana.annotate(text=message.text, tags=message.tags, start=message.start, end=message.end)
    # An old leader that does not know yet that it is none may have done the same between our two calls.
    first, *doubled = sorted({made, *(each.id for each in grafana.find_annotations(message.identity))})
    _drop(grafana, doubled)
    return str(first)


def _answers(grafana: GrafanaGateway) -> bool:
    """Whether Grafana is there, and so what failed is of the message."""
    try:
        grafana.check()
    except Transient:
        return False
    return True


def _drop(grafana: GrafanaGateway, annotations: Iterable[int]) -> None:
    for annotation in annotations:
        grafana.delete_annotation(annotation)


def _superseded(database: Database, epoch: int) -> bool:
    return int(database.rows("SELECT max(epoch) AS newest FROM leaders")[0]["newest"]) > epoch
