"""Preview the alert of a problem for each contact point in Grafana, and send a sample alert through each.

Which contact point gets an alert follows from the routes of the settings. Silences and mute timings are not looked at.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from pydantic import SecretStr

from ragtide.dashboards.alerting.build import AlertingContext
from ragtide.dashboards.alerting.notifications import SOURCE_LABEL, name_of
from ragtide.dashboards.alerting.problem_rule import PROBLEM_TITLE, problem_texts
from ragtide.dashboards.alerting.rule import Json
from ragtide.dashboards.alerting_settings import GrafanaAlertingSettings
from ragtide.dashboards.problem_links import PROBLEMS
from ragtide.drift.notify import AlertContext, Answer, Preview, alert_of, sample_problem, silenced
from ragtide.drift.problems import OBJECTIVE, Problem, is_leak
from ragtide.drift.routes import expression
from ragtide.drift.settings import Severity
from ragtide.evaluators.errors import RagtideError
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.grafana_answers import short
from ragtide.sinks.grafana_contact_points import READ_PERMISSION, ContactPointGateway, Integration, Receiver, TooOld

_LONGEST = 500  # characters of an error
_LINKS = ("dashboard_url", "runbook_url")


def contact_point_names(context: AlertingContext) -> dict[str, str]:
    """Return the contact points of the settings, by their names among the targets of notifications."""
    return {f"contact_point:{key}": key for key in context.settings.contact_points} if context.grafana.url else {}


def routed_contact_point_names(context: AlertingContext) -> list[str]:
    """Return the names of those that get alerts; all of them without `contact_point`, as people may route to any."""
    settings = context.settings
    routed = {*_contact_points_of_problems(settings), settings.fault_contact_point}
    return [name for name, key in contact_point_names(context).items() if key in routed or not settings.contact_point]


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
    settings = context.settings
    routed = _route(settings, content["labels"])
    return [Preview(name, reason or _not_routed(key, routed, settings), content) for name, key in names.items()]


def send_sample_to_contact_points(
    names: Mapping[str, str],
    context: AlertingContext,
    alerts: AlertContext,
    severity: Severity,
    now: datetime,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Answer]:
    """Send a sample alert through every integration of each contact point, whatever the routes."""
    if not names:
        return
    try:
        grafana = ContactPointGateway(context.grafana, _secrets(context.settings), sleep)
        stored = {one.title: one for one in grafana.receivers()}
    except TooOld as error:
        yield from (Answer(name, None, f"not tested: {error}") for name in names)
        return
    except RagtideError as error:
        yield from (Answer(name, False, str(error)) for name in names)
        return
    content = _alert_in_grafana(replace(sample_problem(now), severity=severity), context, alerts)
    for name, key in names.items():
        title = name_of(context.names.uid_prefix, key)
        if title not in stored:
            says = (
                f"Grafana shows no contact point {title} to this token: run `ragtide dashboards push --alerts`, "
                f"or give the token permission {READ_PERMISSION}"
            )
            yield Answer(name, False, says)
        else:
            yield _test_receiver(grafana, name, stored[title], content)


def _test_receiver(grafana: ContactPointGateway, name: str, receiver: Receiver, content: Json) -> Answer:
    """Test each integration: people may have added theirs, and alerts go to all."""
    says, is_ok = [], True
    for integration in receiver.integrations:
        failure = _failure(grafana, receiver, integration, content)
        is_ok &= not failure
        says.append(f"{integration.type}: {short(failure, _LONGEST) if failure else 'sent'}")
    if not says:
        return Answer(name, False, "the contact point has no integration: run `ragtide dashboards push --alerts`")
    return Answer(name, is_ok, ", ".join(says))


def _failure(grafana: ContactPointGateway, receiver: Receiver, integration: Integration, content: Json) -> str:
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


def _contact_points_of_problems(settings: GrafanaAlertingSettings) -> set[str]:
    return {settings.contact_point, *(one.contact_point for one in settings.routes)}


def _route(settings: GrafanaAlertingSettings, labels: Mapping[str, str]) -> Sequence[str]:
    """Return the contact points that get an alert with these labels; none if ragtide routes nothing."""
    found = []
    for route in settings.routes:
        is_owner = re.fullmatch(expression(route.owner), labels.get("owner", "")) is not None
        if is_owner and labels["severity"] in route.severities:
            found.append(route.contact_point)
            if not route.continues:
                break
    return found or [one for one in (settings.contact_point,) if one]


def _not_routed(key: str, routed: Sequence[str], settings: GrafanaAlertingSettings) -> str:
    if not routed:
        return "grafana_alerting.contact_point is not set: only policies of others in Grafana can route to it"
    if key in routed:
        return ""
    if key == settings.fault_contact_point and key not in _contact_points_of_problems(settings):
        return "it gets only DatasourceError and DatasourceNoData"
    return f"[grafana_alerting] sends the alert to {', '.join(dict.fromkeys(routed))}"


def _secrets(settings: GrafanaAlertingSettings) -> set[str]:
    """Return the secrets of all contact points: an error may quote one."""
    found = (getattr(one, name) for one in settings.contact_points.values() for name in type(one).model_fields)
    return {text for one in found if isinstance(one, SecretStr) and (text := one.get_secret_value())}
