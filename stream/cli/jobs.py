"""`ragwatch jobs`."""

import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stream.cli.options import FiniteRange, config_option, settings_from
from stream.cli.problems_found import reached

if TYPE_CHECKING:
    from drift.job_runs import JobRun


@click.group(invoke_without_command=True)
@config_option
@click.pass_context
def command(context: click.Context, config: Path | None) -> None:
    """Close windows, judge rules, watch for changes, open and resolve problems, join labels; until stopped.

    Run as many as you like, on as many machines: one leads (who owns the partition of kafka.jobs_topic), the others
    take over when it is gone. All of them read labels from kafka.labels_topic. Rules that change in the settings file
    hold from the next look on, without a restart and without evaluating anything anew; other settings are read at the
    start.

    \b
    Examples:
      ragwatch jobs
      RAGWATCH_JOBS__EVERY_S=2 ragwatch jobs --config demo.toml
      ragwatch jobs runs --failed
    """
    if context.invoked_subcommand is not None:
        return
    loaded = settings_from(config)
    from stream.scheduler import run

    sys.exit(run(loaded))


@command.command("runs")
@click.option("--job", default="", help="Only this one, e.g. watch.")
@click.option("--failed", is_flag=True, help="Only runs that failed.")
@click.option("--last", type=click.IntRange(1, 10_000), default=3, show_default=True, help="How many of each job.")
@click.option(
    "--days", type=FiniteRange(0, 30, min_open=True), default=7.0, show_default=True, help="How many days back."
)
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
@config_option
def list_runs(job: str, failed: bool, last: int, days: float, as_json: bool, config: Path | None) -> None:
    """What each job did in its last runs: when, for how long, what it read and raised, and why it failed.

    \b
    Examples:
      ragwatch jobs runs
      ragwatch jobs runs --job drift --last 20
      ragwatch jobs runs --failed --json | jq -r '.[].failed'
    """
    from drift.job_runs import runs
    from drift.jobs import server_time

    with reached(config) as (_, database):
        found = runs(database, server_time(database) - timedelta(days=days), job, failed=failed, most=last)
    if as_json:
        import json

        click.echo(json.dumps([one._asdict() for one in found], indent=2, default=str))
    elif not found:
        click.echo("no runs")
    else:
        _table(found)


def _table(found: "list[JobRun]") -> None:
    from stream.cli.tables import plain_console, table_of

    console = plain_console()
    table = table_of("job", "started (UTC)")
    for column in ("seconds", "read", "raised"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("failed", overflow="fold")
    for one in found:
        counts = ["-" if count is None else f"{count:,}" for count in (one.read, one.raised)]
        table.add_row(one.job, f"{one.started_at:%Y-%m-%d %H:%M:%S}", f"{one.took_s:.3f}", *counts, one.failed or "-")
    console.print(table)
