"""`ragtide view`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtide.stream.cli.options import config_option, settings_from

if TYPE_CHECKING:
    from ragtide.dashboards.viewer.catalogue import Json
    from ragtide.sinks.clickhouse.database import Database
    from ragtide.stream.settings.loader import Settings


@click.command()
@click.option("--listen", metavar="HOST:PORT", help="Address to listen on. Default: view.listen. Port 0: any free one.")
@click.option(
    "--token",
    metavar="TOKEN",
    help="Token to ask for. Default: view.token. Other users of this machine can read it here; the setting is safer.",
)
@click.option(
    "--timeline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="timeline.json of a demo: its faults are shown among the latest events.",
)
@config_option
def command(listen: str | None, token: str | None, timeline: Path | None, config: Path | None) -> None:
    """Show the dashboards in a browser, without a Grafana.

    Serves the same dashboards that `ragtide dashboards` builds, at the same paths, and changes nothing. Reads
    ClickHouse as grafana.data_source_user, else as clickhouse.user; every statement is read only and limited (section
    [view] of the settings).

    On 127.0.0.1 it asks for no token. On any other address it asks for view.token, or generates a token and prints it.
    It speaks plain HTTP: put a proxy with TLS before it where the network is not trusted.

    \b
    Examples:
      ragtide view
      ragtide view --listen 127.0.0.1:0
      RAGTIDE_VIEW__TOKEN=$(openssl rand -hex 16) ragtide view --listen 0.0.0.0:8080
      ragtide view --config ragtide-data/demo-20260301-120000/ragtide.toml
    """
    changes = {}
    if listen is not None:
        changes["RAGTIDE_VIEW__LISTEN"] = listen
    if token is not None:
        changes["RAGTIDE_VIEW__TOKEN"] = token
    settings = settings_from(config, changes).settings
    from ragtide.dashboards.viewer.run import serve
    from ragtide.stream.terminal import say

    serve(lambda: _documents(settings), lambda: _reader(settings), settings.view, say, timeline)


def _reader(settings: "Settings") -> "Database":
    """Return the database as the user who only reads, where the settings name one."""
    from ragtide.sinks.clickhouse.database import Database

    clickhouse, grafana = settings.clickhouse, settings.grafana
    if not grafana.data_source_user:
        return Database(clickhouse)
    reader = {"user": grafana.data_source_user, "password": grafana.data_source_password}
    return Database(clickhouse.model_copy(update=reader))


def _documents(settings: "Settings") -> "dict[str, Json]":
    """Build the dashboards as `ragtide dashboards build` does; imported late, so that the viewer listens at once."""
    from ragtide.stream.cli.dashboards import rendered

    return rendered(settings)
