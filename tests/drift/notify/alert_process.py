"""A leader's alert job as a process that may kill itself, forked from a server that has everything imported."""

import multiprocessing
import os
from datetime import timedelta
from itertools import repeat

from ragtide.drift.jobs import server_time
from ragtide.drift.leadership import elect
from ragtide.drift.notify.alertmanager import AlertmanagerJob
from ragtide.sinks.alertmanager import AlertmanagerGateway
from ragtide.sinks.alertmanager_settings import AlertmanagerSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.settings import ClickHouseSettings
from tests.drift.notify.alert_scene import CONTEXT
from tests.drift.notify.delivery_process import Point, arm, outcome

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload([__name__, "requests", "clickhouse_connect.driver.client", "pandas", "re2"])

# The problem that opened is stored and posted in a first round, the end of another is posted and stored in it as well.
POINTS = {
    "nothing stored": Point(Database, "insert", nth=2),  # the first one is the election's
    "stored, not posted": Point(Database, "insert", after=True, nth=2),
    "about to post": Point(AlertmanagerGateway, "post"),
    "posted, the end not stored": Point(AlertmanagerGateway, "post", after=True),
    "posted, about to store the end": Point(Database, "insert", nth=3),
    "posted and stored": Point(Database, "insert", after=True, nth=3),
    "about to read silences": Point(AlertmanagerGateway, "silences"),
}


def exit_status(clickhouse: ClickHouseSettings, settings: AlertmanagerSettings, point: str = "") -> int:
    """One run, to the end or to that point; the exit status, or the negative number of the signal."""
    return outcome(_SERVER.Process(target=_run, args=(clickhouse, settings, point), daemon=True))


def _run(clickhouse: ClickHouseSettings, settings: AlertmanagerSettings, point: str) -> None:
    if point:
        arm(POINTS[point])
    database = Database(clickhouse)
    term = elect(database, str(os.getpid()))
    job = AlertmanagerJob(database, settings, CONTEXT, lambda *_: None, lambda: repeat(0.0))
    job.run(term, server_time(database) + timedelta(seconds=1))
    job.close()
    database.close()
