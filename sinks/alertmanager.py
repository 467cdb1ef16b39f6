"""Calls of Alertmanager's HTTP API, version 2. Nothing is retried here: the job does that.

Labels and annotations are what a deployment named; errors quote Alertmanager's answer in short, and never a credential.
"""

import re
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
import requests
from urllib3.exceptions import NewConnectionError

from ragtide.evaluators.errors import ConfigError, Refused, Transient
from ragtide.sinks.alertmanager_settings import AlertmanagerSettings
from ragtide.sinks.retry_after import retry_after_s

T = TypeVar("T")
_BUSY = frozenset({408, 425, 429})
_CONTENT = frozenset({400, 413, 422})  # what was posted is at fault, or one alert of it
_LONGEST_ANSWER = 8 << 20  # bytes


class Busy(Transient):
    """An Alertmanager is away or busy. `retry_after_s`: as long as it asked for; 0: it did not.

    `is_sent`: the request may have arrived; false if no connection was made.
    """

    def __init__(self, message: str, retry_after_s: float = 0.0, *, is_sent: bool = True) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.is_sent = is_sent


class Untrusted(ConfigError):
    """No TLS connection was made, so nothing was sent."""

    is_sent = False


class PostableAlert(msgspec.Struct, frozen=True, rename="camel"):
    """An alert as the API takes it. Resolved once `ends_at` is past."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_at: datetime
    ends_at: datetime
    generator_url: str | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="generatorURL")


class Matcher(msgspec.Struct, frozen=True, rename="camel"):
    """One condition of a silence; an alert without the label has an empty one."""

    name: str
    value: str
    is_regex: bool
    is_equal: bool = True


class _SilenceStatus(msgspec.Struct, frozen=True):
    state: str


class Silence(msgspec.Struct, frozen=True, rename="camel"):
    """A silence as the API lists it."""

    id: str
    matchers: tuple[Matcher, ...]
    starts_at: datetime
    ends_at: datetime
    created_by: str
    comment: str
    status: _SilenceStatus

    @property
    def is_active(self) -> bool:
        """Whether it has begun and not ended."""
        return self.status.state == "active"


class _Version(msgspec.Struct, frozen=True):
    version: str


class _Cluster(msgspec.Struct, frozen=True):
    status: str
    peers: tuple[Any, ...] = ()


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """Version and cluster of an Alertmanager, and since when its process runs."""

    uptime: datetime
    version_info: _Version
    cluster: _Cluster


@dataclass(frozen=True, slots=True)
class _Answer:
    body: bytes
    date: datetime | None


class AlertmanagerGateway:
    """One Alertmanager over HTTP. Every call raises `Busy`, `ConfigError` (`Untrusted`) or `Refused`, nothing else.

    Not for use by several threads at once: make one for each.
    """

    def __init__(self, url: str, settings: AlertmanagerSettings) -> None:
        self.url = url.rstrip("/")
        self.name = f"Alertmanager at {self.url}"
        self._timeout_s = settings.timeout_s
        self._session = requests.Session()
        self._session.headers.update({"User-Agent": "ragtide", "Accept": "application/json"})
        if settings.user:
            credentials = f"{settings.user}:{settings.password.get_secret_value()}".encode()
            self._session.auth = _Authorization(f"Basic {b64encode(credentials).decode()}")
        if token := settings.bearer_token.get_secret_value():
            if not token.isascii() or not token.isprintable():  # the HTTP client would quote it in its own error
                raise ConfigError("alertmanager.bearer_token holds characters that no token has: is it complete?")
            self._session.auth = _Authorization(f"Bearer {token}")
        self._verify: str | bool = str(_file(settings.ca_file, "ca_file")) if settings.ca_file else True
        if settings.cert_file:
            certificate = str(_file(settings.cert_file, "cert_file"))
            key = str(_file(settings.key_file, "key_file")) if settings.key_file else None
            self._session.cert = (certificate, key) if key else certificate

    def post(self, alerts: Sequence[PostableAlert]) -> datetime | None:
        """Post alerts; return Alertmanager's clock, to the second below; None if it does not tell.

        After `Refused` all valid ones of them may have been accepted, or none.
        """
        return self._call("POST", "alerts", msgspec.json.encode(alerts)).date

    def silences(self) -> list[Silence]:
        """List the silences, those that have ended too."""
        return self._read("silences", list[Silence])

    def status(self) -> Status:
        """Ask for version, cluster and the start of the process."""
        return self._read("status", Status)

    def check(self) -> str:
        """Check the connection and the credentials; return one line with address, version and cluster."""
        status = self.status()
        peers = len(status.cluster.peers)
        cluster = f", cluster {status.cluster.status} with {peers} members" if peers > 1 else ""
        return f"{self.name}, version {status.version_info.version}{cluster}"

    def close(self) -> None:
        """Release the connections."""
        self._session.close()

    def _read(self, path: str, wants: type[T]) -> T:
        try:
            return msgspec.json.decode(self._call("GET", path).body, type=wants)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{self.name} answered GET /api/v2/{path} with something else than Alertmanager does: is it one, "
                "version 0.22 or newer? (alertmanager.urls)"
            ) from error

    def _call(self, verb: str, path: str, body: bytes | None = None) -> _Answer:
        where = f"{verb} /api/v2/{path}"
        try:
            with self._session.request(
                verb,
                f"{self.url}/api/v2/{path}",
                data=body,
                headers={"Content-Type": "application/json"} if body is not None else {},
                timeout=self._timeout_s,
                allow_redirects=False,
                verify=self._verify,
                stream=True,
            ) as response:
                content = _content(response)
                self._raise_for(response, content, where)
                return _Answer(content, _date(response))
        except requests.exceptions.SSLError as error:
            raise Untrusted(
                f"{self.name}: no trusted TLS connection: {_reason(error)}. Set alertmanager.ca_file to the authority "
                "that signed its certificate, and alertmanager.cert_file if it asks for one"
            ) from error
        except requests.exceptions.Timeout as error:
            raise Busy(
                f"{self.name} did not answer {where} within {self._timeout_s:g} s; will be tried again",
                is_sent=not isinstance(error, requests.exceptions.ConnectTimeout),
            ) from error
        except requests.exceptions.ConnectionError as error:
            raise Busy(
                f"{self.name} cannot be reached ({type(error).__name__}); will be tried again",
                is_sent=not _is_unconnected(error),
            ) from error
        except requests.exceptions.RequestException as error:
            raise Busy(f"{self.name} did not answer {where} ({type(error).__name__}); will be tried again") from error

    def _raise_for(self, response: requests.Response, content: bytes, where: str) -> None:
        status = response.status_code
        if status < 300:
            return
        if response.is_redirect or status < 400:  # following it would send alerts and credentials elsewhere
            target = urlsplit(response.headers.get("Location", ""))
            to = f"to {target.scheme}://{target.netloc}" if target.netloc else "elsewhere"
            raise ConfigError(f"{self.name} redirects {where} {to}: set alertmanager.urls to the address that answers")
        what = f"{self.name} answered {where} with {status}: {_words(response, content)}"
        if status in _BUSY or status >= 500:
            raise Busy(what, retry_after_s(response.headers.get("Retry-After"), time.time()) or 0.0)
        if status in _CONTENT:
            raise Refused(what)
        if status in (401, 403):
            raise ConfigError(f"{what}. Correct alertmanager.user and password, or alertmanager.bearer_token")
        if status in (404, 405):
            raise ConfigError(f"{what}. Is it an Alertmanager, and is its path prefix in alertmanager.urls?")
        raise ConfigError(f"{what}. Alertmanager has no such answer: check alertmanager.urls and what lies between")


class _Authorization(requests.auth.AuthBase):
    """The header; as `auth` of the session, so that no `.netrc` replaces it."""

    def __init__(self, header: str) -> None:
        self._header = header

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = self._header
        return request


def _is_unconnected(error: requests.exceptions.ConnectionError) -> bool:
    """Whether no connection was made, so that nothing was sent."""
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return isinstance(reason, NewConnectionError)


def _content(response: requests.Response) -> bytes:
    """The answer's beginning: an endless one fills no memory."""
    body = b""
    for chunk in response.iter_content(8192):
        body += chunk
        if len(body) >= _LONGEST_ANSWER:
            break
    return body


def _file(path: Path, name: str) -> Path:
    if not path.is_file():
        raise ConfigError(f"alertmanager.{name}: no such file: {path}")
    return path


def _reason(error: Exception) -> str:
    """The innermost words of a TLS error: requests and urllib3 wrap them in their own."""
    for pattern in (r"certificate verify failed: ([^('\"]+)", r"\[SSL: ([A-Z0-9_]+)\]"):
        if found := re.search(pattern, str(error)):
            return " ".join(found[1].replace("_", " ").split())[:200]
    return type(error).__name__


def _words(response: requests.Response, content: bytes) -> str:
    """The server's message, else the text of its page, on one line."""
    text = content[:5000].decode("utf-8", "replace")
    if response.headers.get("Content-Type", "").startswith("application/json"):
        try:
            said = msgspec.json.decode(content)
            text = said if isinstance(said, str) else str(said.get("message", text)) if isinstance(said, dict) else text
        except msgspec.DecodeError:
            pass
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())[:200] or "no message"


def _date(response: requests.Response) -> datetime | None:
    try:
        return parsedate_to_datetime(response.headers["Date"]).astimezone(UTC)
    except (KeyError, TypeError, ValueError):
        return None
