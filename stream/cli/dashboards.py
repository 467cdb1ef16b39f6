"""`ragtide dashboards`."""

import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import click

from ragtide.stream.cli.options import config_option, settings_from
from ragtide.stream.terminal import say

if TYPE_CHECKING:
    from ragtide.dashboards.alerting import Alerting, AlertingContext
    from ragtide.dashboards.build import Json
    from ragtide.sinks.grafana_alerting import AlertingGateway
    from ragtide.stream.settings.loader import Settings

FORMATS = ("json", "provisioning", "resource")
ALERT_FORMATS = ("provisioning", "resource")
_PATH = "/var/lib/grafana/dashboards/ragtide"


@click.group()
def command() -> None:
    """Build, compare or push the Grafana dashboards of the installed evaluators, and write alert rules.

    Section `dashboards` of the settings has every name that can be changed.

    \b
    Examples:
      ragtide dashboards build --out dashboards/
      ragtide dashboards build --format resource --out git-sync/
      ragtide dashboards alerts
      ragtide dashboards push --alerts
      ragtide dashboards diff
    """


@command.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("dashboards-json"),
    show_default=True,
    help="Folder to write to.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="json",
    show_default=True,
    help="json: one file per dashboard. provisioning: a tree for Grafana's file provisioning, with provider, data "
    "source and alert rules. resource: manifests for Git Sync and gcx.",
)
@click.option(
    "--path",
    default=_PATH,
    show_default=True,
    metavar="FOLDER",
    help="With --format provisioning: folder of the dashboards' files as Grafana sees it.",
)
@config_option
def build(out: Path, format_: str, path: str, config: Path | None) -> None:
    """Write the dashboards as files. The same evaluators and settings always give the same bytes.

    \b
    Examples:
      ragtide dashboards build --out /etc/grafana/dashboards
      ragtide dashboards build --format provisioning --out grafana/
      ragtide dashboards build --format resource --out git-sync/ && gcx resources push -p git-sync/
    """
    settings = settings_from(config).settings
    from ragtide.dashboards.alerting import provisioning
    from ragtide.dashboards.files import plain_files, provisioning_files, resource_files, write

    made, names = rendered(settings), settings.dashboards
    if format_ == "resource":
        files = resource_files(made, names)
    elif format_ == "provisioning":
        alerts_file = provisioning(_alerting(settings))
        files = provisioning_files(made, names, alerts_file, settings.clickhouse.database, path)
    else:
        files = plain_files(made)
    for file in write(files, out):
        say(file)


@command.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File to write, in Grafana's provisioning/alerting, or a folder, in which it is ragtide.yaml. With --format "
    "resource: a folder. Default: print.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(ALERT_FORMATS),
    default="provisioning",
    show_default=True,
    help="provisioning: one file for Grafana's file provisioning. resource: manifests for gcx.",
)
@click.option(
    "--secrets",
    "with_secrets",
    is_flag=True,
    help="Write secrets of contact points, in files that only you can read. Needs --out. By default, files name "
    "variables of Grafana's environment.",
)
@config_option
def alerts(out: Path | None, format_: str, with_secrets: bool, config: Path | None) -> None:
    """Write Grafana alert rules, contact points, mute timings, message templates and notification policies.

    The rules watch ragtide itself. If alertmanager.urls is empty, they also raise open problems and burning error
    budgets as alerts. They need only the data source. Section grafana_alerting of the settings has the rest.

    \b
    Examples:
      ragtide dashboards alerts
      ragtide dashboards alerts --out /etc/grafana/provisioning/alerting/ragtide.yaml
      ragtide dashboards alerts --format resource --secrets --out alerts/ && gcx resources push -p alerts/
    """
    if with_secrets and out is None:
        raise click.UsageError("--secrets needs --out: secrets are not printed")
    made = _alerting(settings_from(config).settings)
    from ragtide.dashboards.alerting import provisioning, resource_files
    from ragtide.dashboards.files import File, write

    if format_ == "resource":
        if out is None:
            raise click.UsageError("--format resource writes several files: give a folder with --out")
        files, folder = resource_files(made, with_secrets=with_secrets), out
    else:
        text = provisioning(made, with_secrets=with_secrets)
        if out is None:
            say(*text.removesuffix("\n").split("\n"))
            return
        is_folder = out.is_dir() or not out.suffix
        folder, name = (out, "ragtide.yaml") if is_folder else (out.parent, out.name)
        files = iter([File(PurePosixPath(name), text)])
    for file in write(files, folder, is_private=with_secrets):
        say(file)


