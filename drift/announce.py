"""What happens to problems goes to Grafana as annotations, once each: through the table `outbox`, found again by a tag.

A message is what one event (opened, reopened, resolved) asks of Grafana, and has that event's id. It is written before
it is sent and marked afterwards. Whoever finds it unmarked looks in Grafana for the episode's tag before it adds
anything, so a process that dies in between, or a second leader, adds nothing twice.
"""

import html
import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from drift import outbox
from drift.outbox import GRAFANA, Action, Message
from drift.problems import EventRow
from evaluators.errors import Refused, Transient
from sinks.clickhouse.database import Database
from sinks.grafana import GrafanaGateway

logger = logging.getLogger(__name__)

_ACTIONS: dict[str, Action] = {"opened": "open", "reopened": "open", "resolved": "close"}
OLDEST = timedelta(days=7)  # a Grafana that is configured later does not get years of history
_LONGEST_TAG = 80  # bytes; Grafana takes 100 a tag, and 500 for all tags of an annotation
_SHORTEST_REGION = timedelta(seconds=1)  # without an extent it is a point, and closing it would show nothing


@dataclass(slots=True)
class Announced:
    """How many messages were sent in this run: problems opened and closed, and messages that Grafana refused."""

    opened: int = 0
    closed: int = 0
    refused: int = 0


def announce(database: Database, grafana: GrafanaGateway, epoch: int, clock: Callable[[], datetime]) -> Announced:
    """Every event of a problem that is not muted is in Grafana afterwards, in the order in which they happened.

    The oldest `outbox.MOST` where there are more; the next run goes on. What Grafana refuses for its content is set
    aside with its reason and holds nothing back. Does nothing where a newer leader than `epoch` was elected. Raises
    `Transient` or `ConfigError` where Grafana or the database is away or refuses us; what is left is sent by the next
    run.
    """
    enqueue(database, epoch, clock())
    done = Announced()
    for message in outbox.pending(database):
        if _superseded(database, epoch):
            logger.info("announcements: epoch %d is over; a newer leader goes on", epoch)
            break
        try:
            external_id = _send(grafana, message)
        except Transient as error:
            outbox.mark(database, message, epoch, "pending", why=str(error))
            raise
        except Refused as error:
            logger.error("announcements: %s of problem %s is given up: %s", message.action, message.subject, error)
            outbox.mark(database, message, epoch, "refused", why=str(error))
            done.refused += 1
            continue
        outbox.mark(database, message, epoch, "sent", external_id=external_id)
        done.opened += message.action == "open"
        done.closed += message.action == "close"
    return done


def enqueue(database: Database, epoch: int, now: datetime) -> None:
    """Of the events that ask for a message and have none yet, the oldest `outbox.MOST` have one, to be sent."""
    events = database.rows(
        f"SELECT {', '.join(EventRow._fields)} FROM problem_events FINAL "
        "WHERE event IN {events:Array(String)} AND recorded_at >= {since:DateTime64(3, 'UTC')} "
        "AND concat({target:String}, ':', event_id) NOT IN (SELECT message_id FROM outbox) "
        "AND (problem_id, episode) NOT IN (SELECT problem_id, episode FROM problems WHERE muted_by != '') "
        "ORDER BY at LIMIT {most:UInt32}",
        {"events": list(_ACTIONS), "since": now - OLDEST, "target": GRAFANA, "most": outbox.MOST},
    )
    outbox.write_down(database, [message_of(EventRow(**event), now) for event in events], epoch)


def message_of(event: EventRow, now: datetime) -> Message:
    """What an event asks for, written down now; the same event always asks for the same."""
    attributes = json.loads(event.attributes or "{}")
    action = _ACTIONS[event.event]
    since = attributes.get("since")
    start = min(datetime.fromisoformat(since) if since else event.at, event.at)
    subject = f"{event.problem_id}:{event.episode}"
    named = {"app": event.app, "environment": event.environment, "metric": event.metric}
    named |= {"type": event.type, "severity": event.severity, "id": subject}
    tags = ["ragwatch", "problem", *(_tag(name, value) for name, value in named.items() if value)]
    return Message(
        message_id=f"{GRAFANA}:{event.event_id}",
        action=action,
        subject=subject,
        at=event.at,
        start=start,
        end=max(event.at, start + _SHORTEST_REGION),
        text=_text(event),
        tags=(*tags, *(["resolved"] if action == "close" else [])),
        written_at=now,
    )


def _send(grafana: GrafanaGateway, message: Message) -> str:
    """Bring the episode's one annotation to how it should look; its id, empty where a person took it away."""
    found = [each.id for each in grafana.find_annotations(message.identity)]
    if found and grafana.patch_annotation(found[0], text=message.text, tags=message.tags, end=message.end):
        _drop(grafana, found[1:])
        return str(found[0])
    if message.action == "close":
        return ""
    made = grafana.annotate(text=message.text, tags=message.tags, start=message.start, end=message.end)
    # An old leader that does not know yet that it is none may have done the same between our two calls.
    first, *doubled = sorted({made, *(each.id for each in grafana.find_annotations(message.identity))})
    _drop(grafana, doubled)
    return str(first)


def _drop(grafana: GrafanaGateway, annotations: Iterable[int]) -> None:
    for annotation in annotations:
        grafana.delete_annotation(annotation)


def _superseded(database: Database, epoch: int) -> bool:
    return int(database.rows("SELECT max(epoch) AS newest FROM leaders")[0]["newest"]) > epoch


def _text(event: EventRow) -> str:
    """For people. Grafana shows HTML: names that applications chose must not become some."""
    says = [f"{event.severity} {event.type}: {event.description}".strip(), *event.actions]
    says += [f"Examples: {', '.join(event.examples)}"] if event.examples else []
    return "\n".join(html.escape(line, quote=False) for line in says)


def _tag(name: str, value: str) -> str:
    return f"{name}:{value}".encode()[:_LONGEST_TAG].decode(errors="ignore")
