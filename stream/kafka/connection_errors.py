"""Find out why no broker accepts us: aiokafka reports only that none was reached, so each is tried again."""

import asyncio
import ssl
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from aiokafka.conn import AIOKafkaConnection, OAuthAuthenticator, collect_hosts
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest

from ragtide.evaluators.errors import ConfigError, RagtideError, Transient
from ragtide.stream.kafka.client import client_options
from ragtide.stream.settings.sections import KafkaSettings

_NAME_MISMATCH = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
_OUT_OF_DATE = (9, 10)  # X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED
_CLOSED = (EOFError, ConnectionResetError, ConnectionAbortedError, BrokenPipeError, ssl.SSLEOFError)
_CLOSE_S = 1.0


class Address(NamedTuple):
    """Address of a broker."""

    host: str
    port: int


async def connection_error(kafka: KafkaSettings, advertised: Iterable[Address]) -> RagtideError | None:
    """`ConfigError` if settings must change, `Transient` if a broker may recover, None if the cause is unknown.

    Tries `kafka.bootstrap_servers` and the addresses that the brokers announced; their certificates may differ.
    """
    named = [Address(host, port) for host, port, _ in collect_hosts(kafka.bootstrap_servers, randomize=False)]
    options = client_options(kafka)
    del options["bootstrap_servers"]
    attempts = [_try_connection(kafka, address, options) for address in dict.fromkeys((*named, *advertised))]
    found = [error for error in await asyncio.gather(*attempts) if error is not None]
    found.sort(key=lambda error: isinstance(error, Transient))
    return found[0] if found else None


async def _try_connection(kafka: KafkaSettings, address: Address, options: dict[str, Any]) -> RagtideError | None:
    from ragtide.stream.kafka.tokens import NoToken

    connection = _Attempt(*address, **options)
    try:
        await connection.connect()
        await connection.send(MetadataRequest([]))
    except NoToken as error:
        return error.__cause__ if isinstance(error.__cause__, RagtideError) else None
    except (KafkaError, OSError) as error:
        return _explain(kafka, f"{address.host}:{address.port}", error)
    finally:
        await connection.end()
    return None


class _Attempt(AIOKafkaConnection):  # type: ignore[misc]  # aiokafka has no types
    async def end(self) -> None:
        """Its socket is closed, unless the broker keeps it."""
        closed = self.close()
        if self._protocol is not None:  # else nothing was ever open
            await asyncio.wait({closed}, timeout=_CLOSE_S)

    def authenticator_oauth(self) -> OAuthAuthenticator:
        return _StrictOAuthAuthenticator(sasl_oauth_token_provider=self._sasl_oauth_token_provider)


class _StrictOAuthAuthenticator(OAuthAuthenticator):  # type: ignore[misc]  # as above
    """A broker answers a refused token with the reason (RFC 7628, 3.2.2), which aiokafka takes for success."""

    async def step(self, payload: bytes | None) -> Any:
        if payload:
            raise SaslAuthenticationFailed
        return await super().step(payload)


def _explain(kafka: KafkaSettings, server: str, error: BaseException) -> RagtideError | None:
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return ConfigError(_certificate(server, cause))
        if isinstance(cause, _CLOSED):
            return Transient(
                f"{server} closes the connection before it answers: is kafka.security_protocol = "
                f"{kafka.security_protocol} what it speaks at that port?"
            )
        if isinstance(cause, ssl.SSLError):
            return ConfigError(_tls(kafka, server, cause.reason or ""))
        if isinstance(cause, SaslAuthenticationFailed):
            return ConfigError(_credentials(kafka, server))
        if isinstance(cause, UnsupportedSaslMechanismError):
            return ConfigError(
                f"{server} does not take kafka.sasl_mechanism = {kafka.sasl_mechanism}; set one that it does take"
            )
        if isinstance(cause, IllegalSaslStateError):
            return ConfigError(
                f"{server} asks for no user at that port, and kafka.security_protocol is {kafka.security_protocol}; "
                "correct the one or the other"
            )
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _certificate(server: str, error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in _NAME_MISMATCH:
        todo = (
            "name the brokers in kafka.bootstrap_servers (and they themselves in advertised.listeners) as their "
            "certificates do, or have certificates made for the names"
        )
    elif error.verify_code in _OUT_OF_DATE:
        todo = "have a new one made, or set the clock right"
    else:
        todo = "set kafka.ssl_ca_file to the certificates (PEM) of the CA that signed it"
    return f"the certificate of {server} does not hold: {error.verify_message.rstrip('.')}; {todo}"


def _tls(kafka: KafkaSettings, server: str, reason: str) -> str:
    if "ALERT" not in reason or not ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason):
        return (
            f"no TLS with {server} ({reason}): is kafka.security_protocol = {kafka.security_protocol} what it speaks "
            "at that port?"
        )
    if not kafka.ssl_cert_file:
        return f"{server} asks for a client's certificate ({reason}): set kafka.ssl_cert_file and kafka.ssl_key_file"
    return (
        f"{server} refuses kafka.ssl_cert_file = {kafka.ssl_cert_file} ({reason}): it takes certificates that a CA of "
        "its own has signed, as long as they are in date"
    )


def _credentials(kafka: KafkaSettings, server: str) -> str:
    if kafka.sasl_mechanism == "OAUTHBEARER":
        return (
            f"{server} refuses the token of client {kafka.sasl_oauthbearer_client_id}: the brokers expect another "
            "issuer, audience or scope (kafka.sasl_oauthbearer_scope), or it had run out; the brokers' log says which"
        )
    return (
        f"{server} refuses user {kafka.sasl_username} with {kafka.sasl_mechanism}: correct kafka.sasl_username and "
        "kafka.sasl_password, or kafka.sasl_mechanism"
    )
