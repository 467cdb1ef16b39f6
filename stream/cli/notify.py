"""`ragtide notify`."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ragtide.stream.cli.completion import problem_ids
from ragtide.stream.cli.names import check_names
from ragtide.stream.cli.options import config_option, settings_from, split
from ragtide.stream.cli.problems_lookup import episodes_of, open_database
from ragtide.stream.terminal import say, say_json

if TYPE_CHECKING:
    from ragtide.drift.notify import Target
    from ragtide.drift.settings import Severity
    from ragtide.stream.settings.loader import Settings

SEVERITIES = ("info", "warning", "critical")
STATES = ("pending", "refused", "gave_up")
_IN_WORDS = {"pending": "waiting", "refused": "refused", "gave_up": "given up"}

target_option = click.option(
    "--target", "names", multiple=True, metavar="NAME[,NAME]", help="Only these targets, e.g. grafana,webhook:pager."
)


@click.group()
def command() -> None:
    """List undelivered notifications, preview those of a problem, test every target.

    Targets are grafana (annotations), webhook:NAME, topic:NAME and alertmanager:URL, as the settings have them.
    `preview` and `test` also take contact_point:NAME, a contact point in Grafana. `list` refuses it: Grafana
    itself sends to contact points, so ragtide has no message for them.

    \b
    Examples:
      ragtide notify list
      ragtide notify preview 3f2a
      ragtide notify test
    """


@command.command("list")
@target_option
@click.option("--state", "states", multiple=True, type=click.Choice(STATES), help="Only messages in this state.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="Maximum number of lines.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects, without a limit.")
@config_option
def list_messages(
    names: tuple[str, ...], states: tuple[str, ...], limit: int, as_json: bool, config: Path | None
) -> None:
    """List messages that wait, were refused or were given up, by target, the oldest first, with age and reason.

    A waiting message is tried again at growing intervals. A refused message is not sent again: the target rejected its
    content. A webhook's message is given up after retry_days of failures. For Alertmanager, it lists
    refused alerts of open problems. If Alertmanager is down, it says why; open problems are posted once it answers.

    \b
    Examples:
      ragtide notify list
      ragtide notify list --target webhook:pager --state refused
      ragtide notify list --json | jq -r '.[] | select(.attempts > 3) | .why'
    """
    from ragtide.drift.notify import alertmanager_name, alerts_failure, known_targets, load_refused_alerts, load_unsent
    from ragtide.stream.cli.notify_render import as_objects, show_unsent, summary

    now = datetime.now(UTC)
    with open_database(config) as (_, database):
        wanted, failure = split(names), alerts_failure(database, now)
        unsent = [*load_unsent(database), *load_refused_alerts(database)]
        if wanted:
            check_names("--target", wanted, {*known_targets(database), *(one.target for one in unsent)})
        found = [one for one in unsent if (not wanted or one.target in wanted) and (not states or one.state in states)]
    if failure and (not wanted or any(one.startswith(alertmanager_name("")) for one in wanted)):
        say(f"alerts wait for Alertmanager: {failure}", err=True)
    if as_json:
        say_json(as_objects(found, now))
    elif not found:
        say("no message waits, was refused or was given up")
    else:
        say(*summary(found, now, _IN_WORDS))
        show_unsent(found[:limit], now)
        if len(found) > limit:
            say(f"{len(found) - limit:,} more; --limit {len(found)} shows them", err=True)


@command.command("preview")
@click.argument("problem_id", metavar="PROBLEM", shell_complete=problem_ids)
@target_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects: target, why_not, content.")
@config_option
def preview_problem(problem_id: str, names: tuple[str, ...], as_json: bool, config: Path | None) -> None:
    """Show what each target would get about a problem as it is now: annotation, webhook body, record or alert.

    PROBLEM is an id from `ragtide problems list`, or its first characters. Sends nothing. If a target gets nothing,
    the reason is printed: a filter, a mute, or a parent problem that is announced instead. Silences and mute timings of
    Grafana are not looked at.

    \b
    Examples:
      ragtide notify preview 3f2a
      ragtide notify preview 3f2a --target webhook:pager --json | jq '.[0].content.event.data'
    """
    from ragtide.dashboards.alerting import preview_contact_points
    from ragtide.drift.notify import preview_alerts, preview_notifications
    from ragtide.stream.cli.dashboards import alerting_context
    from ragtide.stream.cli.notify_render import describe_preview
    from ragtide.stream.notification_targets import alert_context

    with open_database(config) as (settings, database):
        chosen, alerts = _targets(settings, names), alert_context(settings)
        problem, now = episodes_of(database, problem_id)[0], datetime.now(UTC)
        found = list(preview_notifications(database, problem, chosen.targets, now))
        found += preview_alerts(database, chosen.urls, problem, alerts, now)
        points, context = chosen.contact_points, alerting_context(settings)
        found += preview_contact_points(database, points, problem, context, alerts, now)
    if as_json:
        say_json([asdict(one) for one in found])
        return
    for number, one in enumerate(found):
        say(*([""] if number else []), *describe_preview(one))


@command.command("test")
@target_option
@click.option(
    "--severity",
    type=click.Choice(SEVERITIES),
    default="info",
    show_default=True,
    help="Severity of the alerts for Alertmanager and contact points. With critical, they may page people.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print a JSON list of objects: target, ok, says. Null as ok: not tested."
)
@config_option
def test_targets(names: tuple[str, ...], severity: "Severity", as_json: bool, config: Path | None) -> None:
    """Send a sample problem that opens and resolves through every target, and print what each answered.

    The sample has the app ragtide-test and severity info; --severity changes it for Alertmanager and contact points
    only. Filters do not apply to it. It is taken back where the
    target can forget it: the annotation is deleted, the record of a topic gets a tombstone. Alertmanager gets an alert
    for each owner of [[routes]] and one without; they end by themselves after two minutes. Nothing is stored. Exit
    status 1 means that a target failed.

    Contact points are those that [grafana_alerting] routes to; --target takes the others, too. Grafana sends the alert
    itself, with the secrets it stores. The alert does not resolve: close the incident that it opens, e.g. in PagerDuty.
    Before Grafana 13 contact points cannot be tested, which is a failure only if --target names one.

    \b
    Examples:
      ragtide notify test
      ragtide notify test --target webhook:pager,contact_point:operators
      ragtide notify test --severity critical
    """
    from ragtide.dashboards.alerting import send_sample_to_contact_points
    from ragtide.drift.notify import send_sample, send_sample_alerts
    from ragtide.stream.cli.dashboards import alerting_context
    from ragtide.stream.notification_targets import alert_context

    settings = settings_from(config).settings
    chosen, alerts = _targets(settings, names), alert_context(settings)
    answers = [send_sample(target, datetime.now(UTC)) for target in chosen.targets]
    answers += [
        send_sample_alerts(url, settings.alertmanager, alerts, severity, datetime.now(UTC)) for url in chosen.urls
    ]
    points, context = chosen.contact_points, alerting_context(settings)
    answers += send_sample_to_contact_points(points, context, alerts, severity, datetime.now(UTC))
    if names:
        answers = [replace(one, ok=bool(one.ok)) for one in answers]
    if as_json:
        say_json([asdict(one) for one in answers])
    else:
        for one in answers:
            mark, colour = {True: ("ok", "green"), False: ("FAILED", "red"), None: ("-", "yellow")}[one.ok]
            says = f"answered {one.says}" if one.ok and one.target not in points else one.says
            say(f"{one.target}: {says}", mark=f"{mark:<8}", colour=colour)
    sys.exit(1 if any(one.ok is False for one in answers) else 0)


class _TargetSet(NamedTuple):
    """Targets of notifications, URLs of Alertmanagers, and contact points in Grafana by name of target."""

    targets: "Sequence[Target]"
    urls: Sequence[str]
    contact_points: Mapping[str, str]


def _targets(settings: "Settings", names: Sequence[str]) -> _TargetSet:
    """The targets of these names; by default, those that get messages. Raises `ConfigError` if there is none."""
    from ragtide.dashboards.alerting import contact_point_names, routed_contact_point_names
    from ragtide.drift.notify import alertmanager_name
    from ragtide.evaluators.errors import ConfigError
    from ragtide.stream.cli.dashboards import alerting_context
    from ragtide.stream.notification_targets import notification_targets

    found = {target.name: target for target in notification_targets(settings).values()}
    urls = {alertmanager_name(url): url for url in settings.alertmanager.urls}
    context = alerting_context(settings)
    points = contact_point_names(context)
    known = [*found, *urls, *points]
    if not known:
        raise ConfigError(
            "no target is set: set grafana.url, [[webhooks]], alertmanager.urls, kafka.problems_topic or "
            "kafka.insights_topic"
        )
    wanted = split(tuple(names)) or [*found, *urls, *routed_contact_point_names(context)]
    check_names("--target", wanted, known)
    return _TargetSet(
        [target for name, target in found.items() if name in wanted],
        [url for name, url in urls.items() if name in wanted],
        {name: key for name, key in points.items() if name in wanted},
    )
