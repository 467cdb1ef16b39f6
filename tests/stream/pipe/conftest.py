"""Fixtures of replays."""

import pytest


@pytest.fixture(
    params=[pytest.param("broker", marks=pytest.mark.broker), pytest.param("kafka", marks=pytest.mark.kafka)]
)
def bootstrap(request: pytest.FixtureRequest) -> str:
    """Where either broker is."""
    found: str = request.getfixturevalue(request.param).bootstrap
    return found
