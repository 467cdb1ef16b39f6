"""Apache Kafka that demands TLS, users, tokens and client certificates, each on a listener of its own."""

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.admin import CreateAclsRequest

from tests.infra.kafka_node import KafkaNode
from tests.infra.ports import free_ports
from tests.infra.secured_certificates import Certificates
from tests.infra.secured_tokens import AUDIENCE, CLIENT, ISSUER, SECRET, TokenServer

USER = "ragtide-worker"
PASSWORD = "password-of-the-worker"
BYSTANDER = "bystander"  # may connect, and nothing else
_REAUTHENTICATE_MS = 4000  # a connection by token is closed after so long, or once the token has run out
_CLASSES = "org.apache.kafka.common.security"

TOPIC, GROUP = 2, 3
READ, DESCRIBE = 3, 8
_LITERAL = _ALLOW = 3


class Right(NamedTuple):
    """To do something with a topic or group, in Kafka's numbers."""

    kind: int
    name: str
    operation: int


class SecuredNode(KafkaNode):
    """`bootstrap` is open, for tests to prepare and look; clients under test use the other listeners."""

    def __init__(self, directory: Path, certificates: Certificates, tokens: TokenServer) -> None:
        super().__init__(directory)
        self.certificates = certificates
        self.tokens = tokens
        first = free_ports(6)
        self.port = first  # the next one is its controller's
        self.sasl_ssl, self.ssl, self.sasl_plaintext, self.announced = range(first + 2, first + 6)
        directory.mkdir()
        self._jwks = directory / "jwks.json"
        self._jwks.write_text(tokens.jwks())
        self.jvm_options = (
            f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self._jwks.as_uri()} "
            f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.files={self._jwks}"
        )

    def start(self) -> None:
        properties = self.directory / "secured.properties"
        properties.write_text(self._properties())
        users = (f"{mechanism}=[name={USER},password={PASSWORD}]" for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"))
        scram = [part for user in users for part in ("--add-scram", user)]
        self._script("start", str(self.directory), str(self.port), str(self.port + 1), str(properties), *scram)

    def by_user(self, mechanism: str = "SCRAM-SHA-512") -> dict[str, Any]:
        """Settings of section `kafka`."""
        return {
            "bootstrap_servers": f"localhost:{self.sasl_ssl}",
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": mechanism,
            "sasl_username": USER,
            "sasl_password": PASSWORD,
            "ssl_ca_file": str(self.certificates.ca),
        }

    def by_token(self) -> dict[str, Any]:
        """Settings of section `kafka`."""
        return {
            "bootstrap_servers": f"localhost:{self.sasl_ssl}",
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauthbearer_token_endpoint_url": self.tokens.url,
            "sasl_oauthbearer_client_id": CLIENT,
            "sasl_oauthbearer_client_secret": SECRET,
            "sasl_oauthbearer_ca_file": str(self.certificates.ca),
            "ssl_ca_file": str(self.certificates.ca),
        }

    def by_certificate(self) -> dict[str, Any]:
        """Settings of section `kafka`."""
        return {
            "bootstrap_servers": f"localhost:{self.ssl}",
            "security_protocol": "SSL",
            "ssl_ca_file": str(self.certificates.ca),
            "ssl_cert_file": str(self.certificates.client),
            "ssl_key_file": str(self.certificates.client_key),
        }

    def in_the_clear(self) -> dict[str, Any]:
        """Settings of section `kafka`: a user without TLS."""
        return {
            "bootstrap_servers": f"127.0.0.1:{self.sasl_plaintext}",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_username": USER,
            "sasl_password": PASSWORD,
        }

    def allow(self, user: str, *rights: Right) -> None:
        """Of topics and groups by name; what is not allowed is denied."""

        async def ask() -> None:
            client = AIOKafkaClient(bootstrap_servers=self.bootstrap)
            await client.bootstrap()
            for right in rights:
                request = CreateAclsRequest(
                    right.kind, right.name, _LITERAL, f"User:{user}", "*", right.operation, _ALLOW
                )
                answer = await client.send(client.get_random_node(), request)
                assert [code for code, _ in answer.creation_responses] == [0]
            await client.close()

        asyncio.run(ask())

    def _properties(self) -> str:
        names = ("PLAINTEXT", "CONTROLLER", "SASL_SSL", "SSL", "SASL_PLAINTEXT", "ANNOUNCED")
        ports = {name: self.port + number for number, name in enumerate(names)}
        hosts = {name: "localhost" if name in ("SASL_SSL", "SSL") else "127.0.0.1" for name in names}
        listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
        advertised = ",".join(f"{name}://{hosts[name]}:{ports[name]}" for name in names if name != "CONTROLLER")
        plain = f'{_CLASSES}.plain.PlainLoginModule required user_{USER}="{PASSWORD}" user_{BYSTANDER}="{PASSWORD}";'
        scram = f"{_CLASSES}.scram.ScramLoginModule required;"
        sasl = "listener.name.sasl_ssl"
        return f"""
listeners={listeners}
advertised.listeners={advertised}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL,\
SASL_PLAINTEXT:SASL_PLAINTEXT,ANNOUNCED:SSL
ssl.keystore.type=PEM
ssl.keystore.location={self.certificates.broker}
ssl.truststore.type=PEM
ssl.truststore.location={self.certificates.ca}
listener.name.ssl.ssl.client.auth=required
listener.name.ssl.ssl.principal.mapping.rules=RULE:^.*CN=([^,]+).*$/$1/
listener.name.sasl_plaintext.sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={plain}
{sasl}.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
{sasl}.plain.sasl.jaas.config={plain}
{sasl}.scram-sha-256.sasl.jaas.config={scram}
{sasl}.scram-sha-512.sasl.jaas.config={scram}
{sasl}.oauthbearer.sasl.jaas.config={_CLASSES}.oauthbearer.OAuthBearerLoginModule required;
{sasl}.oauthbearer.sasl.server.callback.handler.class={_CLASSES}.oauthbearer.OAuthBearerValidatorCallbackHandler
{sasl}.oauthbearer.connections.max.reauth.ms={_REAUTHENTICATE_MS}
sasl.oauthbearer.jwks.endpoint.url={self._jwks.as_uri()}
sasl.oauthbearer.expected.issuer={ISSUER}
sasl.oauthbearer.expected.audience={AUDIENCE}
sasl.oauthbearer.clock.skew.seconds=1
sasl.oauthbearer.jwt.validator.class={_CLASSES}.oauthbearer.BrokerJwtValidator
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:{USER};User:{CLIENT}
"""
