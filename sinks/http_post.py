"""Post bodies to one URL over kept connections; redirects are never followed, and no error quotes the URL's path."""

import asyncio
import re
import ssl
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from pydantic import SecretStr

from ragtide.evaluators.errors import ConfigError, Refused, Transient
from ragtide.sinks.retry_after import retry_after_s

if TYPE_CHECKING:
    import aiohttp

_RETRIED = frozenset({408, 425, 429})
_AWAY = frozenset({429, 502, 503, 504})  # the receiver as a whole, not this message
_CREDENTIALS = frozenset({401, 403, 407})
_LONGEST_REASON, _LONGEST_ANSWER = 2_000, 65_536  # bytes that are read of an error, of an answer of 2xx
_LONGEST_RETRY_AFTER_S = 3600.0


class Busy(Transient):
    """The receiver is away or busy. `is_away`: not because of this message."""

    def __init__(self, message: str, *, is_away: bool, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.is_away = is_away
        self.retry_after_s = retry_after_s


class StatusRefused(Refused):
    """The receiver answered with this status, and will never accept the message."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Answer(NamedTuple):
    """An answer of 2xx; `body` is its beginning."""

    status: int
    body: bytes


class HttpPoster:
    """Posts to one receiver. Every call raises `Transient`, `ConfigError` or `Refused`, nothing else.

    `where` names the receiver in errors: scheme and host, since the path may hold a token. `setting` is the section
    with `url` and `ca_file`; `credentials` says which settings have them. `clock` is Unix time. `retried`: the only
    statuses after which the same message may be accepted; None: 408, 425, 429 and 5xx. Not for use by several threads
    at once, nor from an event loop.
    """

    def __init__(
        self,
        url: SecretStr,
        ca_file: str,
        timeout_s: float,
        setting: str,
        credentials: str,
        clock: Callable[[], float] = time.time,
        retried: Collection[int] | None = None,
    ) -> None:
        self._url = url
        self._retried = retried
        self._ca_file = ca_file
        self._timeout_s = timeout_s
        self._setting = setting
        self._credentials = credentials
        self._clock = clock
        parts = urlsplit(url.get_secret_value())
        self.where = f"{parts.scheme}://{parts.netloc}"
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

    def post(self, body: bytes, headers: Mapping[str, str], *, reads_answer: bool = False) -> Answer:
        """Post a message and return the answer, one of 2xx. Unless `reads_answer`, its body may be only a part."""
        if self._runner is None:
            with self.connected():
                return self.post(body, headers, reads_answer=reads_answer)
        return self._runner.run(self._post(body, headers, reads_answer=reads_answer))

    async def _post(self, body: bytes, headers: Mapping[str, str], *, reads_answer: bool) -> Answer:
        import aiohttp

        session = self._session
        assert session is not None
        try:
            async with session.post(
                self._url.get_secret_value(),
                data=body,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=self._timeout_s),
            ) as answer:
                status = answer.status
                if status // 100 == 2:
                    content, most = answer.content, _LONGEST_ANSWER
                    return Answer(status, await (_read_all(content, most) if reads_answer else content.read(most)))
                reason = await answer.content.read(_LONGEST_REASON) if status // 100 != 3 else b""
                raise self._error(status, _readable(reason), dict(answer.headers))
        except TimeoutError:
            raise Busy(f"{self.where} did not answer within {self._timeout_s:g} s", is_away=True) from None
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
            raise ConfigError(
                f"{self.where}: no trusted TLS connection ({_tls_reason(error)}); check its certificate, or set "
                f"{self._setting}.ca_file"
            ) from None
        except (aiohttp.ClientError, OSError) as error:  # their messages may quote the URL
            raise Busy(f"{self.where} cannot be reached ({type(error).__name__})", is_away=True) from None

    def _tls(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self._ca_file or None)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"{self._setting}.ca_file = {self._ca_file} cannot be used: {type(error).__name__}; it needs "
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
            return ConfigError(f"{what}. Check {self._credentials}")
        if self._is_retried(status):
            wait_s = retry_after_s(headers.get("Retry-After"), self._clock()) or 0.0
            return Busy(what, is_away=status in _AWAY, retry_after_s=min(wait_s, _LONGEST_RETRY_AFTER_S))
        return StatusRefused(what, status)

    def _is_retried(self, status: int) -> bool:
        if self._retried is not None:
            return status in self._retried
        return status in _RETRIED or status >= 500 or status < 200


async def _open(context: ssl.SSLContext) -> "aiohttp.ClientSession":
    import aiohttp

    connector = aiohttp.TCPConnector(ssl=context, limit=1)
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())


async def _read_all(content: "aiohttp.StreamReader", most: int) -> bytes:
    """Read to the end, or to the limit; `read` returns as soon as something arrived."""
    body = bytearray()
    while len(body) < most and (some := await content.read(most - len(body))):
        body += some
    return bytes(body)


def _readable(body: bytes) -> str:
    """The answer's text on one line, without tags, at most 200 characters."""
    text = re.sub(
        r"<(script|style)\b.*?</\1>|<[^>]*>", " ", body.decode(errors="replace"), flags=re.DOTALL | re.IGNORECASE
    )
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())[:200]


def _tls_reason(error: Exception) -> str:
    found = getattr(error, "certificate_error", None) or error.__cause__
    return str(getattr(found, "verify_message", "") or getattr(found, "reason", "") or type(error).__name__)
