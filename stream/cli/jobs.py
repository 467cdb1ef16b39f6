"""`ragwatch jobs`."""

import sys
from pathlib import Path

import click

from stream.cli.options import config_option, settings_from


@click.command()
@config_option
def command(config: Path | None) -> None:
    """Close windows, judge rules, open and resolve problems, state insights, join labels; until stopped.

    Run as many as you like, on as many machines: one leads (who owns the partition of kafka.jobs_topic), the others
    take over when it is gone. All of them read labels from kafka.labels_topic. Rules that change in the settings file
    hold from the next look on, without a restart and without evaluating anything anew; other settings are read at the
    start.

    \b
    Examples:
      ragwatch jobs
      RAGWATCH_JOBS__EVERY_S=2 ragwatch jobs --config demo.toml
    """
    loaded = settings_from(config)
    from stream.scheduler import run

    sys.exit(run(loaded))
