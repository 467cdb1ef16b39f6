"""A leader's announcing job as a process that may kill itself, forked from a server that has everything imported."""

import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.process import BaseProcess
from typing import Any

from ragtide.drift.leadership import elect
from ragtide.drift.notify.annotations import AnnotationChannel, AnnotationSender
from ragtide.drift.notify.delivery import Target, deliver
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.grafana import GrafanaGateway
from ragtide.sinks.settings import ClickHouseSettings, GrafanaSettings

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload([__name__, "grafana_api.grafana_api", "clickhouse_connect.driver.client", "pandas"])


@dataclass(frozen=True)
class Point:
    """Just before, or just `after`, the `nth` call of a step."""

    owner: type
    step: str
    after: bool = False
    nth: int = 1


def _outbox(nth: int, *, after: bool) -> Point:
    return Point(Database, "insert", after, nth + 1)  # the first one is the election's


POINTS = {
    "nothing written down": _outbox(1, after=False),
    "written down, not sent": _outbox(1, after=True),
    "looked for, not sent": Point(GrafanaGateway, "annotate"),
    "sent, not looked for again": Point(GrafanaGateway, "annotate", after=True),
    "sent, not marked": _outbox(2, after=False),
    "marked, the next one not sent": _outbox(2, after=True),
    "found, not closed": Point(GrafanaGateway, "patch_annotation"),
    "closed, not marked": Point(GrafanaGateway, "patch_annotation", after=True),
    "all sent, the last one not marked": _outbox(5, after=False),
}


def exit_status(clickhouse: ClickHouseSettings, grafana: GrafanaSettings, point: str = "") -> int:
    """One run, to the end or to that point; the exit status, or the negative number of the signal."""
    return outcome(_SERVER.Process(target=_run, args=(clickhouse, grafana, point), daemon=True))


def outcome(process: BaseProcess) -> int:
    """Run the process; its exit status, or the negative number of the signal."""
    process.start()
    process.join(60)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise AssertionError("the process stood still")
    return process.exitcode


def _run(clickhouse: ClickHouseSettings, grafana: GrafanaSettings, point: str) -> None:
    if point:
        arm(POINTS[point])
    database = Database(clickhouse)
    term = elect(database, str(os.getpid()))
    deliver(
        database,
        Target(AnnotationSender(GrafanaGateway(grafana)), AnnotationChannel()),
        term.epoch,
        lambda: datetime.now(UTC),
    )
    database.close()


def arm(point: Point) -> None:
    """Kill this process at that point."""
    step: Callable[..., Any] = getattr(point.owner, point.step)
    calls = itertools.count(1)

    def wrapped(*arguments: Any, **named: Any) -> Any:
        due = next(calls) == point.nth
        if due and not point.after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = step(*arguments, **named)
        if due:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(point.owner, point.step, wrapped)
