"""Calls of Grafana's HTTP API, on grafana-api; only this file knows its client.

grafana-api 1.0.3 is old: of it we use the session, the token and the verbs, with uid paths; answers are read here.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import SplitResult, quote, urlencode, urlsplit

import requests
from grafana_api.grafana_api import GrafanaAPI

from ragtide.evaluators.errors import ConfigError, Refused
from ragtide.sinks.grafana_answers import Busy, NotFound, reader, short, unanswered
from ragtide.sinks.settings import GrafanaSettings

T = TypeVar("T")
Json = dict[str, Any]  # a document of Grafana's own: a dashboard, a data source

_PAUSES_S = (0.5, 1.0, 2.0)  # between the attempts of one call
_LONGEST_PAUSE_S = 10.0  # a longer Retry-After is left to the next run of the job


@dataclass(frozen=True, slots=True)
class Annotation:
    """An annotation on the time axis; a region if `end` is after `start`."""

    id: int
    text: str
    tags: tuple[str, ...]
    start: datetime
    end: datetime


class GrafanaGateway:
    """Grafana over HTTP. Every call raises `Transient`, `ConfigError` or `Refused`, nothing else.

    Not for use by several threads at once: make one for each.
    """

    _oldest_version = 11  # that answers all calls

    def __init__(self, settings: GrafanaSettings, sleep: Callable[[float], None] = time.sleep) -> None:
        url = _base(settings.url)
        token = settings.token.get_secret_value()
        if not token:
            raise ConfigError(f"grafana.token is not set: make a service account token, role Editor, at {url.netloc}")
        if not token.isascii() or not token.isprintable():  # the HTTP client would quote it in its own error
            raise ConfigError("grafana.token holds characters that no token has: was it copied with a line break?")
        self._name = f"Grafana at {url.scheme}://{url.netloc}{url.path.rstrip('/')}"
        self._sleep = sleep
        prefix = f"{url.path.strip('/')}/".lstrip("/")
        self._api = GrafanaAPI(token, url.netloc, None, prefix, url.scheme, True, settings.timeout_s)
        self._api.s.headers.update({"User-Agent": "ragtide", "X-Grafana-Org-Id": str(settings.org_id)})
        self._api.s.hooks["response"].append(reader(self._name, self._redact))

    def check(self) -> str:
        """Check the connection and the token; return one line with address and version."""
        version = self._call("GET", "/health").get("version", "unknown")
        self._call("GET", "/folders?limit=1", wants=list)  # /health answers without a token
        return f"{self._name}, version {version}"

    def ensure_folder(self, uid: str, title: str) -> None:
        """Create the folder if it is missing; an existing one keeps its title."""
        if self._find(f"/folders/{uid_path(uid)}") is None:
            try:
                self._call("POST", "/folders", {"uid": uid, "title": title})
            except Refused:  # another process was quicker, or a repeated call had arrived the first time
                if self._find(f"/folders/{uid_path(uid)}") is None:
                    raise

    def dashboard(self, uid: str) -> Json | None:
        """The stored dashboard, or None."""
        found = self._find(f"/dashboards/uid/{uid_path(uid)}")
        return None if found is None else self._member(found, "dashboard", dict)

    def put_dashboard(self, dashboard: Json, folder_uid: str, message: str) -> None:
        """Make or overwrite the dashboard of this `uid`."""
        body = {"dashboard": {**dashboard, "id": None}, "folderUid": folder_uid, "overwrite": True, "message": message}
        self._call("POST", "/dashboards/db", body)

    def put_data_source(self, data_source: Json) -> None:
        """Make or overwrite the data source of this `uid`."""
        path = f"/datasources/uid/{uid_path(data_source['uid'])}"
        if self._find(path) is not None:
            self._call("PUT", path, data_source)
            return
        try:
            self._call("POST", "/datasources", data_source)
        except Refused:
            if self._find(path) is None:
                raise
            self._call("PUT", path, data_source)

    def find_annotations(self, *tags: str) -> list[Annotation]:
        """Annotations with all of the tags, oldest id first."""
        query = urlencode([("type", "annotation"), ("limit", 100), *(("tags", tag) for tag in tags)])
        found = self._call("GET", f"/annotations?{query}", wants=list)
        return sorted((self._annotation(each) for each in found), key=lambda each: each.id)

    def annotate(self, *, text: str, tags: Iterable[str], start: datetime, end: datetime) -> int:
        """Add one annotation to the whole organisation and return its id; never sent twice by one call.

        After `Transient` it may exist nevertheless: look for it before a retry.
        """
        body = {"text": text, "tags": list(tags), "time": _ms(start), "timeEnd": _ms(end)}
        return self._member(self._call("POST", "/annotations", body, repeatable=False), "id", int)

    def patch_annotation(
        self, annotation_id: int, *, text: str | None = None, tags: Iterable[str] = (), end: datetime | None = None
    ) -> bool:
        """Change the given fields; return False if the annotation does not exist any more."""
        changes = {"text": text, "tags": list(tags) or None, "timeEnd": None if end is None else _ms(end)}
        given = {key: value for key, value in changes.items() if value is not None}
        return self._unless_gone("PATCH", f"/annotations/{annotation_id}", given) is not None

    def delete_annotation(self, annotation_id: int) -> None:
        """Delete the annotation if it exists."""
        self._unless_gone("DELETE", f"/annotations/{annotation_id}")

    def _find(self, path: str) -> Json | None:
        found: Json | None = self._unless_gone("GET", path)
        return found

    def _unless_gone(
        self, verb: str, path: str, body: Json | None = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        try:
            return self._call(verb, path, body, headers=headers)
        except NotFound:
            return None

    def _call(
        self,
        verb: str,
        path: str,
        body: Json | None = None,
        *,
        repeatable: bool = True,
        wants: type = dict,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Call the API and return the answer's JSON; the only place with retries."""
        pauses_s = iter(_PAUSES_S)
        while True:
            try:
                return self._expect_type(self._once(verb, path, body, headers), wants, path)
            except Busy as busy:
                # Told to slow down, the server did nothing; after any other fault it may have done what was asked.
                again = repeatable or busy.status == 429
                pause_s = next(pauses_s, None)
                if pause_s is None or not again or busy.retry_after_s > _LONGEST_PAUSE_S:
                    raise
                self._sleep(max(pause_s, busy.retry_after_s))

    def _once(self, verb: str, path: str, body: Json | None, headers: Mapping[str, str] | None) -> Any:
        where = f"{verb} /api{path.split('?')[0]}"
        try:
            return getattr(self._api, verb)(path, json=body, headers=headers)
        except requests.exceptions.JSONDecodeError as error:
            raise ConfigError(
                f"{self._name} answered {where} with something else than JSON: is grafana.url a Grafana's?"
            ) from error
        except requests.exceptions.SSLError as error:
            raise ConfigError(
                f"{self._name}: no trusted TLS connection ({type(error).__name__}): {short(error)}"
            ) from error
        except requests.exceptions.RequestException as error:
            raise unanswered(error, f"{self._name} did not answer {where}", self._api.timeout) from error

    def _redact(self, text: str) -> str:
        """Return a message of Grafana's as errors may quote it."""
        return text

    def _annotation(self, found: Json) -> Annotation:
        start, end = found.get("time") or 0, found.get("timeEnd") or 0
        tags = tuple(found.get("tags") or ())
        return Annotation(self._member(found, "id", int), found.get("text", ""), tags, _utc(start), _utc(end or start))

    def _member(self, found: Json, key: str, wants: type[T]) -> T:
        return self._expect_type(found.get(key), wants, key)

    def _expect_type(self, found: object, wants: type[T], where: str) -> T:
        if not isinstance(found, wants):
            raise ConfigError(
                f"{self._name} gave a {type(found).__name__} where Grafana gives a {wants.__name__} ({where}): "
                f"is grafana.url a Grafana's, version {self._oldest_version} or newer?"
            )
        return found


def _base(url: str) -> SplitResult:
    try:
        base = urlsplit(url)
        valid = base.scheme in ("http", "https") and base.hostname and (base.port is None or base.port)
    except ValueError:
        valid = False
    if not valid or base.query or base.fragment:
        raise ConfigError("grafana.url: want a Grafana's base URL and nothing more, e.g. https://grafana.example.org")
    return base


def uid_path(uid: str) -> str:
    """Write a uid or a name as a part of a path."""
    return quote(uid, safe="")


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def _utc(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
