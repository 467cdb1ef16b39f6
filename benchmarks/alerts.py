"""Keeping 10,000 open problems alive at an Alertmanager, against a plain loop that serialises and posts the same JSON.

python -m benchmarks.alerts [--problems 10000] [--apps 100]    needs extra `local`, and prometheus-alertmanager

Processor time of this process, without Alertmanager and the database. `first` reads all problems, groups them, makes
their alerts, stores and posts them. `again` posts them again, as every `alertmanager.repost_s`. `look` is one of those
in between, every `alertmanager.every_s`: `idle` finds nothing new, `busy` finds that the problems of one application in
100 have new figures, as all have every five minutes. A minute is one `again`, and busy looks.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import repeat
from pathlib import Path

import msgspec
import requests

from ragtide.drift.jobs import server_time
from ragtide.drift.leadership import elect
from ragtide.drift.notify.alert import AlertContext
from ragtide.drift.notify.alertmanager import AlertmanagerJob
from ragtide.drift.routes import Route
from ragtide.sinks.alertmanager import AlertmanagerGateway, PostableAlert
from ragtide.sinks.alertmanager_settings import AlertmanagerSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.migrate import migrate
from ragtide.sinks.settings import RetentionSettings
from tests.infra.alertmanager import Receiver, config_for, running

RUNS = 5
LARGEST_SHARE = 0.1  # of a core
_APART_S = 700  # between two problems of an application


def plant(database: Database, problems: int, apps: int) -> None:
    """Problems that opened an hour ago and earlier and were updated since, spread over applications.

    Any may explain another one, but no two of an application began together.
    """
    for event, ago_s in (("opened", f"3600 + intDiv(number, {apps}) * {_APART_S}"), ("updated", "120")):
        database.command(
            "INSERT INTO problem_events (problem_id, event_id, event, episode, at, app, environment, model, aspect, "
            "metric, kind, type, severity, description, attributes, examples, actions, recorded_at) SELECT "
            f"lower(hex(sipHash64(number))), '{event}', '{event}', 1, now64(3) - toIntervalSecond({ago_s}) AS opened, "
            f"concat('app-', toString(number % {apps})), 'prod', 'm1', 'level', "
            "concat('quality.m', toString(number)), 'threshold', 'accuracy', 'warning', "
            "repeat('It fell from 0.9 to 0.2 on 40 traces. ', 5), "
            '\'{"value": 0.2, "baseline": 0.9, "threshold": 0.7, "sample_size": 400}\', '
            "arrayMap(one -> concat('trace-', toString(one)), range(10)), ['Look at the prompt.'], opened "
            f"FROM numbers({problems})"
        )


def update(database: Database, number: int, apps: int, run: int) -> None:
    """One application's problems have new figures."""
    database.command(
        "INSERT INTO problem_events SELECT * REPLACE ("
        f"'updated-{run}' AS event_id, 'updated' AS event, now64(3) AS at, now64(3) AS recorded_at) "
        f"FROM (SELECT * FROM problem_events FINAL WHERE event = 'opened' AND app = 'app-{number % apps}')"
    )


def cpu_s(work: Callable[[], object]) -> float:
    """Processor time of this process, all its threads."""
    began = time.process_time()
    work()
    return time.process_time() - began


def plain_loop(url: str, posted: Sequence[Sequence[PostableAlert]]) -> Callable[[], None]:
    """Serialise and post the same alerts in the same batches."""
    batches = [msgspec.to_builtins(batch) for batch in posted]
    session = requests.Session()

    def post() -> None:
        for batch in batches:
            session.post(f"{url}/api/v2/alerts", json=batch, timeout=60).raise_for_status()

    return post


@contextmanager
def recorded() -> Iterator[list[Sequence[PostableAlert]]]:
    """Keep what is posted meanwhile."""
    kept: list[Sequence[PostableAlert]] = []
    post = AlertmanagerGateway.post

    def keeping(self: AlertmanagerGateway, alerts: Sequence[PostableAlert]) -> datetime | None:
        kept.append(alerts)
        return post(self, alerts)

    AlertmanagerGateway.post = keeping  # type: ignore[method-assign]  # restored below
    try:
        yield kept
    finally:
        AlertmanagerGateway.post = post  # type: ignore[method-assign]  # as it was


def main() -> int:
    """0 if a minute of it takes a tenth of a core at most."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=10_000)
    parser.add_argument("--apps", type=int, default=100)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedClickHouse(Path(folder) / "clickhouse") as server,
        Receiver() as receiver,
        running(
            Path(folder) / "alertmanager", config_for(receiver, group_wait="30s", group_interval="5m")
        ) as alertmanager,
    ):
        database = Database(server.settings.model_copy(update={"database": "bench", "timeout_s": 600}))
        migrate(database, RetentionSettings())
        plant(database, options.problems, options.apps)
        settings = AlertmanagerSettings(urls=(alertmanager.url,), every_s=60)
        context = AlertContext([Route(app="app-1*", owner="one"), Route(owner="others")])
        job = AlertmanagerJob(database, settings, context, lambda *_: None, lambda: repeat(1.0))
        term, now = elect(database, "bench"), server_time(database)
        at = [now]

        def run(later_s: float) -> None:
            at[0] += timedelta(seconds=later_s)
            job.run(term, at[0])

        def busy() -> None:
            run(3)

        first = cpu_s(lambda: run(0))
        again, idle, updated = [], [], []
        for number in range(RUNS):
            again.append(cpu_s(lambda: run(61)))
            idle.append(cpu_s(lambda: run(3)))
            update(database, number, options.apps, number)
            updated.append(cpu_s(busy))
        with recorded() as posted:
            run(61)
        plain = plain_loop(alertmanager.url, posted)
        loop = statistics.median(cpu_s(plain) for _ in range(RUNS))
        job.close()
        database.close()
    reposted, quiet, loud = (statistics.median(some) for some in (again, idle, updated))
    looks = 60 / AlertmanagerSettings().every_s
    share = (reposted + looks * loud) / 60
    sys.stdout.write(
        f"{options.problems} open problems of {options.apps} applications, seconds of the processor\n"
        f"first {first:.2f}, again {reposted:.3f}, look idle {quiet:.4f}, look busy {loud:.3f}\n"
        f"plain loop {loop:.3f}: again takes {reposted / loop:.2f} times as long\n"
        f"share of a core over a minute: {share:.3f} (at most {LARGEST_SHARE})\n"
    )
    return 0 if share <= LARGEST_SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
