"""Connection options of every Kafka client: brokers, client id, user, token and certificates."""

import os
import re
import socket
import ssl
from typing import Any

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.settings.sections import KafkaSettings


def client_id(role: str = "") -> str:
    """Name this client for the brokers' logs, quotas and lists of members: `ragtide-ROLE-HOST-PID`.

    `role` is a lane, `jobs` or `labels`; empty: left out.
    """
    parts = ("ragtide", role, socket.gethostname(), str(os.getpid()))
    return re.sub(r"[^A-Za-z0-9._-]", "_", "-".join(part for part in parts if part))


def client_options(kafka: KafkaSettings, role: str = "") -> dict[str, Any]:
    """Keyword arguments that aiokafka's consumers, producers and admin clients share; `ConfigError` for bad files.

    For one client each: a provider of tokens belongs to the event loop of its client. `role`: see `client_id`.
    """
    options: dict[str, Any] = {
        "client_id": client_id(role),
        "bootstrap_servers": [server.strip() for server in kafka.bootstrap_servers.split(",")],
        "security_protocol": kafka.security_protocol,
        "request_timeout_ms": int(kafka.request_timeout_s * 1000),
    }
    if kafka.security_protocol.startswith("SASL"):
        options |= _sasl_options(kafka)
    if kafka.security_protocol.endswith("SSL"):
        options["ssl_context"] = _ssl_context(kafka)
    return options


def _sasl_options(kafka: KafkaSettings) -> dict[str, Any]:
    options: dict[str, Any] = {"sasl_mechanism": kafka.sasl_mechanism}
    if kafka.sasl_mechanism != "OAUTHBEARER":
        options["sasl_plain_username"] = kafka.sasl_username
        options["sasl_plain_password"] = kafka.sasl_password.get_secret_value()
        return options
    from ragtide.stream.kafka.tokens import TokenEndpoint

    context = _trust_context(kafka.sasl_oauthbearer_ca_file, "kafka.sasl_oauthbearer_ca_file")
    options["sasl_oauth_token_provider"] = TokenEndpoint(kafka, context)
    return options


def _ssl_context(kafka: KafkaSettings) -> ssl.SSLContext:
    """Trusts `ssl_ca_file`, else the system's authorities; presents the client certificate where one is set."""
    context = _trust_context(kafka.ssl_ca_file, "kafka.ssl_ca_file")
    context.check_hostname = kafka.ssl_check_hostname
    if kafka.ssl_cert_file:
        try:
            # A function: given nothing, OpenSSL would ask for the password at the terminal.
            context.load_cert_chain(
                kafka.ssl_cert_file, kafka.ssl_key_file or None, kafka.ssl_key_password.get_secret_value
            )
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"kafka.ssl_cert_file = {kafka.ssl_cert_file} cannot be used with kafka.ssl_key_file = "
                f"{kafka.ssl_key_file or kafka.ssl_cert_file}: {_reason(error)}; both are PEM, the key belongs to the "
                "first certificate, and kafka.ssl_key_password opens it where it is encrypted"
            ) from None
    return context


def _trust_context(ca_file: str, setting: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{setting} = {ca_file} cannot be used: {_reason(error)}; it needs certificates as PEM"
        ) from None


def _reason(error: Exception) -> str:
    reason = error.reason if isinstance(error, ssl.SSLError) else getattr(error, "strerror", None)
    return f"{type(error).__name__}{f' ({reason})' if reason else ''}"
