"""Map answers of Grafana's HTTP API to results and errors: continue, retry, or change something."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

import requests

from ragtide.evaluators.errors import ConfigError, Refused, Transient

_BUSY = frozenset({408, 429, 500, 502, 503, 504})
_URL = re.compile(r"(https?://)(?:[^\s/?#@\"'<>]*@)?([^\s/?#@\"'<>]+)([^\s\"'<>]*)")
_TOKEN = re.compile(r"[A-Za-z0-9_+/=-]{20,}")


class Busy(Transient):
    """Grafana is away or busy; `status` is None without an answer."""

    def __init__(self, message: str, status: int | None = None, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s


class NotFound(Refused):
    """Grafana has nothing at this path."""


class Forbidden(ConfigError):
    """The service account lacks a permission."""


def reader(name: str) -> Callable[..., requests.Response]:
    """Make a response hook that passes only answers that grafana-api can read, and raises errors for the others.

    grafana-api fails on empty bodies and on errors that are not JSON. `name` is the server's name in errors.
    """

    def read(response: requests.Response, **_: object) -> requests.Response:
        status = response.status_code
        if response.is_redirect:  # following it would send the token elsewhere, and a POST would become a GET
            target = urlsplit(response.headers.get("Location", ""))
            raise ConfigError(f"{name} redirects to {target.scheme}://{target.netloc}: set grafana.url to that")
        if status < 400:
            if not response.content:
                response._content = b"{}"
            return response
        request = f"{response.request.method} {urlsplit(response.url).path}"
        what = f"{name} answered {request} with {status}: {_message(response)}"
        if status in _BUSY or status > 500:
            raise Busy(what, status, _seconds(response.headers.get("Retry-After", "")))
        if status == 401:
            raise ConfigError(f"{what}. Make a new service account token and set grafana.token")
        if status == 403:
            raise Forbidden(f"{what}. Give the service account the role Editor (data sources need Admin)")
        raise (NotFound if status == 404 else Refused)(what)

    return read


def short(text: object, longest: int = 200) -> str:
    """On one line, at most that many characters."""
    return " ".join(str(text).split())[:longest] or "no message"


def without_secrets(text: str) -> str:
    """Cut URLs after their host, and mask long words of letters and digits: Grafana quotes where it sends, and to whom.

    The host and the port stay, so that a name that is not found can be read.
    """
    hosts = _URL.sub(lambda url: f"{url[1]}{url[2]}" + ("/…" if url[3] else ""), text)
    return _TOKEN.sub(lambda word: "…" if _is_mixed(word[0]) else word[0], hosts)


def _is_mixed(word: str) -> bool:
    return any(map(str.isdigit, word)) and any(map(str.isalpha, word))


def _message(response: requests.Response) -> str:
    """The server's message, else the text of its page; without secrets."""
    try:
        body = response.json()
    except ValueError:
        body = None
    said = body.get("message", "") if isinstance(body, dict) else re.sub(r"<[^>]*>", " ", response.text[:5000])
    return short(without_secrets(str(said)))


def _seconds(retry_after: str) -> float:
    return float(retry_after) if retry_after.isdecimal() else 0.0
