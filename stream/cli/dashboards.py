"""`ragtide dashboards`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtide.stream.cli.options import config_option, settings_from
from ragtide.stream.terminal import say

if TYPE_CHECKING:
    from ragtide.dashboards.build import Json
    from ragtide.stream.settings.loader import Settings


@click.group()
def command() -> None:
    """Build or push the Grafana dashboards of the installed evaluators, and write alert rules.

    \b
    Examples:
      ragtide dashboards build --out dashboards/
      ragtide dashboards alerts
      ragtide dashboards push
    """


@command.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("dashboards-json"),
    show_default=True,
    help="Folder for one JSON file per dashboard, for Grafana's file provisioning.",
)
@config_option
def build(out: Path, config: Path | None) -> None:
    """Write the dashboards as files. The same evaluators always give the same bytes.

    \b
    Examples:
      ragtide dashboards build --out /etc/grafana/dashboards
    """
    settings = settings_from(config).settings
    from ragtide.dashboards.build import write

    for file in write(rendered(settings), out):
        say(file)


@command.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write, in Grafana's provisioning/alerting. Default: print.",
)
@config_option
def alerts(out: Path | None, config: Path | None) -> None:
    """Write Grafana alert rules for stopped jobs and for messages that wait too long.

    They need only the data source.

    \b
    Examples:
      ragtide dashboards alerts
      ragtide dashboards alerts --out /etc/grafana/provisioning/alerting/ragtide.yaml
    """
    settings = settings_from(config).settings
    from ragtide.dashboards.alerts import alerts as rules
    from ragtide.dashboards.alerts import provisioning

    made = provisioning(rules(database=settings.clickhouse.database, silent_after_s=settings.jobs.live_after_s))
    if out is None:
        say(*made.removesuffix("\n").split("\n"))
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(made, encoding="utf-8")
    say(out)


@command.command()
@click.option(
    "--data-source",
    "url",
    metavar="URL",
    help="Also create the ClickHouse data source. URL is the address at which Grafana reaches ClickHouse.",
)
@config_option
def push(url: str | None, config: Path | None) -> None:
    """Push the dashboards to the Grafana of the settings. Unchanged dashboards get no new version.

    Needs grafana.url and grafana.token: a service account with role Editor, or Admin with --data-source. Everybody who
    may query the data source gets the rights of its ClickHouse user. Set grafana.data_source_user to a user with read
    access only.

    \b
    Examples:
      ragtide dashboards push
      ragtide dashboards push --data-source http://clickhouse:8123
      RAGTIDE_GRAFANA__URL=https://grafana.example.org RAGTIDE_GRAFANA__TOKEN=... ragtide dashboards push
    """
    settings = settings_from(config).settings
    from ragtide.dashboards.data_source import data_source
    from ragtide.dashboards.push import push as pushed
    from ragtide.evaluators.errors import ConfigError
    from ragtide.sinks.grafana import GrafanaGateway

    if not settings.grafana.url:
        raise ConfigError("grafana.url is not set; e.g. RAGTIDE_GRAFANA__URL=https://grafana.example.org")
    clickhouse = settings.clickhouse
    source = None
    if url is not None:
        user, password = clickhouse.user, clickhouse.password
        if settings.grafana.data_source_user:
            user, password = settings.grafana.data_source_user, settings.grafana.data_source_password
        source = data_source(url, user, password.get_secret_value(), clickhouse.database)
    gateway, folder = GrafanaGateway(settings.grafana), settings.grafana.folder_uid
    done = pushed(gateway, rendered(settings), folder_uid=folder, data_source=source)
    for what in ("created", "changed", "unchanged"):
        for name in getattr(done, what):
            say(f"{what}: {name}")


def rendered(settings: "Settings") -> "dict[str, Json]":
    """Render every dashboard by name, as the settings demand."""
    from ragtide.dashboards.build import build
    from ragtide.evaluators import registry
    from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds

    return build(
        with_encoder_thresholds(registry.load(), settings.evaluators),
        database=settings.clickhouse.database,
        sizes_s=settings.windows.all_sizes_s,
        rules=settings.rules,
        evaluators=settings.evaluators,
        trace_url=settings.grafana.trace_url,
    )
