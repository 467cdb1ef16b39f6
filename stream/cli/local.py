"""`ragtide local`."""

import sys
from pathlib import Path
from typing import NoReturn

import click
from click.core import ParameterSource

from ragtide.stream.cli.options import config_option, settings_from

data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("ragtide-data/local"),
    show_default=True,
    help="Folder for ClickHouse's data, key and logs. Kept for the next run.",
)


@click.group(invoke_without_command=True)
@data_option
@click.option(
    "--broker-port",
    type=click.IntRange(0, 65535),
    default=9092,
    show_default=True,
    help="Port of the broker. 0 picks any free port.",
)
@click.option(
    "--clickhouse-port",
    type=click.IntRange(0, 65535),
    default=8123,
    show_default=True,
    help="Port of ClickHouse. 0 picks any free port.",
)
@config_option
@click.pass_context
def command(context: click.Context, data: Path, broker_port: int, clickhouse_port: int, config: Path | None) -> None:
    """Run a Kafka-protocol broker and ClickHouse in the foreground, for development.

    Both listen on loopback only and end with this command. The broker keeps no data; ClickHouse keeps its tables in
    --data. Prints the variables with which other commands connect.

    \b
    Examples:
      ragtide local
      ragtide local --data /tmp/ragtide --broker-port 0 --clickhouse-port 0
      ragtide local --data ragtide-data/demo-20260301-120000    look at what a demo left
      ragtide local clickhouse                                   for brokers of your own
    """
    if context.invoked_subcommand is not None:
        if any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in context.params):
            raise click.UsageError(f"put the options after `{context.invoked_subcommand}`")
        return
    _serve(data, config, broker_port, clickhouse_port)


@command.command("clickhouse")
@data_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8123,
    show_default=True,
    help="Port of ClickHouse. 0 picks any free port.",
)
@config_option
def serve_clickhouse(data: Path, port: int, config: Path | None) -> None:
    """Run ClickHouse alone in the foreground until SIGTERM or Ctrl-C, for use with your own brokers.

    Listens on loopback only. Keeps its tables in --data, and creates or updates them first. Prints the URL, the file
    of the key, and the variables for other commands. Each data folder can have one server at a time.

    \b
    Examples:
      ragtide local clickhouse
      ragtide local clickhouse --data /var/lib/ragtide --port 8124
    """
    _serve(data, config, None, port)


def _serve(data: Path, config: Path | None, broker_port: int | None, clickhouse_port: int) -> NoReturn:
    settings = settings_from(config).settings
    from ragtide.stream.console import PlainConsole
    from ragtide.stream.local.run import serve

    sys.exit(serve(data, settings, PlainConsole(), broker_port=broker_port, clickhouse_port=clickhouse_port))
