"""What every request to an endpoint needs: its session, the body of its answer, and what a failed attempt means."""

import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.judge.settings import JudgeEndpoint
from ragtide.sinks.retry_after import retry_after_s
from ragtide.stream.judge.protocol import error_code

MOST_BYTES = 4 * 1024 * 1024  # of an answer
JSON = {"Content-Type": "application/json"}
UNKNOWN_FIELD = frozenset((400, 422, 501))  # statuses of endpoints that do not know response_format
_AGAIN = frozenset((408, 425))  # and every 5xx
_THROTTLED = 429


class CallFailed(Exception):
    """A call has no answer. `kind` and `detail` are those of the outcome; neither quotes the request or the answer."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind, self.detail = kind, detail


@dataclass(frozen=True, slots=True)
class Miss:
    """A failed attempt. `again`: another may succeed. `broken`: it counts for the breaker. `lost`: it may be billed."""

    kind: str
    why: str
    status: int = 0
    again: bool = False
    broken: bool = False
    lost: bool = False
    wait_s: float | None = None  # asked for by the endpoint


def open_session(settings: JudgeEndpoint, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientSession:
    """Return a session with the key, the headers and the certificates of the endpoint."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=certificates(settings.ca_file)),
        headers=_headers(settings),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=timeout,
    )


def check_certificates(setting: str, ca_file: Path | None) -> None:
    """Raise `ConfigError` if the file of certificates cannot be used."""
    try:
        certificates(ca_file)
    except OSError as error:  # SSLError is one
        raise ConfigError(f"{setting}: {ca_file} cannot be used: {type(error).__name__}") from None


def certificates(ca_file: Path | None) -> ssl.SSLContext | bool:
    """Return what an endpoint's certificate is checked by. Raises `OSError`."""
    return ssl.create_default_context(cafile=ca_file) if ca_file else True


def _headers(settings: JudgeEndpoint) -> dict[str, str]:
    headers: dict[str, str] = {}
    if key := settings.api_key.get_secret_value().strip():
        headers |= {settings.api_key_header: key} if settings.api_key_header else {"Authorization": f"Bearer {key}"}
    return headers | {name: value.get_secret_value() for name, value in settings.headers.items()}


def is_passing(status: int) -> bool:
    """Whether a request with this status may succeed if it is sent again."""
    return status == _THROTTLED or status in _AGAIN or status >= 500


async def read_body(answer: aiohttp.ClientResponse) -> bytes | None:
    """Return the body, or None if it is too large."""
    read = bytearray()
    async for part in answer.content.iter_any():
        read += part
        if len(read) > MOST_BYTES:
            answer.close()
            return None
    return bytes(read)


def lost_connection(error: Exception) -> Miss:
    """Say that a request got no answer."""
    why, lost = f"no connection ({type(error).__name__})", not isinstance(error, aiohttp.ClientConnectorError)
    return Miss("judge_unavailable", why, again=True, broken=True, lost=lost)


def rejected(status: int, headers: Mapping[str, str], body: bytes) -> Miss:
    """Say what a status other than 200 means."""
    code = error_code(body)
    why = f"status {status}{f' ({code})' if code else ''}"
    wait_s = retry_after_s(headers.get("Retry-After"), time.time())
    if status == _THROTTLED:
        return Miss("judge_throttled", why, status, again=True, wait_s=wait_s)
    if is_passing(status):
        return Miss("judge_unavailable", why, status, again=True, broken=True, wait_s=wait_s)
    return Miss("judge_rejected", why, status)
