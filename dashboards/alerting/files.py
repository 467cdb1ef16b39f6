"""Alerting as files: YAML for Grafana's file provisioning, or manifests of resources for gcx.

No secret is in a file unless asked for: a file names the variable of Grafana's environment that holds it.
"""

import base64
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from ragtide.dashboards.alerting.build import Alerting
from ragtide.dashboards.alerting.notifications import SOURCE_LABEL, ContactPoint
from ragtide.dashboards.alerting.rule import CONDITION, Json, Rule, RuleGroup, duration, uid_of
from ragtide.dashboards.alerting_settings import is_reference
from ragtide.dashboards.build import to_json
from ragtide.dashboards.files import FOLDER_API, File

RULE_API = "rules.alerting.grafana.app/v0alpha1"
NOTIFICATION_API = "notifications.alerting.grafana.app/v1beta1"
_FOLDER_OF = "grafana.app/folder"
_TREE = "user-defined"  # name of the organisation's tree of policies
_HEADER = "# Written by `ragtide dashboards alerts`, not by hand. JSON, which YAML includes.\n"
_VARIABLE = "RAGTIDE_GRAFANA_ALERTING__CONTACT_POINTS"


def provisioning(alerting: Alerting, *, with_secrets: bool = False) -> str:
    """Return the file for Grafana's `provisioning/alerting`: same settings, same bytes.

    Grafana puts variables of its environment into most values; `$` is doubled where a name holds one.
    """
    found = alerting.notifications
    secret = _plain if with_secrets else _referred
    points = [
        {"orgId": alerting.org_id, "name": _doubled(one.name), "receivers": [_receiver(one, secret)]}
        for one in found.contact_points
    ]
    lists = {
        "groups": [_group(alerting, group) for group in alerting.groups],
        "contactPoints": points,
        "templates": [{"orgId": alerting.org_id, **one} for one in found.templates],
        "muteTimes": [{"orgId": alerting.org_id, **one} for one in found.mute_timings],
        "policies": [_doubled({"orgId": alerting.org_id, **tree}) for tree in _trees(alerting)],
    }
    return _HEADER + to_json({"apiVersion": 1, **{name: values for name, values in lists.items() if values}})


def resource_files(alerting: Alerting, *, with_secrets: bool = False) -> Iterator[File]:
    """Yield a manifest per rule and its folder, contact point, template, mute timing, and tree of policies.

    A secret is `${VARIABLE}`, as `envsubst` reads it: Grafana puts no variables into resources. `with_secrets` raises
    `ConfigError` for a reference, for the same reason.
    """
    folder = {
        "apiVersion": FOLDER_API,
        "kind": "Folder",
        "metadata": {"name": alerting.folder_uid},
        "spec": {"title": alerting.folder_title},
    }
    yield File(PurePosixPath(f"{alerting.folder_uid}-folder.json"), to_json(folder))
    for group in alerting.groups:
        for rule in group.rules:
            uid = uid_of(alerting.uid_prefix, rule.name)
            yield File(PurePosixPath("rules") / f"{uid}.json", to_json(_rule_resource(alerting, rule, uid)))
    for kind, name, spec in _notification_resources(alerting, with_secrets=with_secrets):
        plain = _TREE if kind == "RoutingTree" else base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")
        document = {"apiVersion": NOTIFICATION_API, "kind": kind, "metadata": {"name": plain}, "spec": spec}
        yield File(PurePosixPath("notifications") / f"{kind.lower()}-{name}.json", to_json(document))


def rule_document(alerting: Alerting, rule: Rule) -> Json:
    """Return what files and the API have in common of a rule."""
    return {
        "uid": uid_of(alerting.uid_prefix, rule.name),
        "title": rule.title,
        "condition": CONDITION,
        "data": rule.data(alerting.data_source_uid),
        "noDataState": rule.no_data,
        "execErrState": rule.on_error,
        "for": duration(rule.for_s),
        "labels": _labels(alerting, rule),
        "annotations": dict(rule.annotations),
        "isPaused": False,
    }


def _labels(alerting: Alerting, rule: Rule) -> Json:
    return {**rule.labels, SOURCE_LABEL: alerting.folder_uid}


