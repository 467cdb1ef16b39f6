"""Time from a problem's opening to its notification at a receiver behind Alertmanager, without its group_wait.

python -m benchmarks.alert_delay [--problems 20] [--open 1000]    needs extra `local`, and prometheus-alertmanager

Problems open at random moments beside others that stay open; the job looks every `alertmanager.every_s`, as it does in
production. Beside it stands an alert that is posted to the same Alertmanager directly.
"""

import argparse
import random
import statistics
import sys
import tempfile
import threading
import time
from datetime import timedelta
from itertools import repeat
from pathlib import Path

from benchmarks.alerts import plant
from ragtide.drift.jobs import server_time
from ragtide.drift.leadership import elect
from ragtide.drift.notify.alert import AlertContext
from ragtide.drift.notify.alertmanager import AlertmanagerJob
from ragtide.sinks.alertmanager import AlertmanagerGateway, PostableAlert
from ragtide.sinks.alertmanager_settings import AlertmanagerSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.migrate import migrate
from ragtide.sinks.settings import RetentionSettings
from tests.infra.alertmanager import Receiver, config_for, running

LONGEST_S = 5.0
_GIVE_UP_S = 60.0


def open_problem(database: Database, problem_id: str) -> None:
    """A problem of an application of its own, so that nothing groups it."""
    database.command(
        "INSERT INTO problem_events SELECT * REPLACE ("
        f"'{problem_id}' AS problem_id, '{problem_id}' AS event_id, '{problem_id}' AS app, now64(3) AS at, "
        "now64(3) AS recorded_at) FROM (SELECT * FROM problem_events FINAL WHERE event = 'opened' LIMIT 1)"
    )


def delay_s(receiver: Receiver, problem_id: str, began: float) -> float:
    """Seconds until the receiver hears of the problem."""
    while problem_id not in receiver.firing():
        if time.monotonic() - began > _GIVE_UP_S:
            raise TimeoutError(f"no notification of {problem_id}")
        time.sleep(0.01)
    return time.monotonic() - began


def direct_s(gateway: AlertmanagerGateway, database: Database, receiver: Receiver, problem_id: str) -> float:
    """The same of an alert that is posted directly."""
    now = server_time(database)
    labels = {"alertname": "Direct", "app": problem_id, "severity": "warning", "problem_id": problem_id}
    began = time.monotonic()
    gateway.post([PostableAlert(labels, {}, now, now + timedelta(minutes=5))])
    return delay_s(receiver, problem_id, began)


def main() -> int:
    """0 if every notification came within `LONGEST_S`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=20)
    parser.add_argument("--open", type=int, default=1000, help="problems that are open all the time")
    options = parser.parse_args()
    chance, stop = random.Random(1), threading.Event()
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedClickHouse(Path(folder) / "clickhouse") as server,
        Receiver() as receiver,
        running(Path(folder) / "alertmanager", config_for(receiver, group_by=["app"])) as alertmanager,
    ):
        database = Database(server.settings.model_copy(update={"database": "bench"}))
        migrate(database, RetentionSettings())
        plant(database, options.open, 100)
        settings = AlertmanagerSettings(urls=(alertmanager.url,))
        job = AlertmanagerJob(database, settings, AlertContext(), lambda *_: None, lambda: repeat(1.0))
        term = elect(database, "bench")

        def look() -> None:
            while not stop.wait(settings.every_s):
                job.run(term, server_time(database))

        job.run(term, server_time(database))
        looking = threading.Thread(target=look)
        looking.start()
        through_job, direct = [], []
        for number in range(options.problems):
            time.sleep(chance.uniform(0, settings.every_s))
            began = time.monotonic()
            open_problem(database, f"new-{number}")
            through_job.append(delay_s(receiver, f"new-{number}", began))
            direct.append(direct_s(AlertmanagerGateway(alertmanager.url, settings), database, receiver, f"d-{number}"))
        stop.set()
        looking.join()
        job.close()
        database.close()
    sys.stdout.write(
        f"{options.problems} problems beside {options.open} open ones, seconds from opening to notification\n"
        f"  through the job, which looks every {settings.every_s:g} s: median {statistics.median(through_job):.2f}, "
        f"slowest {max(through_job):.2f} (at most {LONGEST_S:g})\n"
        f"  posted directly: median {statistics.median(direct):.2f}, slowest {max(direct):.2f}\n"
    )
    return int(max(through_job) > LONGEST_S)


if __name__ == "__main__":
    sys.exit(main())
