"""The provider of tokens against a real token endpoint, over HTTP and HTTPS."""

import asyncio
import json
import logging
import ssl
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.stream.kafka.client import client_options
from ragtide.stream.kafka.tokens import NoToken, TokenEndpoint
from ragtide.stream.settings.sections import KafkaSettings
from tests.infra.ports import free_ports
from tests.infra.secured_certificates import Certificates
from tests.infra.secured_tokens import CLIENT, SECRET, Answer, TokenServer


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(scope="module")
def _server() -> Iterator[TokenServer]:
    with TokenServer() as server:
        yield server


@pytest.fixture
def server(_server: TokenServer) -> TokenServer:
    _server.asked.clear()
    _server.answer, _server.life_s, _server.age_s = None, 3600, 0
    return _server


def settings(url: str, **more: Any) -> KafkaSettings:
    told = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauthbearer_token_endpoint_url": url,
        "sasl_oauthbearer_client_id": CLIENT,
        "sasl_oauthbearer_client_secret": SECRET,
    }
    return KafkaSettings.model_validate({**told, **more})


def endpoint(url: str, clock: Clock, **more: Any) -> TokenEndpoint:
    return TokenEndpoint(settings(url, **more), ssl.create_default_context(), clock, clock.sleep)


def why(asked: Coroutine[Any, Any, str]) -> BaseException | None:
    with pytest.raises(NoToken) as caught:
        asyncio.run(asked)
    return _cause(caught.value)


def _cause(error: BaseException) -> BaseException | None:
    assert SECRET not in str(error)
    return error.__cause__


def test_a_token_is_asked_for_once_and_renewed_after_four_fifths_of_its_life(server: TokenServer) -> None:
    clock = Clock()
    server.life_s = 100

    async def tokens() -> list[str]:
        provider = endpoint(server.url, clock)
        found = await asyncio.gather(*(provider.token() for _ in range(5)))
        for clock.now in (1079.0, 1080.0, 1159.0):
            found.append(await provider.token())
        return found

    first, *others = asyncio.run(tokens())
    assert others[:5] == [first] * 5
    assert others[5] != first
    assert others[6] == others[5]
    assert len(server.asked) == 2


def test_what_is_asked_is_what_the_standard_says(server: TokenServer) -> None:
    server.life_s = 60
    asyncio.run(endpoint(server.url, Clock(), sasl_oauthbearer_scope="traces:read dead:write").token())
    (asked,) = server.asked
    assert asked.path == "/oauth2/token"
    assert asked.basic == f"{CLIENT}:{SECRET}"
    assert asked.form == {"grant_type": "client_credentials", "scope": "traces:read dead:write"}


@pytest.mark.parametrize(("encoded", "sent"), [(False, "a+b:c/d%"), (True, "a%2Bb:c%2Fd%25")])
def test_id_and_secret_are_encoded_where_asked_for(server: TokenServer, encoded: bool, sent: str) -> None:
    odd = {"sasl_oauthbearer_client_id": "a+b", "sasl_oauthbearer_client_secret": "c/d%"}
    why(endpoint(server.url, Clock(), sasl_oauthbearer_header_urlencode=encoded, **odd).token())
    assert server.asked[0].basic == sent


def test_a_token_without_an_end_is_not_kept(server: TokenServer) -> None:
    server.answer = Answer(200, b'{"access_token": "abc"}')

    async def twice() -> list[str]:
        provider = endpoint(server.url, Clock())
        return [await provider.token(), await provider.token()]

    assert asyncio.run(twice()) == ["abc", "abc"]
    assert len(server.asked) == 2


