from collections.abc import Iterator

import pytest

from tests.contracts.grafana_server import GrafanaServer, serving


@pytest.fixture
def grafana() -> Iterator[GrafanaServer]:
    with serving() as server:
        yield server
