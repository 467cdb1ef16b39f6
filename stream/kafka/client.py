"""How every Kafka client outside the lanes' consumers connects: the same brokers, user and certificates."""

import ssl
from typing import Any

from evaluators.errors import ConfigError
from stream.configuration.sections import KafkaSettings


def client_options(kafka: KafkaSettings) -> dict[str, Any]:
    """Keyword arguments that aiokafka's consumers, producers and admin clients share; `ConfigError` for bad files."""
    options: dict[str, Any] = {
        "bootstrap_servers": [server.strip() for server in kafka.bootstrap_servers.split(",")],
        "security_protocol": kafka.security_protocol,
        "request_timeout_ms": int(kafka.request_timeout_s * 1000),
    }
    if kafka.security_protocol.startswith("SASL"):
        options["sasl_mechanism"] = kafka.sasl_mechanism
        options["sasl_plain_username"] = kafka.sasl_username
        options["sasl_plain_password"] = kafka.sasl_password.get_secret_value()
    if kafka.security_protocol.endswith("SSL"):
        options["ssl_context"] = ssl_context(kafka)
    return options


def ssl_context(kafka: KafkaSettings) -> ssl.SSLContext:
    """Trusts `ssl_ca_file`, else the system's authorities; presents the client certificate where one is set."""
    try:
        context = ssl.create_default_context(cafile=kafka.ssl_ca_file or None)
        if kafka.ssl_cert_file:
            context.load_cert_chain(kafka.ssl_cert_file, kafka.ssl_key_file or None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"kafka.ssl_*_file: cannot be used: {type(error).__name__}: {error}") from None
    return context
