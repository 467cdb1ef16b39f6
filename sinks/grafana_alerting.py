"""Calls of Grafana's provisioning API of alerting. What it makes can be edited in Grafana, as if made there.

Contact points are tested by another API, that of Grafana 13 for resources of alerting.
"""

from collections.abc import Mapping
from typing import Any

from ragtide.evaluators.errors import Refused, Transient
from ragtide.sinks.grafana import GrafanaGateway, Json, uid_path
from ragtide.sinks.grafana_answers import Busy, Forbidden, NotFound, without_secrets

_BASE = "/v1/provisioning"
_RESOURCES = "s/notifications.alerting.grafana.app/v1beta1"  # goes on after /api: resources are below /apis
_TESTED = ("uid", "type", "version", "disableResolveMessage", "settings", "secureFields")  # what the test takes
_VERSION = (
    "To test contact points from here takes Grafana 13 or newer. In an older one, use Alerting, Contact points, Test"
)
_NEEDS = (
    "To test contact points it needs permissions alert.notifications.receivers:read and "
    "alert.notifications.receivers.test:create, which role Editor has"
)
_EDITABLE = {"X-Disable-Provenance": "true"}  # else Grafana marks what is pushed as read-only


class AlertingGateway(GrafanaGateway):
    """The gateway with the calls of alerting; the same errors, and the same rule for threads."""

    _namespace = ""  # once it is known

    def rules(self) -> list[Json]:
        """Every alert rule of the organisation."""
        found: list[Json] = self._call("GET", f"{_BASE}/alert-rules", wants=list)
        return found

    def delete_rule(self, uid: str) -> None:
        """Delete the rule if it exists."""
        self._unless_gone("DELETE", f"{_BASE}/alert-rules/{uid_path(uid)}", headers=_EDITABLE)

    def rule_group(self, folder_uid: str, name: str) -> Json | None:
        """The stored group, or None."""
        return self._find(_group_path(folder_uid, name))

    def put_rule_group(self, group: Json) -> None:
        """Make or replace the group of this title in its folder: rules that it does not name are deleted."""
        self._write("PUT", _group_path(group["folderUid"], group["title"]), group)

    def contact_points(self) -> list[Json]:
        """Every contact point of the organisation, without its secrets."""
        found: list[Json] = self._call("GET", f"{_BASE}/contact-points", wants=list)
        return found

    def add_contact_point(self, point: Json) -> None:
        """Make the contact point of this `uid`."""
        try:
            self._write("POST", f"{_BASE}/contact-points", point)
        except Refused:  # a repeated call had arrived the first time
            if point["uid"] not in [found["uid"] for found in self.contact_points()]:
                raise
            self.put_contact_point(point)

    def put_contact_point(self, point: Json) -> None:
        """Overwrite the contact point of this `uid`."""
        self._write("PUT", f"{_BASE}/contact-points/{uid_path(point['uid'])}", point)

    def template(self, name: str) -> Json | None:
        """The stored template group, or None."""
        return self._find(f"{_BASE}/templates/{uid_path(name)}")

    def put_template(self, template: Json) -> None:
        """Make or overwrite the template group of this `name`."""
        self._write("PUT", f"{_BASE}/templates/{uid_path(template['name'])}", {"template": template["template"]})

    def mute_timing(self, name: str) -> Json | None:
        """The stored mute timing, or None."""
        return self._find(f"{_BASE}/mute-timings/{uid_path(name)}")

    def add_mute_timing(self, timing: Json) -> None:
        """Make the mute timing of this `name`."""
        try:
            self._write("POST", f"{_BASE}/mute-timings", timing)
        except Refused:
            if self.mute_timing(timing["name"]) is None:
                raise
            self.put_mute_timing(timing)

    def put_mute_timing(self, timing: Json) -> None:
        """Overwrite the mute timing of this `name`."""
        self._write("PUT", f"{_BASE}/mute-timings/{uid_path(timing['name'])}", timing)

    def policies(self) -> Json:
        """The organisation's whole tree of notification policies."""
        found: Json = self._call("GET", f"{_BASE}/policies")
        return found

    def put_policies(self, tree: Json) -> None:
        """Replace the organisation's whole tree."""
        self._write("PUT", f"{_BASE}/policies", tree)

    def receivers(self) -> list[Json]:
        """Every contact point with its integrations, secrets by name only. `Refused` before Grafana 13."""
        return self._member(self._of_receivers("GET", ""), "items", list)

    def test_integration(
        self, receiver: str, integration: Json, labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> str:
        """Send an alert through an integration of a contact point, both as `receivers` has them.

        Return why it failed, of any length, or an empty text if it was sent. Grafana fills in the secrets that it
        stores. Never sent twice by one call.
        """
        sent = {name: integration[name] for name in _TESTED if name in integration}
        body = {"integration": sent, "alert": {"labels": dict(labels), "annotations": dict(annotations)}}
        found = self._of_receivers("POST", f"/{uid_path(receiver)}/test", body)
        is_sent = self._member(found, "status", str) == "success"
        return "" if is_sent else without_secrets(str(found.get("error") or "it gave no reason"))

    def _of_receivers(self, verb: str, path: str, body: Json | None = None) -> Any:
        """Call the API of contact points. Only Grafana knows the name of the organisation's namespace."""
        if not self._namespace:
            self._namespace = self._member(self._call("GET", "/frontend/settings"), "namespace", str)
        whole = f"{_RESOURCES}/namespaces/{uid_path(self._namespace)}/receivers{path}"
        try:
            return self._call(verb, whole, body, repeatable=body is None)
        except NotFound as error:
            raise Refused(f"{error}. {_VERSION}") from error
        except Forbidden as error:
            raise Forbidden(f"{error}. {_NEEDS}") from error
        except Busy as error:
            if body is None or error.status is not None:
                raise
            raise Transient(
                f"{self._name} did not answer {verb} /api{whole} within grafana.timeout_s ({self._api.timeout:g} s); "
                "the alert may have been sent"
            ) from error

    def _write(self, verb: str, path: str, body: Json) -> Any:
        """Write something that may be written twice."""
        return self._call(verb, path, body, headers=_EDITABLE)


def _group_path(folder_uid: str, name: str) -> str:
    return f"{_BASE}/folder/{uid_path(folder_uid)}/rule-groups/{uid_path(name)}"
