"""What `ragtide check` says where brokers let nobody in: what, where, what to do, and no secret."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.settings import ClickHouseSettings
from ragtide.stream.connectivity_checks import ConnectivityCheck, run_checks
from ragtide.stream.kafka.broker_check import partition_counts
from ragtide.stream.kafka.leader import KafkaLeadership
from ragtide.stream.settings.loader import Loaded, Settings
from ragtide.stream.settings.sections import KafkaSettings
from tests.infra.secured_certificates import KEY_PASSWORD, Certificates
from tests.infra.secured_node import PASSWORD, SecuredNode
from tests.infra.secured_tokens import SECRET, Answer

pytestmark = pytest.mark.kafka

WRONG = "wrong-password"
Settled = dict[str, Any]


class Refusal(NamedTuple):
    """Settings that do not work, and what must be said; `mends` is false where it may come right by itself."""

    settings: Callable[[SecuredNode], Settled]
    said: str
    mends: bool = True


def _announced(node: SecuredNode) -> Settled:
    return {
        "security_protocol": "SSL",
        "ssl_ca_file": str(node.certificates.ca),
        "bootstrap_servers": f"localhost:{node.announced}",
    }


REFUSALS = {
    "password, PLAIN": Refusal(
        lambda node: {**node.by_user("PLAIN"), "sasl_password": WRONG},
        "localhost:{sasl_ssl} refuses user ragtide-worker with PLAIN: correct kafka.sasl_username and "
        "kafka.sasl_password",
    ),
    "password, SCRAM": Refusal(
        lambda node: {**node.by_user("SCRAM-SHA-256"), "sasl_password": WRONG},
        "localhost:{sasl_ssl} refuses user ragtide-worker with SCRAM-SHA-256",
    ),
    "password, one broker away": Refusal(
        lambda node: {
            **node.by_user(),
            "sasl_password": WRONG,
            "bootstrap_servers": f"localhost:1,localhost:{node.sasl_ssl}",
        },
        "localhost:{sasl_ssl} refuses user ragtide-worker",
    ),
    "mechanism": Refusal(
        lambda node: {**node.in_the_clear(), "sasl_mechanism": "SCRAM-SHA-512"},
        "127.0.0.1:{sasl_plaintext} does not take kafka.sasl_mechanism = SCRAM-SHA-512",
    ),
    "secret of the client": Refusal(
        lambda node: {**node.by_token(), "sasl_oauthbearer_client_secret": WRONG},
        "{tokens.url} (kafka.sasl_oauthbearer_token_endpoint_url) refuses a token: status 401, invalid_client",
    ),
    "CA of the token endpoint": Refusal(
        lambda node: {**node.by_token(), "sasl_oauthbearer_ca_file": str(node.certificates.other_ca)},
        "the certificate of {tokens.url} (kafka.sasl_oauthbearer_token_endpoint_url) does not hold: unable to get "
        "local issuer certificate; correct the address, or name the CA that signed it in "
        "kafka.sasl_oauthbearer_ca_file",
    ),
    "CA": Refusal(
        lambda node: {**node.by_user(), "ssl_ca_file": str(node.certificates.other_ca)},
        "the certificate of localhost:{sasl_ssl} does not hold: unable to get local issuer certificate; "
        "set kafka.ssl_ca_file",
    ),
    "the system's CAs": Refusal(
        lambda node: {**node.by_user(), "ssl_ca_file": ""},
        "the certificate of localhost:{sasl_ssl} does not hold: unable to get local issuer certificate",
    ),
    "name": Refusal(
        lambda node: {**node.by_user(), "bootstrap_servers": f"127.0.0.1:{node.sasl_ssl}"},
        "the certificate of 127.0.0.1:{sasl_ssl} does not hold: IP address mismatch, certificate is not valid for "
        "'127.0.0.1'; name the brokers in kafka.bootstrap_servers",
    ),
    "name that the broker announces": Refusal(
        _announced,
        "the certificate of 127.0.0.1:{announced} does not hold: IP address mismatch",
    ),
    "no certificate": Refusal(
        lambda node: {**node.by_certificate(), "ssl_cert_file": "", "ssl_key_file": ""},
        "localhost:{ssl} asks for a client's certificate",
    ),
    "a stranger's certificate": Refusal(
        lambda node: {**node.by_certificate(), "ssl_cert_file": str(node.certificates.stranger), "ssl_key_file": ""},
        "localhost:{ssl} refuses kafka.ssl_cert_file = {certificates.stranger}",
    ),
    "a locked key": Refusal(
        lambda node: {**node.by_certificate(), "ssl_key_file": str(node.certificates.locked_key)},
        "kafka.ssl_cert_file = {certificates.client} cannot be used with kafka.ssl_key_file = "
        "{certificates.locked_key}: SSLError; both are PEM",
    ),
    "another's key": Refusal(
        lambda node: {**node.by_certificate(), "ssl_key_file": str(node.certificates.broker)},
        "cannot be used with kafka.ssl_key_file = {certificates.broker}: SSLError (KEY_VALUES_MISMATCH)",
    ),
    "a missing file": Refusal(
        lambda node: {**node.by_user(), "ssl_ca_file": "/nowhere/ca.pem"},
        "kafka.ssl_ca_file = /nowhere/ca.pem cannot be used: FileNotFoundError (No such file or directory)",
    ),
    "a file that is none": Refusal(
        lambda node: {**node.by_user(), "ssl_ca_file": __file__},
        "cannot be used: SSLError (NO_CERTIFICATE_OR_CRL_FOUND); it needs certificates as PEM",
    ),
    "a user where none is asked for": Refusal(
        lambda node: {**node.in_the_clear(), "bootstrap_servers": node.bootstrap},
        "{bootstrap} asks for no user at that port, and kafka.security_protocol is SASL_PLAINTEXT",
    ),
    "no TLS where it is spoken": Refusal(
        lambda node: {"bootstrap_servers": f"localhost:{node.sasl_ssl}"},
        "localhost:{sasl_ssl} closes the connection before it answers: is kafka.security_protocol = PLAINTEXT what",
        mends=False,
    ),
    "TLS where it is not spoken": Refusal(
        lambda node: {**node.by_user(), "bootstrap_servers": f"localhost:{node.sasl_plaintext}"},
        "localhost:{sasl_plaintext} closes the connection before it answers",
        mends=False,
    ),
    "no user where one is asked for": Refusal(
        lambda node: {"bootstrap_servers": f"localhost:{node.sasl_plaintext}"},
        "localhost:{sasl_plaintext} closes the connection before it answers",
        mends=False,
    ),
}


def checked(kafka: Settled) -> ConnectivityCheck:
    settings = Settings(kafka=KafkaSettings.model_validate(kafka))
    return next(check for check in run_checks(Loaded(settings, {}, None)) if check.name == "kafka")


def without_secrets(said: str) -> str:
    assert not [secret for secret in (PASSWORD, WRONG, SECRET, KEY_PASSWORD) if secret in said]
    return said


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_said_to_be_what_it_is(secured: SecuredNode, name: str) -> None:
    refusal = REFUSALS[name]
    check = checked(refusal.settings(secured))
    where = {**vars(secured), "bootstrap": secured.bootstrap}
    assert refusal.said.format(**where) in without_secrets(check.message)
    assert check.ok is False
    assert check.unreachable is not refusal.mends


def test_a_token_that_has_run_out(secured: SecuredNode) -> None:
    secured.tokens.age_s = 7200
    check = checked(secured.by_token())
    assert f"localhost:{secured.sasl_ssl} refuses the token of client ragtide-client" in without_secrets(check.message)
    assert "it had run out" in check.message


def test_a_token_endpoint_that_is_away_is_waited_for(secured: SecuredNode) -> None:
    secured.tokens.answer = Answer(503)
    check = checked(secured.by_token())
    assert check.unreachable
    assert "no token from https://localhost:" in without_secrets(check.message)
    assert "status 503" in check.message


def test_a_broker_with_another_name_gets_in_where_names_are_not_checked(secured: SecuredNode) -> None:
    elsewhere = {**secured.by_user(), "bootstrap_servers": f"127.0.0.1:{secured.sasl_ssl}"}
    kafka = KafkaSettings.model_validate({**elsewhere, "ssl_check_hostname": False})
    assert isinstance(asyncio.run(partition_counts(kafka)), dict)


def test_jobs_end_where_their_password_is_wrong(secured: SecuredNode) -> None:
    ended = threading.Event()
    kafka = KafkaSettings.model_validate({**secured.by_user(), "sasl_password": WRONG})
    leadership = KafkaLeadership(kafka, Database(ClickHouseSettings()), on_end=ended.set)
    leadership.start()
    assert ended.wait(20)
    assert isinstance(leadership.failure, ConfigError)
    assert "refuses user ragtide-worker" in without_secrets(leadership.trouble())
    leadership.stop()


@contextmanager
def _listening(certificate: Path | None) -> Iterator[int]:
    """A port that greets by TLS with that certificate, or says something of its own; nothing of Kafka."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    if certificate is None:
                        client.sendall(b"SSH-2.0-server\r\n")
                        continue
                    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                    context.load_cert_chain(certificate)
                    try:
                        context.wrap_socket(client, server_side=True).close()
                    except OSError:
                        continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_certificate_that_is_out_of_date(certificates: Certificates) -> None:
    with _listening(certificates.expired) as port:
        kafka = KafkaSettings(
            bootstrap_servers=f"localhost:{port}", security_protocol="SSL", ssl_ca_file=str(certificates.ca)
        )
        with pytest.raises(ConfigError, match="certificate has expired; have a new one made, or set the clock right"):
            asyncio.run(partition_counts(kafka))


def test_a_port_that_speaks_something_else(certificates: Certificates) -> None:
    with _listening(None) as port:
        kafka = KafkaSettings(
            bootstrap_servers=f"localhost:{port}", security_protocol="SSL", ssl_ca_file=str(certificates.ca)
        )
        with pytest.raises((ConfigError, Transient), match=r"kafka\.security_protocol = SSL what it speaks"):
            asyncio.run(partition_counts(kafka))
