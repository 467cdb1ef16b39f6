"""The announcing job as its leaders run it, and a life of a problem that it tells."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from ragtide.drift.notify.annotations import AnnotationChannel, AnnotationSender
from ragtide.drift.notify.delivery import DeliveryResult, Target, deliver
from ragtide.drift.problems.model import EventRow
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.grafana import GrafanaGateway
from tests.contracts.grafana_server import GrafanaServer
from tests.dashboards.sample_rows import NOON, event

OPENED = event(
    "p1", "e1", "opened", 1, NOON, severity="critical", description="it fell from 0.9 to 0.2", actions=("Look there.",),
    examples=("t1", "t2"), attributes=json.dumps({"since": (NOON - timedelta(minutes=3)).isoformat()}),
)  # fmt: skip
UPDATED = OPENED._replace(event_id="e2", event="updated", at=NOON + timedelta(minutes=1))
RESOLVED = OPENED._replace(event_id="e3", event="resolved", at=NOON + timedelta(minutes=9), description="it is back")
REOPENED = OPENED._replace(
    event_id="e4", event="reopened", at=NOON + timedelta(minutes=12), description="it fell again"
)
RESOLVED_AGAIN = RESOLVED._replace(event_id="e5", at=NOON + timedelta(minutes=20))


class Job:
    """The announcing job as its leaders run it."""

    def __init__(self, database: Database, grafana: GrafanaServer) -> None:
        self.database, self.grafana = database, grafana

    def happened(self, *events: EventRow) -> None:
        self.database.insert("problem_events", list(events))

    def run(self, epoch: int = 1, days: float = 0, wait_s: float = 0) -> DeliveryResult:
        """So many days from now; new problems wait so many seconds."""
        gateway = GrafanaGateway(self.grafana.settings(), sleep=lambda _: None)
        wait, later = timedelta(seconds=wait_s), timedelta(days=days)
        target = annotations(gateway)
        return deliver(self.database, target, epoch, lambda: datetime.now(UTC) + later, group_wait=wait)

    def annotations(self) -> list[dict[str, Any]]:
        return list(self.grafana.state.annotations.values())

    def states(self) -> dict[str, str]:
        rows = self.database.rows("SELECT message_id, state FROM outbox FINAL ORDER BY message_id")
        return {row["message_id"]: row["state"] for row in rows}


def annotations(gateway: GrafanaGateway) -> Target:
    return Target(AnnotationSender(gateway), AnnotationChannel())


def ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)
