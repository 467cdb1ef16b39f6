"""Settings of a secured cluster: what must be there, what would be left unused, what is shown."""

import logging
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.settings.environment import variable_of
from ragtide.stream.settings.loader import MASK, entries, load
from ragtide.stream.settings.sections import TelemetrySettings
from ragtide.stream.telemetry import logs

USER = {"sasl_username": "u", "sasl_password": "p4ss"}
TOKEN = {
    "sasl_oauthbearer_token_endpoint_url": "https://id.example/token",
    "sasl_oauthbearer_client_id": "c",
    "sasl_oauthbearer_client_secret": "p4ss",
}


def loaded(**kafka: str) -> Any:
    return load(None, {variable_of(("kafka", name)): value for name, value in kafka.items()})


@pytest.mark.parametrize(
    ("kafka", "said"),
    [
        (
            {"security_protocol": "SASL_SSL", "sasl_username": "u"},
            "kafka.security_protocol = SASL_SSL and kafka.sasl_mechanism = PLAIN need kafka.sasl_password",
        ),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_client_id": "c"},
            "need kafka.sasl_oauthbearer_token_endpoint_url, kafka.sasl_oauthbearer_client_secret",
        ),
        (USER, "kafka.sasl_username, kafka.sasl_password would not be used with kafka.security_protocol = PLAINTEXT"),
        (
            {"security_protocol": "SASL_PLAINTEXT", "ssl_ca_file": "ca.pem", **USER},
            "kafka.ssl_ca_file would not be used with kafka.security_protocol = SASL_PLAINTEXT",
        ),
        (
            {"security_protocol": "SASL_SSL", **USER, **TOKEN},
            "kafka.sasl_oauthbearer_client_secret would not be used with",
        ),
        ({"security_protocol": "SSL", "ssl_key_file": "k.pem"}, "kafka.ssl_key_file needs kafka.ssl_cert_file"),
    ],
)
def test_what_does_not_fit_together_is_refused(kafka: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(**kafka)
    assert said in str(caught.value)
    assert "p4ss" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("id.example/token", "give https://host/path"),
        ("ftp://id.example/token", "give https://host/path"),
        ("https:///token", "give https://host/path"),
        ("https://id.example:p4ss/token", "give https://host/path"),
        ("https://u:p4ss@\u2100/token", "give https://host/path"),
        ("https://u:p4ss@id.example/token", "leave user and password out"),
    ],
)
def test_the_token_endpoint_is_an_address_without_a_password(url: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", **{**TOKEN, TOKEN_URL: url})
    assert said in str(caught.value)
    assert "p4ss" not in str(caught.value)


TOKEN_URL = "sasl_oauthbearer_token_endpoint_url"


def test_an_extension_cannot_end_the_message(tmp_path: Path) -> None:
    extensions = '{"logicalCluster": "lkc-1", "identityPoolId": "pool-2"}'
    told = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER", **TOKEN}
    kafka = loaded(**told, sasl_oauthbearer_extensions=extensions).settings.kafka
    assert kafka.sasl_oauthbearer_extensions == {"logicalCluster": "lkc-1", "identityPoolId": "pool-2"}
    for wrong in ('{"a b": "c"}', '{"a": "b\\u0001auth=Bearer c"}'):
        with pytest.raises(ConfigError, match="sasl_oauthbearer_extensions"):
            loaded(**told, sasl_oauthbearer_extensions=wrong)


def test_secrets_are_masked() -> None:
    told = loaded(security_protocol="SSL", ssl_cert_file="c.pem", ssl_key_password="p4ss")
    token = loaded(security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", **TOKEN)
    for shown, name in ((told, "kafka.ssl_key_password"), (token, "kafka.sasl_oauthbearer_client_secret")):
        assert {entry.name: entry.value for entry in entries(shown)}[name] == MASK
        assert "p4ss" not in repr(entries(shown))


def test_the_password_is_not_in_the_log_at_its_loudest() -> None:
    """aiokafka writes every request at DEBUG, that of the password among them."""
    root, out = logging.getLogger(), StringIO()
    names = ("aiokafka.conn", "evaluators", "sinks", "drift", "dashboards", "stream")
    loud = ("ragtide.stream.kafka.app", "ragtide.stream.kafka.consumer_thread", "ragtide.stream.kafka.driver")
    before = [(logger, logger.level) for logger in map(logging.getLogger, (None, *names, *loud))]
    handlers = list(root.handlers)
    try:
        logs.configure(TelemetrySettings(log_level="DEBUG"), out)
        logging.getLogger("aiokafka.conn").debug("Request: SaslAuthenticateRequest_v1(sasl_auth_bytes=b'u\\0p4ss')")
        logging.getLogger("ragtide.stream.somewhere").debug("this")
    finally:
        root.handlers[:] = handlers
        for logger, level in before:
            logger.setLevel(level)
    assert "p4ss" not in out.getvalue()
    assert "this" in out.getvalue()