def test_while_the_endpoint_is_away_the_token_at_hand_goes_on_to_its_end(
    server: TokenServer, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    server.life_s = 100

    async def away() -> BaseException | None:
        provider = endpoint(server.url, clock)
        first = await provider.token()
        server.answer = Answer(503)
        for clock.now in (1080.0, 1084.0, 1086.0, 1099.0):
            assert await provider.token() == first
        assert len(server.asked) == 4  # 1084 is within 5 s of the one before
        clock.now = 1101.0
        with pytest.raises(NoToken) as caught:
            await provider.token()
        server.answer = None
        assert await provider.token() != first
        assert clock.now == 1109.0
        return _cause(caught.value)

    with caplog.at_level(logging.WARNING, "ragtide.stream.kafka.tokens"):
        error = asyncio.run(away())
    assert isinstance(error, Transient)
    assert str(error) == f"no token from {server.url} (kafka.sasl_oauthbearer_token_endpoint_url): status 503"
    assert "the current token is valid for another 20 s" in caplog.text


def test_an_endpoint_that_refuses_is_not_asked_at_once_again(server: TokenServer) -> None:
    clock = Clock()

    async def hammer() -> None:
        provider = endpoint(server.url, clock, sasl_oauthbearer_client_secret="wrong")
        for _ in range(4):
            with pytest.raises(NoToken):
                await provider.token()

    asyncio.run(hammer())
    assert len(server.asked) == 4
    assert clock.now == 1015.0


def test_a_wrong_secret_is_a_persons_to_correct_and_is_not_quoted(server: TokenServer) -> None:
    error = why(endpoint(server.url, Clock(), sasl_oauthbearer_client_secret="wrong-one").token())
    assert isinstance(error, ConfigError)
    assert "status 401, invalid_client; correct kafka.sasl_oauthbearer_client_id, _client_secret" in str(error)
    assert "wrong-one" not in str(error)
    assert "who is" not in str(error)


BAD_ANSWERS = {
    "no JSON": b"<html>",
    "no token": b'{"expires_in": 3600}',
    "an empty token": b'{"access_token": "", "expires_in": 3600}',
    "a token that ends the header": b'{"access_token": "a\\u0001auth=b", "expires_in": 3600}',
    "a life of none": b'{"access_token": "a", "expires_in": 0}',
    "a life without end": b'{"access_token": "a", "expires_in": 1e999}',
    "no number": b'{"access_token": "a", "expires_in": "soon"}',
    "a list": b"[1]",
    "a lone surrogate": b'{"access_token": "\\ud800"}',
    "no text": b"\xff\xfe",
    "a flood": b'{"access_token": "' + b"a" * (1 << 20) + b'"}',
}


@pytest.mark.parametrize("body", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_an_answer_that_is_no_token_is_said_to_be_none(server: TokenServer, body: bytes) -> None:
    server.answer = Answer(200, body)
    error = why(endpoint(server.url, Clock()).token())
    assert isinstance(error, ConfigError)
    assert "is it the token endpoint?" in str(error)


def test_a_life_in_quotes_is_a_number(server: TokenServer) -> None:
    server.answer = Answer(200, json.dumps({"access_token": "a.b-c_d~e+f/g==", "expires_in": "3599"}).encode())
    assert asyncio.run(endpoint(server.url, Clock()).token()) == "a.b-c_d~e+f/g=="


def test_the_secret_does_not_follow_a_redirect(server: TokenServer) -> None:
    server.answer = Answer(307, headers=(("Location", server.url + "/elsewhere"),))
    error = why(endpoint(server.url, Clock()).token())
    assert "status 307" in str(error)
    assert [asked.path for asked in server.asked] == ["/oauth2/token"]


def test_where_nothing_listens_it_is_tried_again() -> None:
    error = why(endpoint(f"http://127.0.0.1:{free_ports(1)}/token?key=hidden", Clock()).token())
    assert isinstance(error, Transient)
    assert "ClientConnectorError" in str(error)
    assert "hidden" not in str(error)


def provided(url: str, ca: str) -> TokenEndpoint:
    provider = client_options(settings(url, sasl_oauthbearer_ca_file=ca))["sasl_oauth_token_provider"]
    assert isinstance(provider, TokenEndpoint)
    return provider


def test_over_https_the_endpoints_certificate_must_hold(certificates: Certificates) -> None:
    with TokenServer(certificates.broker) as secure:
        asyncio.run(provided(secure.url, str(certificates.ca)).token())
        error = why(provided(secure.url, str(certificates.other_ca)).token())
        assert isinstance(error, ConfigError)
        assert "kafka.sasl_oauthbearer_ca_file" in str(error)
        other_name = secure.url.replace("localhost", "127.0.0.1")
        error = why(provided(other_name, str(certificates.ca)).token())
        assert "IP address mismatch" in str(error)
        assert len(secure.asked) == 1
