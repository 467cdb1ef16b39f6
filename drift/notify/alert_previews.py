"""What each Alertmanager would get about a problem now, sample alerts to post to it, and alerts that it refused."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta

from ragtide.drift.job_history import load_runs
from ragtide.drift.notify.alert import AlertContext, alert_of
from ragtide.drift.notify.alertmanager_target import postable
from ragtide.drift.notify.messages import silenced
from ragtide.drift.notify.open_problems import OpenProblems
from ragtide.drift.notify.outbox import Unsent
from ragtide.drift.notify.posted_alerts import PostedAlert
from ragtide.drift.notify.previews import Answer, Preview, sample_problem
from ragtide.drift.problems import Problem
from ragtide.drift.routes import ANY
from ragtide.drift.settings import Severity
from ragtide.evaluators.errors import RagtideError
from ragtide.sinks.alertmanager import AlertmanagerGateway
from ragtide.sinks.alertmanager_settings import AlertmanagerSettings
from ragtide.sinks.clickhouse.database import Database

_RECENT = timedelta(hours=1)  # job `alerts` runs every few seconds
_SAMPLE_LASTS = timedelta(minutes=2)  # longer than the usual group_wait: an alert that ends before notifies nobody


def alertmanager_name(url: str) -> str:
    """Return the name of an Alertmanager among the targets."""
    return f"alertmanager:{url}"


def preview_alerts(
    database: Database, urls: Sequence[str], problem: Problem, context: AlertContext, now: datetime
) -> list[Preview]:
    """Return the alert of an episode of a problem for each Alertmanager, as it is now, with symptoms. Posts nothing."""
    if not urls:
        return []
    wanted = OpenProblems(database, context).look(now)
    firing = wanted.firing.get(problem.problem_id)
    alert = firing or wanted.explained.get(problem.problem_id) or alert_of(problem, context)
    why_not = "" if firing else silenced(database, problem, now) or f"the problem is {problem.state}"
    content = {"labels": alert.labels, "annotations": alert.annotations, "startsAt": alert.starts_at.isoformat()}
    return [Preview(alertmanager_name(url), why_not, content) for url in urls]


def send_sample_alerts(
    url: str, settings: AlertmanagerSettings, context: AlertContext, severity: Severity, now: datetime
) -> Answer:
    """Post an alert for each route of the settings, and one without an owner; they end by themselves.

    Alertmanager's routes decide whom they notify. An Alertmanager that cannot be asked with these settings is an answer
    too.
    """
    sample, name = replace(sample_problem(now), severity=severity), alertmanager_name(url)
    every = [(one.model_copy(update={"app": ANY, "metric": ANY, "type": ANY}),) for one in context.routes]
    alerts = {
        one.fingerprint: one for one in (alert_of(sample, replace(context, routes=some)) for some in (*every, ()))
    }
    try:
        with closing(AlertmanagerGateway(url, settings)) as gateway:
            gateway.post([postable(PostedAlert(one), now + _SAMPLE_LASTS) for one in alerts.values()])
    except RagtideError as error:
        return Answer(name, False, str(error))
    owners = ", ".join(dict.fromkeys(one.labels.get("owner", "no owner") for one in alerts.values()))
    ends = f"{_SAMPLE_LASTS.total_seconds():.0f} s"
    return Answer(name, True, f"200; sample alerts ({owners}) end in {ends}")


def alerts_failure(database: Database, now: datetime) -> str:
    """Return why alerts wait: the reason if the newest run of job `alerts` failed, else empty."""
    runs = load_runs(database, now - _RECENT, "alerts", most=1)
    return runs[0].failed if runs else ""


def load_refused_alerts(database: Database) -> list[Unsent]:
    """Load the alerts of open problems that an Alertmanager refused, by Alertmanager, the oldest first."""
    rows = database.rows(
        "SELECT fingerprint, url, problem_id, started_at, updated_at, why FROM alerts_posted FINAL "
        "WHERE state = 'refused' AND problem_id IN (SELECT problem_id FROM problems WHERE state = 'open') "
        "ORDER BY url, updated_at, fingerprint"
    )
    return [
        Unsent(
            message_id=row["fingerprint"],
            target=alertmanager_name(row["url"]),
            state="refused",
            action="open",
            subject=row["problem_id"],
            attempts=1,
            written_at=row["started_at"],
            updated_at=row["updated_at"],
            why=row["why"],
        )
        for row in rows
    ]
