from collections.abc import Iterator

import pytest

from ragtide.sinks.clickhouse.database import Database
from tests.contracts.grafana_server import GrafanaServer, serving
from tests.drift.notify.delivery_job import Job


@pytest.fixture
def grafana() -> Iterator[GrafanaServer]:
    with serving() as server:
        yield server


@pytest.fixture
def job(database: Database, grafana: GrafanaServer) -> Job:
    return Job(database, grafana)
