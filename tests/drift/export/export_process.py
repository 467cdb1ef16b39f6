"""One run of an export as a process that may kill itself, forked from a server that has everything imported."""

import multiprocessing
from datetime import datetime

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.otlp_http import OtlpHttpClient
from ragtide.sinks.settings import ClickHouseSettings
from tests.drift.export.scene import EPOCH, REGISTRY, HttpSender, export_of
from tests.drift.notify.delivery_process import Point, arm, outcome

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload([__name__, "aiohttp", "clickhouse_connect.driver.client", "pandas"])


POINTS = {
    "nothing sent": Point(OtlpHttpClient, "send"),
    "sent, the cursor not stored": Point(OtlpHttpClient, "send", after=True),
    "the cursor stored, the next batch not sent": Point(Database, "insert", after=True),
    "the second batch sent, the cursor not stored": Point(OtlpHttpClient, "send", after=True, nth=2),
    "all sent, the last cursor not stored": Point(Database, "insert", nth=4),
}


def exit_status(clickhouse: ClickHouseSettings, url: str, now: datetime, point: str = "") -> int:
    """One run, to the end or to that point; the exit status, or the negative number of the signal."""
    return outcome(_SERVER.Process(target=_run, args=(clickhouse, url, now, point), daemon=True))


def _run(clickhouse: ClickHouseSettings, url: str, now: datetime, point: str) -> None:
    if point:
        arm(POINTS[point])
    database = Database(clickhouse)
    export_of(database, HttpSender(url), batch_events=2).run(REGISTRY, EPOCH, now)
    database.close()
