"""Calls of Grafana's provisioning API of alerting. What it makes can be edited in Grafana, as if made there."""

from typing import Any

from ragtide.evaluators.errors import Refused
from ragtide.sinks.grafana import GrafanaGateway, Json, uid_path

_BASE = "/v1/provisioning"
_EDITABLE = {"X-Disable-Provenance": "true"}  # else Grafana marks what is pushed as read-only


class AlertingGateway(GrafanaGateway):
    """The gateway with the calls of alerting; the same errors, and the same rule for threads."""

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

    def _write(self, verb: str, path: str, body: Json) -> Any:
        """Write something that may be written twice."""
        return self._call(verb, path, body, headers=_EDITABLE)


def _group_path(folder_uid: str, name: str) -> str:
    return f"{_BASE}/folder/{uid_path(folder_uid)}/rule-groups/{uid_path(name)}"
