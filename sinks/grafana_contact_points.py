"""Calls of Grafana 13's API for contact points: list them, and send an alert through an integration of one.

Grafana's errors quote addresses and tokens of those it sends to. They are redacted before anything shortens them.
"""

import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ragtide.evaluators.errors import Refused, Transient
from ragtide.sinks.grafana import GrafanaGateway, Json, uid_path
from ragtide.sinks.grafana_answers import Busy, Forbidden, NotFound
from ragtide.sinks.settings import GrafanaSettings

READ_PERMISSION = "alert.notifications.receivers:read"
_NAMESPACES = "s/notifications.alerting.grafana.app/v1beta1/namespaces"  # goes on after /api: resources are in /apis
_TEST_FIELDS = ("uid", "type", "version", "disableResolveMessage", "settings", "secureFields")
_OLDER = "Testing contact points needs Grafana 13 or newer. In an older one, use Alerting, Contact points, Test"
_PERMISSIONS = (
    f"Testing contact points needs permissions {READ_PERMISSION}, alert.notifications.receivers:write and "
    "alert.notifications.receivers.test:create, which role Editor has"
)
_URL = re.compile(r"(https?://)(?:[^\s/?#@\"'<>]*@)?([^\s/?#@\"'<>]+)([^\s\"'<>]*)")
_TOKEN = re.compile(r"[A-Za-z0-9_+/=-]{20,}")


class TooOld(Refused):
    """Grafana lacks the API of contact points."""


@dataclass(frozen=True, slots=True)
class Integration:
    """An address of a contact point. `document` is the part of Grafana's that a test takes, without secrets."""

    type: str
    document: Json


@dataclass(frozen=True, slots=True)
class Receiver:
    """A contact point. `name` is that of the resource, people see `title`."""

    name: str
    title: str
    integrations: tuple[Integration, ...]


class ContactPointGateway(GrafanaGateway):
    """The gateway with the calls of contact points; no error has one of `secrets`, nor what may be another one."""

    _oldest_version = 13
    _namespace = ""  # once it is known

    def __init__(
        self, settings: GrafanaSettings, secrets: Collection[str] = (), sleep: Callable[[float], None] = time.sleep
    ) -> None:
        super().__init__(settings, sleep)
        self._secrets = secrets

    def receivers(self) -> list[Receiver]:
        """Every contact point that the token may read. Raises `TooOld` before Grafana 13."""
        try:
            found = self._call("GET", self._receivers_path())
        except NotFound as error:
            raise TooOld(f"{error}. {_OLDER}") from error
        except Forbidden as error:
            raise Forbidden(f"{error}. {_PERMISSIONS}") from error
        return [self._receiver(one) for one in self._member(found, "items", list)]

    def test_integration(
        self, receiver: Receiver, integration: Integration, labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> str:
        """Send an alert through an integration of a contact point.

        Return why it failed, of any length, or an empty text if it was sent. Grafana fills in the secrets that it
        stores. Never sent twice by one call.
        """
        path = f"{self._receivers_path()}/{uid_path(receiver.name)}/test"
        alert = {"labels": dict(labels), "annotations": dict(annotations)}
        try:
            found = self._call("POST", path, {"integration": integration.document, "alert": alert}, repeatable=False)
        except Forbidden as error:
            raise Forbidden(f"{error}. {_PERMISSIONS}") from error
        except Busy as error:
            if not error.may_have_arrived:
                raise
            raise Transient(f"{error}. The alert may have been sent") from error
        is_sent = self._member(found, "status", str) == "success"
        return "" if is_sent else self._redact(str(found.get("error") or "Grafana gave no reason"))

    def _receivers_path(self) -> str:
        """Return the path of the contact points. Only Grafana knows the name of the organization's namespace."""
        if not self._namespace:
            self._namespace = self._member(self._call("GET", "/frontend/settings"), "namespace", str)
        return f"{_NAMESPACES}/{uid_path(self._namespace)}/receivers"

    def _receiver(self, found: Any) -> Receiver:
        resource = self._expect_type(found, dict, "items")
        metadata, spec = self._member(resource, "metadata", dict), self._member(resource, "spec", dict)
        integrations = map(self._integration, self._member(spec, "integrations", list))
        return Receiver(self._member(metadata, "name", str), self._member(spec, "title", str), tuple(integrations))

    def _integration(self, found: Any) -> Integration:
        stored = self._expect_type(found, dict, "integrations")
        document = {name: stored[name] for name in _TEST_FIELDS if name in stored}
        return Integration(self._member(stored, "type", str), document)

    def _redact(self, text: str) -> str:
        return redact(text, self._secrets)


def redact(text: str, secrets: Collection[str]) -> str:
    """Remove these secrets, cut URLs after their host, and mask long words of letters and digits.

    The host and the port stay, so that people see which name was not found.
    """
    for secret in sorted(secrets, key=len, reverse=True):  # one may be a part of another
        url = _URL.match(secret)
        text = text.replace(secret, f"{url[1]}{url[2]}/…" if url else "…")
    text = _URL.sub(lambda url: f"{url[1]}{url[2]}" + ("/…" if url[3] else ""), text)
    return _TOKEN.sub(lambda word: "…" if _is_mixed(word[0]) else word[0], text)


def _is_mixed(word: str) -> bool:
    return any(map(str.isdigit, word)) and any(map(str.isalpha, word))