@command.command()
@click.option(
    "--data-source",
    "url",
    metavar="URL",
    help="Also create the ClickHouse data source. URL is the address at which Grafana reaches ClickHouse.",
)
@click.option("--alerts", "with_alerts", is_flag=True, help="Also push alert rules, contact points and routing.")
@click.option(
    "--secrets",
    "with_secrets",
    is_flag=True,
    help="With --alerts: push every contact point again. Use it after a secret changed: Grafana does not return "
    "secrets, so push cannot compare them.",
)
@config_option
def push(url: str | None, with_alerts: bool, with_secrets: bool, config: Path | None) -> None:
    """Push the dashboards to the Grafana of the settings. Unchanged dashboards get no new version.

    With --alerts, push removes ragtide rules that the settings no longer have. It puts ragtide's notification policy
    first and keeps all others.

    Needs grafana.url and grafana.token: a service account with role Editor, or Admin with --data-source. Everybody who
    may query the data source gets the rights of its ClickHouse user. Set grafana.data_source_user to a user with read
    access only.

    \b
    Examples:
      ragtide dashboards push
      ragtide dashboards push --data-source http://clickhouse:8123
      ragtide dashboards push --alerts
      RAGTIDE_GRAFANA__URL=https://grafana.example.org RAGTIDE_GRAFANA__TOKEN=... ragtide dashboards push
    """
    settings = settings_from(config).settings
    from ragtide.dashboards.data_source import data_source
    from ragtide.dashboards.push import push as pushed

    gateway = _gateway(settings)
    clickhouse, names = settings.clickhouse, settings.dashboards
    source = None
    if url is not None:
        user, password = clickhouse.user, clickhouse.password
        if settings.grafana.data_source_user:
            user, password = settings.grafana.data_source_user, settings.grafana.data_source_password
        secret, uid, name = password.get_secret_value(), names.data_source_uid, names.data_source_name
        source = data_source(url, user, secret, clickhouse.database, uid=uid, name=name)
    made, folder = rendered(settings), names.folder_uid
    done = pushed(gateway, made, folder_uid=folder, folder_title=names.folder_title, data_source=source)
    for what in ("created", "changed", "unchanged"):
        for name in getattr(done, what):
            say(f"{what}: {name}")
    if with_alerts:
        from ragtide.dashboards.alerting import push_alerting

        alerted = push_alerting(gateway, _alerting(settings), with_secrets=with_secrets)
        for what in ("created", "changed", "unchanged", "removed"):
            for name in getattr(alerted, what):
                say(f"{what}: {name}")


@command.command()
@config_option
def diff(config: Path | None) -> None:
    """Show how the dashboards differ from those in Grafana: panels, variables and settings. Changes nothing.

    Exits 1 if something differs, 2 if Grafana cannot be asked. Needs grafana.url and grafana.token, role Viewer.

    \b
    Examples:
      ragtide dashboards diff
      ragtide dashboards diff || ragtide dashboards push
    """
    settings = settings_from(config).settings
    from ragtide.dashboards.push import diff as differences

    found = differences(_gateway(settings), rendered(settings))
    for one in found:
        say(f"{one.name}:", *(f"  {detail}" for detail in one.details))
    if found:
        sys.exit(1)
    say("no differences")


def _gateway(settings: "Settings") -> "AlertingGateway":
    from ragtide.evaluators.errors import ConfigError
    from ragtide.sinks.grafana_alerting import AlertingGateway

    if not settings.grafana.url:
        raise ConfigError("grafana.url is not set; e.g. RAGTIDE_GRAFANA__URL=https://grafana.example.org")
    return AlertingGateway(settings.grafana)


def _alerting(settings: "Settings") -> "Alerting":
    from ragtide.dashboards.alerting import alerting
    from ragtide.evaluators import registry
    from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds

    return alerting(
        with_encoder_thresholds(registry.load(settings.evaluators), settings.evaluators), alerting_context(settings)
    )


def alerting_context(settings: "Settings") -> "AlertingContext":
    """Gather the sections of the settings that alerts in Grafana follow from."""
    from ragtide.dashboards.alerting import AlertingContext

    return AlertingContext(
        database=settings.clickhouse.database,
        settings=settings.grafana_alerting,
        names=settings.dashboards,
        rules=settings.rules,
        windows=settings.windows,
        jobs=settings.jobs,
        routes=settings.routes,
        alertmanager=settings.alertmanager,
        grafana=settings.grafana,
    )


def rendered(settings: "Settings") -> "dict[str, Json]":
    """Render every dashboard by name, as the settings demand."""
    from ragtide.dashboards.build import build
    from ragtide.evaluators import registry
    from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds

    return build(
        with_encoder_thresholds(registry.load(settings.evaluators), settings.evaluators),
        database=settings.clickhouse.database,
        sizes_s=settings.windows.all_sizes_s,
        rules=settings.rules,
        evaluators=settings.evaluators,
        trace_url=settings.grafana.trace_url,
        routes=settings.routes,
        trace_links=settings.grafana.trace_links,
        prometheus_uid=settings.grafana.prometheus_uid,
        heartbeat_timeout_s=settings.windows.heartbeat_timeout_s,
        live_after_s=settings.jobs.live_after_s,
        names=settings.dashboards,
    )
