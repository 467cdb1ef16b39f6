"""Webhooks and their receiver upon a database, as the leaders' jobs deliver to them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import SecretStr

from ragtide.drift.insights.model import InsightRow
from ragtide.drift.notify.delivery import DeliveryResult, Target, deliver
from ragtide.drift.notify.webhooks import WebhookChannel, WebhookSender
from ragtide.drift.problems.model import EventRow
from ragtide.drift.routes import Route
from ragtide.drift.webhook_settings import Webhook
from ragtide.sinks.clickhouse.database import Database
from tests.dashboards.sample_rows import APP, NOON
from tests.infra.webhook_receiver import SECRET, Receiver

ROUTES = (Route(app=APP, owner="search-team", labels={"channel": "#search"}),)
SEVERE = {"severity": "critical"}


def webhook(url: str, **settings: Any) -> Webhook:
    return Webhook(**{"name": "pager", "url": SecretStr(url), "secret": SecretStr(SECRET), **settings})


def target(hook: Webhook) -> Target:
    channel = WebhookChannel(hook, ROUTES)
    return Target(WebhookSender(hook), channel, channel)


def insight(id_: str, **other: Any) -> InsightRow:
    row = InsightRow(
        insight_id=id_, type="weak_point", app=APP, environment="prod", description="helpdesk: 40 of 50 failed.",
        attributes='{"share": 0.8}', examples=("t1",), actions=("Read them.",), period_start=NOON,
        period_end=NOON + timedelta(days=1), epoch=1,
    )  # fmt: skip
    return row._replace(**other)


class Site:
    """A webhook, its receiver and what happens."""

    def __init__(self, database: Database, receiver: Receiver) -> None:
        self.database, self.receiver = database, receiver

    def happened(self, *events: EventRow) -> None:
        self.database.insert("problem_events", list(events))

    def found(self, *insights: InsightRow) -> None:
        self.database.insert("insights", list(insights))

    def run(self, epoch: int = 1, days: float = 0, **settings: Any) -> DeliveryResult:
        at = datetime.now(UTC) + timedelta(days=days)
        return deliver(self.database, target(webhook(self.receiver.url, **settings)), epoch, lambda: at)

    def states(self) -> list[tuple[str, str]]:
        rows = self.database.rows("SELECT message_id, state FROM outbox FINAL ORDER BY message_id")
        return [(row["message_id"], row["state"]) for row in rows]


def types(told: Iterable[tuple[str, str]]) -> list[str]:
    return [type_ for type_, _ in told]
