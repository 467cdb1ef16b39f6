"""`ragtide view` as people run it."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests

from ragtide.sinks.clickhouse.database import Database
from tests.infra.fresh_database import reached

pytestmark = pytest.mark.clickhouse


@contextmanager
def command(database: Database, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAGTIDE_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "ragtide.stream", "view", *arguments],
        env={**environment, **reached(database), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_it_says_where_it_listens_and_ends_well(database: Database) -> None:
    with command(database, "--listen", "127.0.0.1:0") as process:
        found = re.match(r"Dashboards: (http://127\.0\.0\.1:\d+)/\. Ctrl-C ends the viewer\.", line(process))
        assert found
        page = requests.get(found[1], timeout=60)
        assert "/d/ragtide-" in page.url
        assert page.status_code == 200
        assert requests.get(f"{found[1]}/api/activity", timeout=60).json() == {"events": []}
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_it_asks_for_a_token_on_other_addresses_and_prints_one(database: Database) -> None:
    with command(database, "--listen", "0.0.0.0:0") as process:
        token = line(process).split()[-1]
        assert len(token) >= 32
        found = re.match(
            r"Dashboards: http://0\.0\.0\.0:(\d+)(/login\?code=\S+) \(this link logs in once", line(process)
        )
        assert found
        url = f"http://127.0.0.1:{found[1]}"
        assert requests.get(f"{url}/api/dashboards", timeout=60).status_code == 401
        bearer = {"Authorization": f"Bearer {token}"}
        assert requests.get(f"{url}/api/dashboards", headers=bearer, timeout=60).status_code == 200
        assert requests.get(f"{url}{found[2]}", timeout=60).status_code == 200


def test_the_token_of_the_settings_is_not_printed(database: Database) -> None:
    token = "of-the-settings-0123456789"
    with command(database, "--listen", "0.0.0.0:0", RAGTIDE_VIEW__TOKEN=token) as process:
        said = line(process)
        assert said.startswith("Dashboards: ")
        assert token not in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--listen", "nowhere"), "view.listen: give host:port"),
        (("--token", "short"), "view.token: has fewer than 16 characters"),
        (("--listen", "192.0.2.1:0"), "cannot listen on 192.0.2.1"),
    ],
)
def test_what_is_wrong_is_one_line(database: Database, arguments: tuple[str, ...], says: str) -> None:
    with command(database, *arguments) as process:
        told = process.communicate(timeout=60)[0].splitlines()
        assert process.returncode == 2
        assert says in told[-1]


def test_it_reads_as_the_user_of_the_data_source(database: Database) -> None:
    wrong = {"RAGTIDE_GRAFANA__DATA_SOURCE_USER": "reader", "RAGTIDE_GRAFANA__DATA_SOURCE_PASSWORD": "wrong"}
    with command(database, "--listen", "127.0.0.1:0", **wrong) as process:
        url = line(process).split()[1].rstrip("/.")
        answer = requests.get(f"{url}/api/activity", timeout=60)
        assert answer.status_code == 503
        assert "password is wrong" in answer.json()["error"]