def _group(alerting: Alerting, group: RuleGroup) -> Json:
    rules = []
    for rule in group.rules:
        document = rule_document(alerting, rule)
        rules.append(document | {"title": _doubled(rule.title), "labels": _doubled(document["labels"])})
    return {
        "orgId": alerting.org_id,
        "name": group.name,
        "folder": _doubled(alerting.folder_title),
        "interval": duration(alerting.every_s),
        "rules": rules,
    }


def _receiver(point: ContactPoint, secret: Callable[..., str]) -> Json:
    document = point.document(partial(secret, point.key))
    hidden = {name: document["settings"][name] for name in point.secrets}
    return {
        "uid": point.uid,
        "type": point.type,
        "settings": {**_doubled(dict(point.settings)), **hidden},
        "disableResolveMessage": not point.resolved,
    }


def _trees(alerting: Alerting) -> Iterator[Json]:
    """The organisation's tree of policies, if it is to be ours as a whole: our policy without its condition."""
    policy = alerting.notifications.policy
    if alerting.whole_tree and policy is not None:
        yield {name: value for name, value in policy.items() if name != "object_matchers"}


def _rule_resource(alerting: Alerting, rule: Rule, uid: str) -> Json:
    expressions = {}
    for one in rule.data(alerting.data_source_uid):
        seconds = one["relativeTimeRange"]
        expressions[one["refId"]] = {
            "model": one["model"],
            "datasourceUID": one["datasourceUid"],
            "relativeTimeRange": {end: f"{seconds[end]}s" for end in ("from", "to")},
            "source": one["refId"] == CONDITION,
        }
    spec = {
        "title": rule.title,
        "paused": False,
        "trigger": {"interval": duration(alerting.every_s)},
        "labels": _labels(alerting, rule),
        "annotations": dict(rule.annotations),
        "expressions": expressions,
        "for": duration(rule.for_s),
        "noDataState": _state(rule.no_data),
        "execErrState": _state(rule.on_error),
    }
    metadata = {"name": uid, "annotations": {_FOLDER_OF: alerting.folder_uid}}
    return {"apiVersion": RULE_API, "kind": "AlertRule", "metadata": metadata, "spec": spec}


def _notification_resources(alerting: Alerting, *, with_secrets: bool) -> Iterator[tuple[str, str, Json]]:
    """Kind, name and spec of each."""
    found = alerting.notifications
    for point in found.contact_points:
        document = point.plain_document() if with_secrets else point.document(partial(_braced, point.key))
        integration = {name: document[name] for name in ("uid", "type", "settings", "disableResolveMessage")}
        yield "Receiver", point.name, {"title": point.name, "integrations": [{**integration, "version": "v1"}]}
    for one in found.templates:
        yield "TemplateGroup", one["name"], {"title": one["name"], "content": one["template"], "kind": "grafana"}
    for one in found.mute_timings:
        yield "TimeInterval", one["name"], one
    for tree in _trees(alerting):
        defaults = {name: value for name, value in tree.items() if name != "routes"}
        yield "RoutingTree", _TREE, {"defaults": defaults, "routes": [_route(one) for one in tree.get("routes", [])]}


def _route(route: Json) -> Json:
    matchers = [dict(zip(("label", "type", "value"), one, strict=True)) for one in route["object_matchers"]]
    rest = {name: value for name, value in route.items() if name != "object_matchers"}
    return {"continue": False, **rest, "matchers": matchers}


def _state(state: str) -> str:
    return "Ok" if state == "OK" else state


def _variable(point: str, name: str) -> str:
    """The variable of a contact point's secret: that of the setting."""
    setting = {"integrationKey": "integration_key", "authorization_credentials": "bearer_token"}.get(name, name)
    return f"{_VARIABLE}__{point}__{setting}".upper()


def _referred(point: str, name: str, value: str) -> str:
    return value if is_reference(value) else f"${_variable(point, name)}"


def _plain(_point: str, _name: str, value: str) -> str:
    return value if is_reference(value) else value.replace("$", "$$")


def _braced(point: str, name: str, _value: str) -> str:
    return f"${{{_variable(point, name)}}}"


def _doubled(node: Any) -> Any:
    """Double `$`, which Grafana takes for the start of a variable."""
    if isinstance(node, str):
        return node.replace("$", "$$")
    if isinstance(node, dict):
        return {key: _doubled(value) for key, value in node.items()}
    return [_doubled(item) for item in node] if isinstance(node, list) else node
