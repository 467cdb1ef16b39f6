"""`ragwatch dashboards`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stream.cli.options import config_option, settings_from

if TYPE_CHECKING:
    from dashboards.build import Json
    from stream.settings import Settings


@click.group()
def command() -> None:
    """The Grafana dashboards, rendered from the evaluators that are installed, and the alert rules.

    \b
    Examples:
      ragwatch dashboards build --out dashboards/
      ragwatch dashboards alerts
      ragwatch dashboards push
    """


@command.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("dashboards-json"),
    show_default=True,
    help="Folder for one JSON file per dashboard, as Grafana's file provisioning reads them.",
)
@config_option
def build(out: Path, config: Path | None) -> None:
    """Write the dashboards as files. The same evaluators give the same bytes.

    \b
    Examples:
      ragwatch dashboards build --out /etc/grafana/dashboards
    """
    settings = settings_from(config).settings
    from dashboards.build import write

    for file in write(_rendered(settings), out):
        click.echo(file)


@command.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write instead of printing, in Grafana's provisioning/alerting.",
)
@config_option
def alerts(out: Path | None, config: Path | None) -> None:
    """Write Grafana's alert rules: where the jobs stopped, and where messages wait for long.

    They need the data source, and nothing else.

    \b
    Examples:
      ragwatch dashboards alerts
      ragwatch dashboards alerts --out /etc/grafana/provisioning/alerting/ragwatch.yaml
    """
    settings = settings_from(config).settings
    from dashboards.alerts import alerts as rules
    from dashboards.alerts import provisioning

    made = provisioning(rules(database=settings.clickhouse.database, silent_after_s=settings.jobs.live_after_s))
    if out is None:
        click.echo(made, nl=False)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(made, encoding="utf-8")
    click.echo(out)


@command.command()
@click.option(
    "--data-source",
    "url",
    metavar="URL",
    help="Also make the ClickHouse data source; URL is ClickHouse as Grafana reaches it.",
)
@config_option
def push(url: str | None, config: Path | None) -> None:
    """Bring the dashboards into the Grafana of the settings. What is there already gets no new version.

    Needs grafana.url and grafana.token (a service account with role Editor; with --data-source: Admin).

    \b
    Examples:
      ragwatch dashboards push
      ragwatch dashboards push --data-source http://clickhouse:8123
      RAGWATCH_GRAFANA__URL=https://grafana.example.org RAGWATCH_GRAFANA__TOKEN=... ragwatch dashboards push
    """
    settings = settings_from(config).settings
    from dashboards.data_source import data_source
    from dashboards.push import push as pushed
    from evaluators.errors import ConfigError
    from sinks.grafana import GrafanaGateway

    if not settings.grafana.url:
        raise ConfigError("grafana.url is not set; e.g. RAGWATCH_GRAFANA__URL=https://grafana.example.org")
    clickhouse = settings.clickhouse
    source = None
    if url is not None:
        source = data_source(url, clickhouse.user, clickhouse.password.get_secret_value(), clickhouse.database)
    gateway, folder = GrafanaGateway(settings.grafana), settings.grafana.folder_uid
    done = pushed(gateway, _rendered(settings), folder_uid=folder, data_source=source)
    for what in ("made", "changed", "unchanged"):
        for name in getattr(done, what):
            click.echo(f"{what}: {name}")


def _rendered(settings: "Settings") -> "dict[str, Json]":
    """Every dashboard by name, as the settings want them."""
    from dashboards.build import build
    from evaluators import registry
    from evaluators.suited import suited

    return build(
        suited(registry.load(), settings.evaluators),
        database=settings.clickhouse.database,
        sizes_s=settings.windows.all_sizes_s,
        rules=settings.rules,
        evaluators=settings.evaluators,
    )
