"""`ragwatch local`."""

import sys
from pathlib import Path

import click

from stream.cli.options import config_option, settings_from


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("ragwatch-data/local"),
    show_default=True,
    help="ClickHouse's data, its key and the logs; kept for the next time.",
)
@click.option(
    "--broker-port",
    type=click.IntRange(0, 65535),
    default=9092,
    show_default=True,
    help="Port of the broker; 0: any free one.",
)
@click.option(
    "--clickhouse-port",
    type=click.IntRange(0, 65535),
    default=8123,
    show_default=True,
    help="Port of ClickHouse; 0: any free one.",
)
@config_option
def command(data: Path, broker_port: int, clickhouse_port: int, config: Path | None) -> None:
    """Run a Kafka-protocol broker and ClickHouse here, in the foreground, for development.

    Both listen on loopback only and end with this command. The broker keeps nothing; ClickHouse keeps its tables in
    --data. How to connect is printed, as variables that the other commands read.

    \b
    Examples:
      ragwatch local
      ragwatch local --data /tmp/ragwatch --broker-port 0 --clickhouse-port 0
      ragwatch local --data ragwatch-data/demo-20260301-120000    look at what a demo left
    """
    settings = settings_from(config).settings
    from rich.console import Console

    from stream.local.run import serve

    sys.exit(serve(data, settings, Console(), broker_port=broker_port, clickhouse_port=clickhouse_port))
