"""Push alerting to a Grafana. A second push does nothing, and what others made stays."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ragtide.dashboards.alerting.build import Alerting
from ragtide.dashboards.alerting.files import rule_document
from ragtide.dashboards.alerting.notifications import FOLDER_LABEL, ContactPoint
from ragtide.dashboards.alerting.rule import Json, RuleGroup
from ragtide.dashboards.alerting_settings import is_reference
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.grafana_alerting import AlertingGateway

_WHOLE = ("labels", "annotations")  # members to which nobody may add


@dataclass(slots=True)
class AlertPushResult:
    """Names of what was pushed, by what was done: `rules NAME`, `contact point NAME` and so on."""

    created: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def push_alerting(grafana: AlertingGateway, alerting: Alerting, *, with_secrets: bool = False) -> AlertPushResult:
    """Push folder, templates, mute timings, contact points, our policy and rules; remove rules of ours that are gone.

    Grafana does not tell secrets, so a contact point that differs in its secrets alone is pushed only `with_secrets`.
    Policies of others stay as they are. Raises the gateway's errors, and `ConfigError` for a secret that only files can
    name; what was pushed before stays.
    """
    points = [_pushable(one) for one in alerting.notifications.contact_points]
    result = AlertPushResult()
    grafana.ensure_folder(alerting.folder_uid, alerting.folder_title)
    for one in alerting.notifications.templates:
        stored = grafana.template(one["name"])
        _put(result, f"template {one['name']}", one, stored, lambda document: grafana.put_template(document))
    for one in alerting.notifications.mute_timings:
        stored = grafana.mute_timing(one["name"])
        put = grafana.add_mute_timing if stored is None else grafana.put_mute_timing
        _put(result, f"mute timing {one['name']}", one, stored, put)
    known = {found["uid"]: found for found in grafana.contact_points()} if points else {}
    for point, document in zip(alerting.notifications.contact_points, points, strict=True):
        _put_contact_point(grafana, result, point, document, known.get(point.uid), with_secrets=with_secrets)
    if alerting.notifications.policy is not None:
        # The label of alerts is the title that the folder has.
        matchers = [[FOLDER_LABEL, "=", grafana.folder_title(alerting.folder_uid)]]
        _put_policy(grafana, result, {**alerting.notifications.policy, "object_matchers": matchers})
    for group in alerting.groups:
        _put_group(grafana, result, alerting, group)
    _remove_rules(grafana, result, alerting)
    return result


def _pushable(point: ContactPoint) -> Json:
    for name, value in point.secrets.items():
        if is_reference(value):
            raise ConfigError(
                f"grafana_alerting.contact_points.{point.name}: {name} is a reference, which Grafana resolves in files "
                "only; to push, set the value itself, e.g. by an environment variable of ragtide"
            )
    return point.document(lambda _, value: value)


def _put_contact_point(
    grafana: AlertingGateway,
    result: AlertPushResult,
    point: ContactPoint,
    document: Json,
    stored: Json | None,
    *,
    with_secrets: bool,
) -> None:
    visible = {**document, "settings": dict(point.settings)}
    put = grafana.add_contact_point if stored is None else grafana.put_contact_point
    is_same = stored is not None and _holds(stored, visible) and set(point.secrets) <= set(stored["settings"])
    _record(result, f"contact point {point.name}", stored, is_same=is_same and not with_secrets)
    if not is_same or with_secrets:
        put(document)


def _put_policy(grafana: AlertingGateway, result: AlertPushResult, policy: Json) -> None:
    """Put our policy first among those below the root, in place of the one that we put there before."""
    tree = grafana.policies()
    routes = tree.get("routes") or []
    ours = [one for one in routes if _is_ours(one, policy)]
    others = [one for one in routes if not _is_ours(one, policy)]
    is_same = len(ours) == 1 and _cleaned(ours[0]) == _cleaned(policy)
    _record(result, "notification policy", ours[0] if ours else None, is_same=is_same)
    if not is_same:
        grafana.put_policies({**tree, "routes": [policy, *others]})


def _is_ours(route: Json, policy: Json) -> bool:
    """Whether it is the policy of our folder, and of nothing narrower."""
    return bool(route.get("object_matchers") == policy["object_matchers"])


def _put_group(grafana: AlertingGateway, result: AlertPushResult, alerting: Alerting, group: RuleGroup) -> None:
    rules = [
        rule_document(alerting, rule)
        | {"orgID": alerting.org_id, "folderUID": alerting.folder_uid, "ruleGroup": group.name}
        for rule in group.rules
    ]
    document = {
        "title": group.name,
        "folderUid": alerting.folder_uid,
        "interval": alerting.every_s,
        "rules": rules,
    }
    stored = grafana.rule_group(alerting.folder_uid, group.name)
    _put(result, f"rules {group.name}", document, stored, grafana.put_rule_group)


def _remove_rules(grafana: AlertingGateway, result: AlertPushResult, alerting: Alerting) -> None:
    """Delete rules of groups that we have no more: of ours in our folder, and no others."""
    groups = {group.name for group in alerting.groups}
    for rule in grafana.rules():
        is_ours = rule.get("folderUID") == alerting.folder_uid and rule["uid"].startswith(alerting.uid_prefix)
        if is_ours and rule.get("ruleGroup") not in groups:
            grafana.delete_rule(rule["uid"])
            result.removed.append(f"rule {rule['title']}")


def _put(result: AlertPushResult, name: str, document: Json, stored: Json | None, put: Callable[[Json], None]) -> None:
    is_same = stored is not None and _holds(stored, document)
    _record(result, name, stored, is_same=is_same)
    if not is_same:
        put(document)


def _record(result: AlertPushResult, name: str, stored: Json | None, *, is_same: bool) -> None:
    done = result.unchanged if is_same else result.created if stored is None else result.changed
    done.append(name)


def _holds(stored: Any, ours: Any) -> bool:
    """Tell whether all that is ours is stored so; Grafana adds members of its own, and leaves out empty ones."""
    if isinstance(ours, Mapping) and isinstance(stored, Mapping):
        same = ((stored.get(name) or {}) == ours[name] for name in _WHOLE if name in ours)
        return all(same) and all(_holds(stored.get(name), value) for name, value in ours.items())
    if isinstance(ours, list) and isinstance(stored, list):
        return len(ours) == len(stored) and all(map(_holds, stored, ours))
    return bool(stored == ours) or (stored is None and ours in (False, "", [], {}))


def _cleaned(route: Any) -> Any:
    """Leave out members that say nothing, which Grafana adds or drops."""
    if isinstance(route, Mapping):
        return {name: _cleaned(value) for name, value in route.items() if value not in (None, False, "", [], {})}
    return [_cleaned(one) for one in route] if isinstance(route, list) else route
