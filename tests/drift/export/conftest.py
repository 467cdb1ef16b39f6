"""A real HTTP server that scores are sent to."""

from collections.abc import Iterator

import pytest

from tests.infra.webhook_receiver import Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running
