from collections.abc import Iterator

import pytest

from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.contracts.grafana_server import GrafanaServer, serving
from tests.dashboards.shown_application import Shown, showing


@pytest.fixture
def grafana() -> Iterator[GrafanaServer]:
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def shown(clickhouse_server: EmbeddedClickHouse) -> Iterator[Shown]:
    """For tests that only read."""
    with showing(clickhouse_server) as shared:
        yield shared


@pytest.fixture
def own(clickhouse_server: EmbeddedClickHouse) -> Iterator[Shown]:
    """For a test that adds rows."""
    with showing(clickhouse_server) as alone:
        yield alone
