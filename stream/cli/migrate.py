"""`ragwatch migrate`."""

from pathlib import Path

import click

from stream.cli.options import config_option, settings_from


@click.command()
@config_option
def command(config: Path | None) -> None:
    """Create the database and its tables, or bring them up to this version, and set how long rows are kept.

    Safe to run twice, from several machines at once, and while workers run. What is done is printed, line by line.

    \b
    Examples:
      ragwatch migrate
      RAGWATCH_RETENTION__TEXTS_DAYS=7 ragwatch migrate
    """
    settings = settings_from(config).settings
    from sinks.clickhouse.database import Database
    from sinks.clickhouse.migrate import migrate

    database = Database(settings.clickhouse)
    try:
        done = migrate(database, settings.retention)
    finally:
        database.close()
    for line in done:
        what, _, table = line.rpartition(":")
        click.echo(f"set how long rows of {table} are kept" if what else f"applied {line}")
    if not done:
        click.echo(f"{settings.clickhouse.database}: nothing to do, the tables are up to date")
