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
)
from ragtide.drift.routes import ANY, expression
from ragtide.drift.settings import SEVERITIES

FOLDER_LABEL = "grafana_folder"
_FAULTS = "DatasourceError|DatasourceNoData"
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
{{ range .Alerts.Firing }}{{ template "%(name)s.alert" . }}
{{ end }}{{ if .Alerts.Resolved }}Resolved:
{{ range .Alerts.Resolved }}- {{ .Annotations.title }}
{{ end }}{{ end }}{{ end }}
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
    """A contact point of Grafana's API. `secrets` are settings to keep secret, by Grafana's names of them."""

    uid: str
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


@dataclass(frozen=True, slots=True)
class Notifications:
    """What decides who hears of alerts. `policy` is the policy of our folder; None without a contact point for it."""

    contact_points: tuple[ContactPoint, ...] = ()
    mute_timings: tuple[Json, ...] = ()
    templates: tuple[Json, ...] = ()
    policy: Json | None = None


def notifications(settings: GrafanaAlertingSettings, uid_prefix: str, folder_title: str) -> Notifications:
    """Render the settings. Without contact points there is nothing but mute timings."""
    name = f"{uid_prefix.strip('-_') or 'ragtide'}"
    points = [
        _contact_point(one, contact, uid_prefix, name) for one, contact in sorted(settings.contact_points.items())
    ]
    timings = [_mute_timing(timing, found) for timing, found in sorted(settings.mute_timings.items())]
    templates = [{"name": name, "template": _TEMPLATES % {"name": name}}] if points else []
    policy = _policy(settings, folder_title) if settings.contact_point else None
    return Notifications(tuple(points), tuple(timings), tuple(templates), policy)


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
    return ContactPoint(uid_of(uid_prefix, f"to-{name}"), name, contact.type, settings, given, contact.resolved)


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


def _policy(settings: GrafanaAlertingSettings, folder_title: str) -> Json:
    """The policy of all alerts of our folder: rules that fail first, then the routes in order."""
    routes = [_route(one) for one in settings.routes]
    if settings.fault_contact_point:
        faults = {"receiver": settings.fault_contact_point, "object_matchers": [["alertname", "=~", _FAULTS]]}
        routes.insert(0, faults)
    found: Json = {
        "receiver": settings.contact_point,
        "object_matchers": [[FOLDER_LABEL, "=", folder_title]],
        "group_by": list(settings.group_by),
        "group_wait": duration(settings.group_wait_s),
        "group_interval": duration(settings.group_interval_s),
        "repeat_interval": duration(settings.repeat_interval_s),
    }
    return found | ({"routes": routes} if routes else {})


def _route(route: AlertRoute) -> Json:
    matchers = []
    if route.owner != ANY:
        is_pattern = bool(_PATTERN & {*route.owner})
        matchers.append(["owner", "=~" if is_pattern else "=", expression(route.owner) if is_pattern else route.owner])
    if set(route.severities) != set(SEVERITIES):
        several = len(route.severities) > 1
        matchers.append(["severity", "=~" if several else "=", "|".join(route.severities)])
    found: Json = {"receiver": route.contact_point, "object_matchers": matchers}
    found |= {"mute_time_intervals": list(route.mute_timings)} if route.mute_timings else {}
    found |= {"continue": True} if route.continues else {}
    waits = {
        "group_wait": route.group_wait_s,
        "group_interval": route.group_interval_s,
        "repeat_interval": route.repeat_interval_s,
    }
    return found | {name: duration(seconds) for name, seconds in waits.items() if seconds is not None}
