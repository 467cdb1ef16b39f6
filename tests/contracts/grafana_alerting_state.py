"""What a Grafana remembers of alerting: rules, contact points, policies, mute timings and templates.

It stores as Grafana does: ids and provenance are added, empty members left out, secrets never returned.
"""

import copy
from dataclasses import dataclass, field
from itertools import count
from typing import Any

Json = dict[str, Any]
SECRETS = ("url", "token", "password", "authorization_credentials", "integrationKey")
REDACTED = "[REDACTED]"


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any


def refused(status: int, message: str) -> Answer:
    return Answer(status, {"message": message})


def _without_empty(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_empty(value) for key, value in node.items() if value not in (None, False, [], {})}
    return [_without_empty(item) for item in node] if isinstance(node, list) else node


@dataclass
class AlertingState:
    groups: dict[tuple[str, str], Json] = field(default_factory=dict)
    contact_points: dict[str, Json] = field(default_factory=dict)
    mute_timings: dict[str, Json] = field(default_factory=dict)
    templates: dict[str, str] = field(default_factory=dict)
    policies: Json = field(default_factory=lambda: {"receiver": "grafana-default-email", "provenance": "none"})
    ids: "count[int]" = field(default_factory=lambda: count(1))

    def answer(self, verb: str, path: list[str], body: Any, folders: Json) -> Answer | None:
        """Answer a call below /api/v1/provisioning; None if it is not known."""
        match [verb, *path]:
            case ["GET", "alert-rules"]:
                return Answer(200, [copy.deepcopy(rule) for group in self.groups.values() for rule in group["rules"]])
            case ["DELETE", "alert-rules", uid]:
                return self._delete_rule(uid)
            case ["GET", "folder", folder, "rule-groups", name]:
                found = self.groups.get((folder, name))
                return refused(404, "rule group not found") if found is None else Answer(200, copy.deepcopy(found))
            case ["PUT", "folder", folder, "rule-groups", name]:
                return self._put_group(folder, name, body, folders)
            case ["GET", "contact-points"]:
                return Answer(200, [self._shown(one) for one in self.contact_points.values()])
            case ["POST", "contact-points"]:
                if body["uid"] in self.contact_points:
                    return refused(400, "receiver configuration with UID already exists")
                self.contact_points[body["uid"]] = {**body, "provenance": ""}
                return Answer(202, self._shown(self.contact_points[body["uid"]]))
            case ["PUT", "contact-points", uid]:
                self.contact_points[uid] = {**body, "provenance": ""}
                return Answer(202, {"message": "contactpoint updated"})
            case ["POST", "mute-timings"]:
                if body["name"] in self.mute_timings:
                    return refused(400, "a time interval with this name already exists")
                self.mute_timings[body["name"]] = _without_empty(body)
                return Answer(201, self.mute_timings[body["name"]])
            case ["GET", "mute-timings", name]:
                found = self.mute_timings.get(name)
                return refused(404, "time interval not found") if found is None else Answer(200, found)
            case ["PUT", "mute-timings", name]:
                self.mute_timings[name] = _without_empty(body)
                return Answer(202, self.mute_timings[name])
            case ["GET", "templates", name]:
                if name not in self.templates:
                    return refused(404, "template not found")
                return Answer(200, {"name": name, "template": self.templates[name], "version": "v1", "provenance": ""})
            case ["PUT", "templates", name]:
                self.templates[name] = body["template"]
                return Answer(202, {"name": name, "template": body["template"], "version": "v2"})
            case ["GET", "policies"]:
                return Answer(200, copy.deepcopy(self.policies))
            case ["PUT", "policies"]:
                return self._put_policies(body)
        return None

    def _put_group(self, folder: str, name: str, body: Json, folders: Json) -> Answer:
        if folder not in folders:
            return refused(400, "folder does not exist")
        titles = [rule["title"] for rule in body["rules"]]
        if len(set(titles)) < len(titles):
            return refused(400, "a rule with this title already exists in the folder")
        rules = []
        for rule in body["rules"]:
            own = {key: value for key, value in rule.items() if value not in (False, {}, "")}
            queries = [{key: value for key, value in query.items() if value != ""} for query in rule["data"]]
            rules.append({**own, "data": queries, "id": next(self.ids), "updated": "2026-03-01T12:00:00Z"})
        self.groups[folder, name] = {**body, "rules": rules}
        return Answer(200, copy.deepcopy(self.groups[folder, name]))

    def _delete_rule(self, uid: str) -> Answer:
        for key, group in list(self.groups.items()):
            group["rules"] = [rule for rule in group["rules"] if rule["uid"] != uid]
            if not group["rules"]:
                del self.groups[key]
        return Answer(204, {})

    def _put_policies(self, tree: Json) -> Answer:
        known = {one["name"] for one in self.contact_points.values()} | {self.policies["receiver"]}
        for route in self._routes(tree):
            if route["receiver"] not in known:
                return refused(400, f"receiver '{route['receiver']}' does not exist")
            if missing := set(route.get("mute_time_intervals", [])) - set(self.mute_timings):
                return refused(400, f"mute time interval '{min(missing)}' does not exist")
        self.policies = {**_without_empty(tree), "provenance": "none"}
        return Answer(202, {"message": "policies updated"})

    def _routes(self, tree: Json) -> list[Json]:
        return [tree, *(route for child in tree.get("routes", []) for route in self._routes(child))]

    @staticmethod
    def _shown(point: Json) -> Json:
        settings = {key: REDACTED if key in SECRETS else value for key, value in point["settings"].items()}
        return {**point, "settings": settings}
