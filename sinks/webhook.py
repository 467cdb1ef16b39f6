"""Post signed messages to a webhook, as the Standard Webhooks specification has it; redirects are never followed.

Headers `webhook-id`, `webhook-timestamp` (Unix seconds) and `webhook-signature`: `v1,` and the base64 of HMAC-SHA256
over `ID.TIMESTAMP.BODY`. The time in the signature lets receivers refuse a message that somebody replays later.
"""

import asyncio
import base64
import hashlib
import hmac
import re
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ragtide.evaluators.errors import ConfigError, Refused, Transient
from ragtide.sinks.retry_after import retry_after_s
from ragtide.sinks.settings import WebhookEndpoint, signing_key

if TYPE_CHECKING:
    import aiohttp

CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
_RETRIED = frozenset({408, 425, 429})
_AWAY = frozenset({429, 502, 503, 504})  # the receiver as a whole, not this message
_CREDENTIALS = frozenset({401, 403, 407})
_LONGEST_ANSWER = 2000  # bytes that are read for the reason
_LONGEST_RETRY_AFTER_S = 3600.0


class Busy(Transient):
    """The receiver is away or busy. `is_away`: not because of this message."""

    def __init__(self, message: str, *, is_away: bool, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.is_away = is_away
        self.retry_after_s = retry_after_s


class WebhookClient:
    """Posts to one receiver. Every call raises `Transient`, `ConfigError` or `Refused`, nothing else.

    `where` names the receiver in errors: scheme and host, since the path may hold a token. `clock` is Unix time. Not
    for use by several threads at once, nor from an event loop.
    """

    def __init__(self, endpoint: WebhookEndpoint, setting: str, clock: Callable[[], float] = time.time) -> None:
        self._endpoint = endpoint
        self._setting = setting
        self._clock = clock
        url = urlsplit(endpoint.url.get_secret_value())
        self.where = f"{url.scheme}://{url.netloc}"
        self._runner: asyncio.Runner | None = None
        self._session: aiohttp.ClientSession | None = None

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Keep connections open for several messages."""
        context = self._tls()
        with asyncio.Runner() as runner:
            self._runner = runner
            try:
                self._session = runner.run(_open(context))
                yield
            finally:
                if self._session is not None:
                    runner.run(self._session.close())
                self._runner = self._session = None

    def post(self, message_id: str, body: bytes) -> int:
        """Post a message and return the status of the answer, one of 2xx."""
        if self._runner is None:
            with self.connected():
                return self.post(message_id, body)
        return self._runner.run(self._post(message_id, body))

    async def _post(self, message_id: str, body: bytes) -> int:
        import aiohttp

        session = self._session
        assert session is not None
        timeout_s = self._endpoint.timeout_s
        try:
            async with session.post(
                self._endpoint.url.get_secret_value(),
                data=body,
                headers=self._headers(message_id, body),
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=timeout_s),
            ) as answer:
                status = answer.status
                if status // 100 == 2:
                    return status
                reason = _readable(await answer.content.read(_LONGEST_ANSWER)) if status // 100 != 3 else ""
                raise self._error(status, reason, dict(answer.headers))
        except TimeoutError:
            raise Busy(f"{self.where} did not answer within {timeout_s:g} s", is_away=True) from None
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
            raise ConfigError(
                f"{self.where}: no trusted TLS connection ({_tls_reason(error)}); check its certificate, or set "
                f"{self._setting}.ca_file"
            ) from None
        except (aiohttp.ClientError, OSError) as error:  # their messages may quote the URL
            raise Busy(f"{self.where} cannot be reached ({type(error).__name__})", is_away=True) from None

    def _headers(self, message_id: str, body: bytes) -> dict[str, str]:
        endpoint, now = self._endpoint, int(self._clock())
        own = {name: value.get_secret_value() for name, value in endpoint.headers.items()}
        own |= {"Content-Type": CONTENT_TYPE, "User-Agent": "ragtide", "webhook-id": message_id}
        own["webhook-timestamp"] = str(now)
        secrets = (endpoint.secret.get_secret_value(), endpoint.previous_secret.get_secret_value())
        if signed := signature(filter(None, secrets), message_id, now, body):
            own["webhook-signature"] = signed
        return own

    def _tls(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self._endpoint.ca_file or None)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"{self._setting}.ca_file = {self._endpoint.ca_file} cannot be used: {type(error).__name__}; it needs "
                "certificates as PEM"
            ) from None

    def _error(self, status: int, reason: str, headers: dict[str, str]) -> Exception:
        what = f"{self.where} answered {status}{f': {reason}' if reason else ''}"
        if status // 100 == 3:
            location = urlsplit(headers.get("Location", ""))
            target = f"{location.scheme}://{location.netloc}" if location.netloc else "another path"
            return ConfigError(
                f"{self.where} redirects to {target}, which is not followed: set {self._setting}.url to it"
            )
        if status in _CREDENTIALS:
            return ConfigError(f"{what}. Check {self._setting}.secret, .headers and .url")
        if status in _RETRIED or status >= 500 or status < 200:
            wait_s = retry_after_s(headers.get("Retry-After"), self._clock()) or 0.0
            return Busy(what, is_away=status in _AWAY, retry_after_s=min(wait_s, _LONGEST_RETRY_AFTER_S))
        return Refused(what)


def signature(secrets: Iterable[str], message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of header `webhook-signature`: one signature for each secret, separated by spaces."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    digests = (hmac.new(signing_key(secret), signed, hashlib.sha256).digest() for secret in secrets)
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


async def _open(context: ssl.SSLContext) -> "aiohttp.ClientSession":
    import aiohttp

    connector = aiohttp.TCPConnector(ssl=context, limit=1)
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())


def _readable(body: bytes) -> str:
    """The answer's text on one line, without tags, at most 200 characters."""
    text = re.sub(
        r"<(script|style)\b.*?</\1>|<[^>]*>", " ", body.decode(errors="replace"), flags=re.DOTALL | re.IGNORECASE
    )
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())[:200]


def _tls_reason(error: Exception) -> str:
    found = getattr(error, "certificate_error", None) or error.__cause__
    return str(getattr(found, "verify_message", "") or getattr(found, "reason", "") or type(error).__name__)
