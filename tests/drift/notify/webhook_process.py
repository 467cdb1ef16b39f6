"""A leader's posting job as a process that may kill itself, forked from a server that has everything imported."""

import multiprocessing
import os
from datetime import UTC, datetime

from ragtide.drift.leadership import elect
from ragtide.drift.notify.delivery import deliver
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.settings import ClickHouseSettings
from ragtide.sinks.webhook import WebhookClient
from tests.drift.notify.delivery_process import Point, arm, outcome
from tests.drift.notify.webhook_site import target, webhook

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload([__name__, "aiohttp", "clickhouse_connect.driver.client", "pandas"])


def _outbox(nth: int, *, after: bool) -> Point:
    return Point(Database, "insert", after, nth + 1)  # the first one is the election's


POINTS = {
    "nothing stored": _outbox(1, after=False),
    "stored, not sent": _outbox(1, after=True),
    "sent, not marked": Point(WebhookClient, "post", after=True),
    "marked, the next one not sent": _outbox(2, after=True),
    "the second one sent, not marked": Point(WebhookClient, "post", after=True, nth=2),
    "all sent, the last one not marked": _outbox(4, after=False),
}


def exit_status(clickhouse: ClickHouseSettings, url: str, point: str = "") -> int:
    """One run, to the end or to that point; the exit status, or the negative number of the signal."""
    return outcome(_SERVER.Process(target=_run, args=(clickhouse, url, point), daemon=True))


def _run(clickhouse: ClickHouseSettings, url: str, point: str) -> None:
    if point:
        arm(POINTS[point])
    database = Database(clickhouse)
    term = elect(database, str(os.getpid()))
    deliver(database, target(webhook(url)), term.epoch, lambda: datetime.now(UTC))
    database.close()
