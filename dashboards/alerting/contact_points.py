"""What each contact point in Grafana would get about a problem now, and a sample alert to send through each.

Which contact point gets an alert follows from the routes of the settings. Silences and mute timings are Grafana's own.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from pydantic import SecretStr

from ragtide.dashboards.alerting.build import AlertingContext
from ragtide.dashboards.alerting.notifications import SOURCE_LABEL, name_of
from ragtide.dashboards.alerting.problem_rule import PROBLEM_TITLE, problem_texts
from ragtide.dashboards.alerting.rule import Json
from ragtide.dashboards.alerting_settings import Contact, GrafanaAlertingSettings
from ragtide.dashboards.problem_links import PROBLEMS
from ragtide.drift.notify import AlertContext, Answer, Preview, alert_of, sample_problem, silenced
from ragtide.drift.problems import OBJECTIVE, Problem, is_leak
from ragtide.drift.routes import expression
from ragtide.drift.settings import Severity
from ragtide.evaluators.errors import RagtideError
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.grafana_alerting import AlertingGateway
from ragtide.sinks.grafana_answers import short

_LONGEST = 500  # characters of an error; cut last, so that no half of a secret is left
_LINKS = ("dashboard_url", "runbook_url")


def contact_point_names(context: AlertingContext) -> dict[str, str]:
    """Return the contact points that alerts reach, by their names among the targets of notifications.

    Those that routes name. Without `contact_point` ragtide routes nothing, and people may route to any of them.
    """
    settings = context.settings
    if not context.grafana.url:
        return {}
    routed = [settings.contact_point, settings.fault_contact_point, *(one.contact_point for one in settings.routes)]
    keys = filter(None, routed) if settings.contact_point else sorted(settings.contact_points)
    return {f"contact_point:{key}": key for key in keys}


def preview_contact_points(
    database: Database,
    names: Mapping[str, str],
    problem: Problem,
    context: AlertingContext,
    alerts: AlertContext,
    now: datetime,
) -> list[Preview]:
    """Return the alert of an episode of a problem for each contact point, as it is now. Sends nothing."""
    if not names:
        return []
    content = _alert_in_grafana(problem, context, alerts)
    reason = _no_alert(problem, context, now) or silenced(database, problem, now)
    routed = _routed_to(context.settings, content["labels"])
    return [Preview(name, reason or _not_routed(key, routed), content) for name, key in names.items()]


def send_sample_to_contact_points(
    grafana: AlertingGateway,
    names: Mapping[str, str],
    context: AlertingContext,
    alerts: AlertContext,
    severity: Severity,
    now: datetime,
) -> Iterator[Answer]:
    """Send a sample alert through every integration of each contact point, whatever the routes."""
    try:
        stored = {one["spec"]["title"]: one for one in grafana.receivers()}
    except RagtideError as error:
        yield from (Answer(name, False, str(error)) for name in names)
        return
    content = _alert_in_grafana(replace(sample_problem(now), severity=severity), context, alerts)
    for name, key in names.items():
        title = name_of(context.names.uid_prefix, key)
        if title not in stored:
            says = f"Grafana has no contact point {title}: run `ragtide dashboards push --alerts`"
            yield Answer(name, False, says)
        else:
            yield _tested(grafana, name, stored[title], content, _secrets(context.settings.contact_points[key]))


def _tested(grafana: AlertingGateway, name: str, receiver: Json, content: Json, secrets: Collection[str]) -> Answer:
    """Test each integration: people may have added theirs, and alerts go to all."""
    says, is_ok = [], True
    for integration in receiver["spec"]["integrations"]:
        failure = _failure(grafana, receiver["metadata"]["name"], integration, content)
        for secret in secrets:
            failure = failure.replace(secret, "…")
        is_ok &= not failure
        result = f"failed: {short(failure, _LONGEST)}" if failure else "sent"
        says.append(f"{integration['type']} {result}")
    if not says:
        return Answer(name, False, "the contact point has no integration: run `ragtide dashboards push --alerts`")
    return Answer(name, is_ok, ", ".join(says))


def _failure(grafana: AlertingGateway, receiver: str, integration: Json, content: Json) -> str:
    try:
        return grafana.test_integration(receiver, integration, **content)
    except RagtideError as error:
        return str(error)


def _alert_in_grafana(problem: Problem, context: AlertingContext, alerts: AlertContext) -> Json:
    """Return labels and annotations of the alert that the rule of problems makes."""
    made = alert_of(problem, alerts)
    folder = context.folder
    own = {"alertname": PROBLEM_TITLE, "grafana_folder": folder.title, SOURCE_LABEL: folder.uid}
    labels = {**made.labels, "problem": made.labels["alertname"], **own}
    has_page = PROBLEMS not in context.names.leave_out
    links = {name: made.annotations[name] for name in _LINKS if name in made.annotations}
    links = {name: link for name, link in links.items() if name != "dashboard_url" or has_page}
    return {"labels": labels, "annotations": {**problem_texts(problem, labels), **links}}


def _no_alert(problem: Problem, context: AlertingContext, now: datetime) -> str:
    """Say why Grafana makes no alert of the problem; empty if it does unless it is silenced."""
    settings, wait_s = context.settings, context.jobs.group_wait_s
    if not context.raises_problems:
        why = "alertmanager.urls is set" if settings.problems is None else "grafana_alerting.problems is false"
        return f"{why}, so Grafana makes no alerts of problems"
    if problem.state != "open":
        return f"the problem is {problem.state}"
    if problem.segment == OBJECTIVE and settings.burn_rates:
        return "alerts of burn rates stand in for it: grafana_alerting.burn_rates is true"
    if problem.opened_at is not None and problem.opened_at > now - timedelta(seconds=wait_s) and not is_leak(problem):
        return f"the alert begins {wait_s:g} s after the problem opened"
    return ""


def _routed_to(settings: GrafanaAlertingSettings, labels: Mapping[str, str]) -> Sequence[str]:
    """Return the contact points that get an alert with these labels; none if ragtide routes nothing."""
    found = []
    for route in settings.routes:
        is_owner = re.fullmatch(expression(route.owner), labels.get("owner", "")) is not None
        if is_owner and labels["severity"] in route.severities:
            found.append(route.contact_point)
            if not route.continues:
                break
    return found or [one for one in (settings.contact_point,) if one]


def _not_routed(key: str, routed: Sequence[str]) -> str:
    if not routed:
        return "grafana_alerting.contact_point is not set: only policies of others in Grafana can route to it"
    return "" if key in routed else f"grafana_alerting.routes sends it to {', '.join(dict.fromkeys(routed))}"


def _secrets(contact: Contact) -> list[str]:
    """Return the secrets of a contact point: an error may quote one."""
    found = (getattr(contact, name) for name in type(contact).model_fields)
    return [text for one in found if isinstance(one, SecretStr) and (text := one.get_secret_value())]
