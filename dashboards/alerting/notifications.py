"""Contact points, message templates, mute timings and notification policies, as Grafana's API has them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ragtide.dashboards.alerting.rule import Json, duration, uid_of
from ragtide.dashboards.alerting_settings import (
    AlertRoute,
    Contact,
    EmailContact,
    GrafanaAlertingSettings,
    MuteInterval,
    PagerDutyContact,
    SlackContact,
    WebhookContact,
    is_reference,
)
from ragtide.drift.routes import ANY, expression
from ragtide.drift.settings import SEVERITIES
from ragtide.evaluators.errors import ConfigError

SOURCE_LABEL = "alert_source"  # on every alert of our rules; the title of their folder may change
_FAULTS = "DatasourceError|DatasourceNoData"
_MOST = 10  # alerts of a kind that a message shows: a storm fills no phone
_PATTERN = frozenset("*?")
# A title is one line. A message says what to know before the laptop is open.
_TEMPLATES = """\
{{ define "%(name)s.title" -}}
{{ if .Alerts.Firing }}{{ len .Alerts.Firing }} firing{{ else }}resolved{{ end -}}
{{ with .CommonLabels.severity }}, {{ . }}{{ end }}: {{ with .CommonAnnotations.title }}{{ . }}{{ else -}}
{{ with .CommonLabels.app }}{{ . }}{{ else }}ragtide{{ end -}}
{{ with .CommonLabels.environment }} ({{ . }}){{ end }}{{ with .CommonLabels.type }} {{ . }}{{ end }}{{ end -}}
{{ end }}
{{ define "%(name)s.message" -}}
{{ if gt (len .Alerts.Firing) %(most)d }}{{ range slice .Alerts.Firing 0 %(most)d }}{{ template "%(name)s.alert" . }}
{{ end }}… and {{ len (slice .Alerts.Firing %(most)d) }} more
{{ else }}{{ range .Alerts.Firing }}{{ template "%(name)s.alert" . }}
{{ end }}{{ end }}{{ if .Alerts.Resolved }}Resolved:
{{ if gt (len .Alerts.Resolved) %(most)d }}{{ range slice .Alerts.Resolved 0 %(most)d }}- {{ .Annotations.title }}
{{ end }}… and {{ len (slice .Alerts.Resolved %(most)d) }} more
{{ else }}{{ range .Alerts.Resolved }}- {{ .Annotations.title }}
{{ end }}{{ end }}{{ end }}{{ end }}
{{ define "%(name)s.alert" -}}
{{ with .Labels.severity }}{{ . | toUpper }} {{ end }}{{ .Annotations.description }}
{{ with .Annotations.dashboard_url }}Dashboard: {{ . }}
{{ end }}{{ with .Annotations.runbook_url }}Runbook: {{ . }}
{{ end }}{{ with .SilenceURL }}Silence: {{ . }}
{{ end }}{{ end }}
"""
# The severities of PagerDuty; without one common severity it is the gravest.
_PAGERDUTY_SEVERITY = "{{ with .CommonLabels.severity }}{{ . }}{{ else }}critical{{ end }}"


@dataclass(frozen=True, slots=True)
class ContactPoint:
    """A contact point of Grafana's API. `secrets` are settings to keep secret, by Grafana's names of them.

    `key` is its name in the settings, `name` that in Grafana.
    """

    uid: str
    key: str
    name: str
    type: str
    settings: Mapping[str, object]
    secrets: Mapping[str, str]
    resolved: bool

    def document(self, secret: Callable[[str, str], str]) -> Json:
        """Return it with its secrets as `secret` writes them, from name and value."""
        hidden = {name: secret(name, value) for name, value in self.secrets.items()}
        return {
            "uid": self.uid,
            "name": self.name,
            "type": self.type,
            "settings": {**self.settings, **hidden},
            "disableResolveMessage": not self.resolved,
        }

    def plain_document(self) -> Json:
        """Return it with its secrets as they are. Raises `ConfigError` for a reference in place of one."""
        for name, value in self.secrets.items():
            if is_reference(value):
                raise ConfigError(
                    f"grafana_alerting.contact_points.{self.key}: {name} is a reference, which Grafana resolves in "
                    "provisioning files only; to push it or to write it into manifests, set the value itself, e.g. by "
                    "an environment variable of ragtide"
                )
        return self.document(lambda _, value: value)


@dataclass(frozen=True, slots=True)
class Notifications:
    """What decides who hears of alerts. `policy` is that of our alerts; None without a contact point for it."""

    contact_points: tuple[ContactPoint, ...] = ()
    mute_timings: tuple[Json, ...] = ()
    templates: tuple[Json, ...] = ()
    policy: Json | None = None


def notifications(settings: GrafanaAlertingSettings, uid_prefix: str, source: str) -> Notifications:
    """Render the settings. Without contact points there is nothing but mute timings.

    Names begin with the prefix of the deployment: contact points and mute timings of others may have the same names.
    `source` is the value of label `alert_source` of its alerts.
    """
    name = template_name(uid_prefix)
    points = [
        _contact_point(one, contact, uid_prefix, name) for one, contact in sorted(settings.contact_points.items())
    ]
    timings = [
        _mute_timing(name_of(uid_prefix, timing), found) for timing, found in sorted(settings.mute_timings.items())
    ]
    templates = [{"name": name, "template": _TEMPLATES % {"name": name, "most": _MOST}}] if points else []
    policy = _policy(settings, uid_prefix, source) if settings.contact_point else None
    return Notifications(tuple(points), tuple(timings), tuple(templates), policy)


def name_of(uid_prefix: str, key: str) -> str:
    """Return the name in Grafana of a contact point or mute timing of the settings, which no other deployment has."""
    return f"{uid_prefix or 'ragtide.'}{key}"


def template_name(uid_prefix: str) -> str:
    """Return the name of the templates: `ragtide` for the default prefix, and another one for each other prefix."""
    if not uid_prefix:
        return "ragtide_"
    bare = uid_prefix.removesuffix("-")
    return bare if bare and bare != uid_prefix else f"{uid_prefix}."


def _contact_point(name: str, contact: Contact, uid_prefix: str, template: str) -> ContactPoint:
    title, message = f'{{{{ template "{template}.title" . }}}}', f'{{{{ template "{template}.message" . }}}}'
    settings: dict[str, object]
    secrets: dict[str, str] = {}
    match contact:
        case WebhookContact():
            settings = {"httpMethod": "POST", "title": title, "message": message}
            secrets = {
                "url": contact.url.get_secret_value(),
                "password": contact.password.get_secret_value(),
                "authorization_credentials": contact.bearer_token.get_secret_value(),
            }
            settings |= {"username": contact.user} if contact.user else {}
            settings |= {"authorization_scheme": "Bearer"} if secrets["authorization_credentials"] else {}
        case SlackContact():
            settings = {"title": title, "text": message}
            settings |= {"recipient": contact.channel} if contact.channel else {}
            secrets = {"url": contact.url.get_secret_value(), "token": contact.token.get_secret_value()}
        case PagerDutyContact():
            settings = {
                "summary": title,
                "severity": _PAGERDUTY_SEVERITY,
                "class": "{{ .CommonLabels.type }}",
                "component": "{{ .CommonLabels.app }}",
                "group": "{{ .CommonLabels.environment }}",
                "client": "ragtide",
                "details": {"message": message},
            }
            secrets = {"integrationKey": contact.integration_key.get_secret_value()}
        case EmailContact():
            settings = {
                "addresses": ";".join(contact.addresses),
                "singleEmail": True,
                "subject": title,
                "message": message,
            }
        case _:
            settings = {"title": title, "message": message}
            secrets = {"url": contact.url.get_secret_value()}
    given = {key: value for key, value in secrets.items() if value}
    uid, shown = uid_of(uid_prefix, f"to-{name}"), name_of(uid_prefix, name)
    return ContactPoint(uid, name, shown, contact.type, settings, given, contact.resolved)


def _mute_timing(name: str, intervals: Sequence[MuteInterval]) -> Json:
    return {"name": name, "time_intervals": [_interval(one) for one in intervals]}


def _interval(one: MuteInterval) -> Json:
    times = [dict(zip(("start_time", "end_time"), time.split("-"), strict=True)) for time in one.times]
    lists = {
        "times": times,
        "weekdays": list(one.weekdays),
        "days_of_month": list(one.days_of_month),
        "months": list(one.months),
        "years": list(one.years),
    }
    return {**{name: values for name, values in lists.items() if values}, "location": one.location}


def _policy(settings: GrafanaAlertingSettings, uid_prefix: str, source: str) -> Json:
    """The policy of all alerts of our rules: rules that fail first, then the routes in order."""
    faults = name_of(uid_prefix, settings.fault_contact_point or settings.contact_point)
    routes = [{"receiver": faults, "object_matchers": [["alertname", "=~", _FAULTS]]}]
    routes += [_route(one, uid_prefix) for one in settings.routes]
    found: Json = {
        "receiver": name_of(uid_prefix, settings.contact_point),
        "object_matchers": [[SOURCE_LABEL, "=", source]],
        "group_by": list(settings.group_by),
        "group_wait": duration(settings.group_wait_s),
        "group_interval": duration(settings.group_interval_s),
        "repeat_interval": duration(settings.repeat_interval_s),
    }
    return found | {"routes": routes}


def _route(route: AlertRoute, uid_prefix: str) -> Json:
    matchers = []
    if route.owner != ANY:
        is_pattern = bool(_PATTERN & {*route.owner})
        matchers.append(["owner", "=~" if is_pattern else "=", expression(route.owner) if is_pattern else route.owner])
    if set(route.severities) != set(SEVERITIES):
        several = len(route.severities) > 1
        matchers.append(["severity", "=~" if several else "=", "|".join(route.severities)])
    found: Json = {"receiver": name_of(uid_prefix, route.contact_point), "object_matchers": matchers}
    muted = [name_of(uid_prefix, one) for one in route.mute_timings]
    found |= {"mute_time_intervals": muted} if muted else {}
    found |= {"continue": True} if route.continues else {}
    waits = {
        "group_wait": route.group_wait_s,
        "group_interval": route.group_interval_s,
        "repeat_interval": route.repeat_interval_s,
    }
    return found | {name: duration(seconds) for name, seconds in waits.items() if seconds is not None}
