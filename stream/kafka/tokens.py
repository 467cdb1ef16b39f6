"""Tokens for SASL OAUTHBEARER by OAuth 2 client credentials (RFC 6749, 4.4), named as Kafka names them (KIP-768)."""

import asyncio
import logging
import ssl
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from math import inf
from urllib.parse import quote_plus, urlsplit

import aiohttp
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError
from pydantic import BaseModel, Field, ValidationError

from ragtide.evaluators.errors import ConfigError, RagtideError, Transient
from ragtide.stream.settings.sections import KafkaSettings

log = logging.getLogger(__name__)

_TIMEOUT_S = 8.0
_PAUSE_S = 5.0  # before an endpoint that gave nothing is asked again: aiokafka would connect ten times a second
_SHARE_OF_LIFE = 0.8  # after which a token is renewed, as Kafka's own clients do
_LARGEST_ANSWER = 64 << 10
_BUSY = (408, 425, 429)
_CODES = ("invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "invalid_scope")  # RFC 6749, 5.2


class NoToken(KafkaConnectionError):  # type: ignore[misc]  # aiokafka has no types
    """Its cause is the `ConfigError` or `Transient` that says why; to aiokafka a connection to try again."""


class TokenEndpoint(AbstractTokenProvider):  # type: ignore[misc]  # as above
    """Gives one client, in one event loop, a token that holds; a new one before the old one runs out.

    While the endpoint is away the old token is given for as long as it holds; then `NoToken` is raised, once in 5 s.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        context: ssl.SSLContext,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._kafka = kafka
        self._context = context
        self._clock = clock
        self._sleep = sleep
        self._lock = asyncio.Lock()
        self._token = ""
        self._renew_at = self._expires_at = self._ask_at = -inf
        self._failure: RagtideError | None = None
        parts = urlsplit(kafka.sasl_oauthbearer_token_endpoint_url)
        self._where = f"{parts.scheme}://{parts.netloc}{parts.path} (kafka.sasl_oauthbearer_token_endpoint_url)"

    async def token(self) -> str:
        """One that holds now; raises `NoToken`."""
        async with self._lock:
            if self._clock() >= self._expires_at:
                await self._sleep(max(0.0, self._ask_at - self._clock()))
            if self._clock() >= max(self._renew_at, self._ask_at):
                await self._renew()
            if self._clock() < self._expires_at:
                return self._token
            raise NoToken(str(self._failure)) from self._failure

    def extensions(self) -> Mapping[str, str]:
        """Extensions that are sent with every token."""
        return self._kafka.sasl_oauthbearer_extensions

    async def _renew(self) -> None:
        requested_at = self._clock()
        try:
            granted = await self._ask()
        except RagtideError as error:
            self._failure = error
            self._ask_at = self._clock() + _PAUSE_S
            if self._clock() < self._expires_at:
                log.warning(
                    "%s; the current token is valid for another %.0f s", error, self._expires_at - self._clock()
                )
            return
        self._token = granted.access_token
        # A token without a lifetime is requested again for every connection.
        self._renew_at = requested_at + _SHARE_OF_LIFE * (granted.expires_in or 0.0)
        self._expires_at = requested_at + (granted.expires_in or inf)

    async def _ask(self) -> "_TokenResponse":
        """Raise `ConfigError` if the endpoint refuses, `Transient` if it is away or busy."""
        try:
            status, body = await self._answer()
        except aiohttp.ClientConnectorCertificateError as error:
            reason = getattr(error.certificate_error, "verify_message", type(error.certificate_error).__name__)
            raise ConfigError(
                f"the certificate of {self._where} does not hold: {reason}; correct the address, or name the CA that "
                "signed it in kafka.sasl_oauthbearer_ca_file"
            ) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Transient(f"no token from {self._where}: {type(error).__name__}") from None
        if status >= 500 or status in _BUSY:
            raise Transient(f"no token from {self._where}: status {status}")
        if status != 200:
            raise ConfigError(
                f"{self._where} refuses a token: status {status}{_code(body)}; correct "
                "kafka.sasl_oauthbearer_client_id, _client_secret and _scope, or the address"
            )
        try:
            return _TokenResponse.model_validate_json(body)
        except ValidationError:
            raise ConfigError(
                f"{self._where} answers, but not with a token that OAuth 2 knows: is it the token endpoint?"
            ) from None

    async def _answer(self) -> tuple[int, bytes]:
        kafka = self._kafka
        form = {"grant_type": "client_credentials"}
        if kafka.sasl_oauthbearer_scope:
            form["scope"] = kafka.sasl_oauthbearer_scope
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
        async with (
            aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session,
            session.post(
                kafka.sasl_oauthbearer_token_endpoint_url,
                data=form,
                headers={"Authorization": _basic(kafka), "Accept": "application/json", "Accept-Encoding": "identity"},
                ssl=self._context,
                allow_redirects=False,  # the secret goes to the address that was set, and nowhere else
            ) as response,
        ):
            body = bytearray()
            async for part in response.content.iter_any():
                body += part
                if len(body) > _LARGEST_ANSWER:
                    break
            return response.status, bytes(body)


class _TokenResponse(BaseModel):
    """The endpoint's answer; `expires_in` in seconds. What a header cannot carry is no token (RFC 6750, 2.1)."""

    access_token: str = Field(pattern=r"^[A-Za-z0-9._~+/-]+=*$")
    expires_in: float | None = Field(default=None, gt=0, allow_inf_nan=False)


def _basic(kafka: KafkaSettings) -> str:
    credentials = (kafka.sasl_oauthbearer_client_id, kafka.sasl_oauthbearer_client_secret.get_secret_value())
    if kafka.sasl_oauthbearer_header_urlencode:
        credentials = (quote_plus(credentials[0]), quote_plus(credentials[1]))
    return f"Basic {b64encode(':'.join(credentials).encode()).decode()}"


def _code(body: bytes) -> str:
    """The error code, where it is one of OAuth's: anything else that an endpoint says might quote a secret."""
    return next((f", {code}" for code in _CODES if f'"{code}"'.encode() in body), "")
