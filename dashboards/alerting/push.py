"""Push alerting to a Grafana. A second push does nothing, and what others made stays."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ragtide.dashboards.alerting.build import Alerting
from ragtide.dashboards.alerting.files import rule_document
from ragtide.dashboards.alerting.notifications import SOURCE_LABEL, ContactPoint
from ragtide.dashboards.alerting.rule import Json, RuleGroup
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.grafana_alerting import AlertingGateway

_WHOLE = ("labels", "annotations")  # members to which nobody may add
_STAMPS = ("id", "updated", "provenance")
_EMPTY: tuple[object, ...] = (None, False, "", [], {})


@dataclass(slots=True)
class AlertPushResult:
    """Names of what was pushed, by what was done: `rules NAME`, `contact point NAME` and so on."""

    created: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def push_alerting(grafana: AlertingGateway, alerting: Alerting, *, with_secrets: bool = False) -> AlertPushResult:
    """Push folder, templates, mute timings, contact points, our policy and rules; remove those of ours that are gone.

    Grafana does not tell secrets, so a contact point that differs in its secrets alone is pushed only `with_secrets`.
    Policies of others, and rules that people added to our groups, stay as they are. Raises the gateway's errors;
    `ConfigError` for a secret that only files can name, or a name that a contact point of others has, before anything
    is pushed.
    """
    points = [one.plain_document() for one in alerting.notifications.contact_points]
    known = grafana.contact_points() if points else []
    _check_names(alerting.notifications.contact_points, known)
    stored_points = {found["uid"]: found for found in known}
    result = AlertPushResult()
    grafana.ensure_folder(alerting.folder_uid, alerting.folder_title)
    for one in alerting.notifications.templates:
        stored = grafana.template(one["name"])
        _put(result, f"template {one['name']}", one, stored, lambda document: grafana.put_template(document))
    for one in alerting.notifications.mute_timings:
        stored = grafana.mute_timing(one["name"])
        put = grafana.add_mute_timing if stored is None else grafana.put_mute_timing
        _put(result, f"mute timing {one['name']}", one, stored, put)
    for point, document in zip(alerting.notifications.contact_points, points, strict=True):
        _put_contact_point(grafana, result, point, document, stored_points.get(point.uid), with_secrets=with_secrets)
    _put_policy(grafana, result, alerting.notifications.policy, [[SOURCE_LABEL, "=", alerting.folder_uid]])
    for group in alerting.groups:
        _put_group(grafana, result, alerting, group)
    _remove_rules(grafana, result, alerting)
    return result


def _check_names(points: Iterable[ContactPoint], stored: Iterable[Json]) -> None:
    """Refuse a name that others use: Grafana would add ours to their contact point, and send their alerts to it.

    People may add theirs to ours.
    """
    uids: dict[str, set[str]] = {}
    for found in stored:
        uids.setdefault(found["name"], set()).add(found["uid"])
    for point in points:
        if point.uid not in uids.get(point.name, {point.uid}):
            raise ConfigError(
                f"contact point {point.name} exists and is not ragtide's: choose another name than "
                f"grafana_alerting.contact_points.{point.key}"
            )


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
    is_same = (
        stored is not None
        and _holds(stored, visible)
        and _names_of(stored["settings"]) == _names_of(document["settings"])
    )
    _record(result, f"contact point {point.name}", stored, is_same=is_same and not with_secrets)
    if not is_same or with_secrets:
        put(document)


def _put_policy(
    grafana: AlertingGateway, result: AlertPushResult, policy: Json | None, matchers: list[list[str]]
) -> None:
    """Put our policy first among those below the root, in place of the one that we put there before.

    Ours is that of all our alerts, and of nothing narrower. Without a policy, that one is removed. Policies of other
    deployments may precede it: they want to be first too.
    """
    tree = grafana.policies()
    routes = tree.get("routes") or []
    ours = [one for one in routes if one.get("object_matchers") == matchers]
    others = [one for one in routes if one.get("object_matchers") != matchers]
    wanted = [] if policy is None else [policy]
    in_reach = [one for one in routes if not _is_of_another_deployment(one, matchers)]
    is_same = len(ours) == len(wanted) and _cleaned(in_reach[: len(wanted)]) == _cleaned(wanted)
    if wanted:
        _record(result, "notification policy", ours[0] if ours else None, is_same=is_same)
    elif ours:
        result.removed.append("notification policy")
    if not is_same:
        grafana.put_policies({**tree, "routes": [*wanted, *others]})


def _is_of_another_deployment(route: Json, matchers: list[list[str]]) -> bool:
    """Whether none of our alerts can match the policy."""
    found = route.get("object_matchers") or []
    return any(one[:2] == [SOURCE_LABEL, "="] and one not in matchers for one in found)


def _put_group(grafana: AlertingGateway, result: AlertPushResult, alerting: Alerting, group: RuleGroup) -> None:
    """Put our rules first in their group: Grafana deletes those that are not put, so rules of others are put back."""
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
    found = [] if stored is None else stored["rules"]
    others = [_unstamped(rule) for rule in found if not alerting.owns(rule["uid"])]
    ours = None if stored is None else {**stored, "rules": [rule for rule in found if alerting.owns(rule["uid"])]}
    is_same = ours is not None and _holds(ours, document)
    _record(result, f"rules {group.name}", stored, is_same=is_same)
    if not is_same:
        grafana.put_rule_group({**document, "rules": [*rules, *others]})


def _unstamped(rule: Json) -> Json:
    """Leave out members that Grafana sets itself."""
    return {name: value for name, value in rule.items() if name not in _STAMPS}


def _remove_rules(grafana: AlertingGateway, result: AlertPushResult, alerting: Alerting) -> None:
    """Delete our rules in groups of ours that have no rules any more, and no others."""
    gone = {*alerting.group_names} - {group.name for group in alerting.groups}
    for rule in grafana.rules():
        is_in_gone = rule.get("folderUID") == alerting.folder_uid and rule.get("ruleGroup") in gone
        if is_in_gone and alerting.owns(rule["uid"]):
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


def _names_of(settings: Mapping[str, Any]) -> set[str]:
    return {name for name, value in settings.items() if value not in _EMPTY}


def _cleaned(route: Any) -> Any:
    """Leave out members that say nothing, which Grafana adds or drops."""
    if isinstance(route, Mapping):
        return {name: _cleaned(value) for name, value in route.items() if value not in _EMPTY}
    return [_cleaned(one) for one in route] if isinstance(route, list) else route
