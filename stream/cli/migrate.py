"""`ragtide migrate`."""

from pathlib import Path

import click

from ragtide.stream.cli.options import config_option, settings_from
from ragtide.stream.terminal import say


@click.command()
@config_option
def command(config: Path | None) -> None:
    """Create or update the database and its tables, and set how long rows are kept.

    Safe to repeat, to run from several machines at once, and to run beside workers. Prints each change on a line.

    \b
    Examples:
      ragtide migrate
      RAGTIDE_RETENTION__TEXTS_DAYS=7 ragtide migrate
    """
    settings = settings_from(config).settings
    from ragtide.sinks.clickhouse.database import Database
    from ragtide.sinks.clickhouse.migrate import migrate

    database = Database(settings.clickhouse)
    try:
        done = migrate(database, settings.retention)
    finally:
        database.close()
    for line in done:
        what, _, table = line.rpartition(":")
        say(f"set how long rows of {table} are kept" if what else f"applied {line}")
    if not done:
        say(f"{settings.clickhouse.database}: nothing to do, the tables are up to date")
