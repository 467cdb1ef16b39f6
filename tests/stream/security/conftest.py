"""One broker that demands TLS, users, tokens and client certificates."""

from collections.abc import Iterator

import pytest

from tests.infra.secured_certificates import Certificates
from tests.infra.secured_node import SecuredNode
from tests.infra.secured_tokens import TokenServer


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("secured") / "certificates")


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[SecuredNode]:
    with (
        TokenServer(certificates.broker) as tokens,
        SecuredNode(tmp_path_factory.mktemp("secured") / "node", certificates, tokens) as node,
    ):
        yield node


@pytest.fixture(autouse=True)
def _tokens_as_usual(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test does to the shared token endpoint ends with the test."""
    yield
    if "secured" in request.fixturenames:
        tokens = request.getfixturevalue("secured").tokens
        tokens.answer, tokens.life_s, tokens.age_s = None, 3600, 0
