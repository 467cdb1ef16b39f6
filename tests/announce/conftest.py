from collections.abc import Iterator

import pytest

from sinks.clickhouse.database import Database
from tests.announce.announcing_job import Job
from tests.contracts.grafana_server import GrafanaServer, serving


@pytest.fixture
def grafana() -> Iterator[GrafanaServer]:
    with serving() as server:
        yield server


@pytest.fixture
def job(database: Database, grafana: GrafanaServer) -> Job:
    return Job(database, grafana)
