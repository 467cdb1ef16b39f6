"""`ragwatch jobs`."""

import sys
from pathlib import Path

import click

from stream.cli.options import config_option, settings_from


@click.command()
@config_option
def command(config: Path | None) -> None:
    """Close windows, judge rules, open and resolve problems, state insights; until stopped.

    Run as many as you like, on as many machines: one leads (who owns the partition of kafka.jobs_topic), the others
    take over when it is gone. A rule that changes in the settings needs no re-evaluation, only this process.

    \b
    Examples:
      ragwatch jobs
      RAGWATCH_JOBS__EVERY_S=2 ragwatch jobs --config demo.toml
    """
    loaded = settings_from(config)
    from stream.scheduler import run

    sys.exit(run(loaded.settings))
