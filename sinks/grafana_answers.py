"""Map answers of Grafana's HTTP API to results and errors: continue, retry, or change something."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import MaxRetryError

from ragtide.evaluators.errors import ConfigError, Refused, Transient

_BUSY = frozenset({408, 429, 500, 502, 503, 504})


class Busy(Transient):
    """Grafana is away or busy; `status` is None without an answer. `may_have_arrived`: it may have done the request."""

    def __init__(
        self, message: str, status: int | None = None, retry_after_s: float = 0.0, *, may_have_arrived: bool = True
    ) -> None:
        super().__init__(message)
        self.status = status
        self.may_have_arrived = may_have_arrived
        self.retry_after_s = retry_after_s


class NotFound(Refused):
    """Grafana has nothing at this path."""


class Forbidden(ConfigError):
    """The service account lacks a permission."""


def reader(name: str, redact: Callable[[str], str]) -> Callable[..., requests.Response]:
    """Make a response hook that passes only answers that grafana-api can read, and raises errors for the others.

    grafana-api fails on empty bodies and on errors that are not JSON. `name` is the server's name in errors; `redact`
    is applied to the whole message of the server before it is shortened.
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
        what = f"{name} answered {request} with {status}: {_message(response, redact)}"
        if status in _BUSY or status > 500:
            pause_s = _seconds(response.headers.get("Retry-After", ""))
            raise Busy(what, status, pause_s, may_have_arrived=status != 429)
        if status == 401:
            raise ConfigError(f"{what}. Make a new service account token and set grafana.token")
        if status == 403:
            raise Forbidden(f"{what}. Give the service account the role Editor (data sources need Admin)")
        raise (NotFound if status == 404 else Refused)(what)

    return read


def short(text: object, longest: int = 200) -> str:
    """On one line, at most that many characters."""
    return " ".join(str(text).split())[:longest] or "no message"


def unanswered(error: requests.exceptions.RequestException, call: str, timeout_s: float) -> Busy:
    """Make the error of a call without an answer: none in time, no connection, or a connection that ended."""
    if isinstance(error, requests.exceptions.ReadTimeout):
        return Busy(f"{call} within grafana.timeout_s ({timeout_s:g} s)")
    was_connected = not isinstance(next(iter(error.args), None), MaxRetryError)  # for us, urllib3 only tries to connect
    why = "the connection ended" if was_connected else "no connection"
    return Busy(f"{call}: {why} ({type(error).__name__})", may_have_arrived=was_connected)


def _message(response: requests.Response, redact: Callable[[str], str]) -> str:
    """The server's message, else the text of its page."""
    try:
        body = response.json()
    except ValueError:
        body = None
    if isinstance(body, dict):
        return short(redact(str(body.get("message", ""))))
    return short(re.sub(r"<[^>]*>", " ", redact(response.text)[:5000]))


def _seconds(retry_after: str) -> float:
    return float(retry_after) if retry_after.isdecimal() else 0.0
