"""Contact points as resources of Grafana 13: they are read without secrets, and tested with those that are stored.

A contact point is named by the base64 of its title; those of the provisioning API with one title are its integrations.
"""

import base64
from dataclasses import dataclass, field
from typing import Any

from tests.contracts.grafana_alerting_state import SECRETS, AlertingState, Answer, Json, refused

NAMESPACE = "stacks-7"  # as in Grafana Cloud: no rule of ours yields it
READABLE = {"webhook": {"url"}}  # Grafana protects it, but it is no secret


@dataclass
class SentAlert:
    """An alert that Grafana sent: to what, with all settings."""

    title: str
    type: str
    settings: Json
    labels: dict[str, str]
    annotations: dict[str, str]


@dataclass
class ReceiversState:
    alerting: AlertingState
    namespace: str = NAMESPACE
    is_old: bool = False  # a Grafana without this API
    failures: dict[str, str] = field(default_factory=dict)  # why sending fails, by type of integration
    hidden: set[str] = field(default_factory=set)  # titles of contact points that the token may not read
    tested: list[SentAlert] = field(default_factory=list)

    def answer(self, verb: str, path: list[str], body: Any) -> Answer:
        """Answer a call below /apis/notifications.alerting.grafana.app/v1beta1."""
        match [verb, *path]:
            case [_, "namespaces", namespace, "receivers", *_] if self.is_old or namespace != self.namespace:
                return refused(404, "the server could not find the requested resource")
            case ["GET", "namespaces", _, "receivers"]:
                shown = [one for one in self._receivers().values() if one["spec"]["title"] not in self.hidden]
                return Answer(200, {"kind": "ReceiverList", "items": shown})
            case ["POST", "namespaces", _, "receivers", name, "test"]:
                return self._test(name, body["integration"], body["alert"])
        raise AssertionError(f"the contract has {verb} {path}, this server does not")

    def _receivers(self) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for point in self.alerting.contact_points.values():
            title = point["name"]
            name = base64.urlsafe_b64encode(title.encode()).decode().rstrip("=")
            receiver = {"metadata": {"name": name}, "spec": {"title": title, "integrations": []}}
            found.setdefault(name, receiver)["spec"]["integrations"].append(_integration(point))
        return found

    def _test(self, name: str, integration: Json, alert: Json) -> Answer:
        receiver = self._receivers().get(name)
        if receiver is None:
            return refused(404, "Receiver not found")
        if integration["uid"] not in [one["uid"] for one in receiver["spec"]["integrations"]]:
            return refused(404, "Integration not found")
        stored = self.alerting.contact_points[integration["uid"]]["settings"]
        secrets = {key: stored[key] for key, is_set in integration.get("secureFields", {}).items() if is_set}
        settings, title = integration["settings"] | secrets, receiver["spec"]["title"]
        self.tested.append(SentAlert(title, integration["type"], settings, alert["labels"], alert["annotations"]))
        failure = self.failures.get(integration["type"])
        said = {"status": "success"} if failure is None else {"status": "failure", "error": failure}
        return Answer(200, {"duration": "12ms", **said})


def _integration(point: Json) -> Json:
    hidden = {key for key in point["settings"] if key in SECRETS} - READABLE.get(point["type"], set())
    return {
        "uid": point["uid"],
        "type": point["type"],
        "version": "v1",
        "variant": f"{point['type']}/v1",
        "disableResolveMessage": point["disableResolveMessage"],
        "settings": {key: value for key, value in point["settings"].items() if key not in hidden},
        **({"secureFields": dict.fromkeys(sorted(hidden), True)} if hidden else {}),
    }
