"""`ragtide jobs`."""

import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtide.stream.cli.names import check_names
from ragtide.stream.cli.options import FiniteRange, config_option, settings_from
from ragtide.stream.cli.problems_lookup import open_database
from ragtide.stream.known_names import known_jobs
from ragtide.stream.terminal import say, say_json

if TYPE_CHECKING:
    from ragtide.drift.job_history import JobRun


@click.group(invoke_without_command=True)
@config_option
@click.pass_context
def command(context: click.Context, config: Path | None) -> None:
    """Close windows, evaluate rules, detect changes, open and resolve problems, and join labels, until stopped.

    Run several for failover, on any machines. The process that owns the partition of kafka.jobs_topic leads; the
    others take over if it stops. All of them read labels from kafka.labels_topic. Changed rules in the settings file
    apply from the next run on, without a restart or another evaluation. Other settings are read at startup.

    \b
    Examples:
      ragtide jobs
      RAGTIDE_JOBS__EVERY_S=2 ragtide jobs --config demo.toml
      ragtide jobs runs --failed
    """
    if context.invoked_subcommand is not None:
        return
    loaded = settings_from(config)
    from ragtide.stream.jobs_process import run

    sys.exit(run(loaded))


@command.command("runs")
@click.option("--job", default="", help="Only this job, e.g. watch.")
@click.option("--failed", is_flag=True, help="Only failed runs.")
@click.option(
    "--last", type=click.IntRange(1, 10_000), default=3, show_default=True, help="Number of latest runs per job."
)
@click.option(
    "--days", type=FiniteRange(0, 30, min_open=True), default=7.0, show_default=True, help="Days to look back."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects.")
@config_option
def list_runs(job: str, failed: bool, last: int, days: float, as_json: bool, config: Path | None) -> None:
    """Show the latest runs of each job: start, duration, rows read, problems raised, and errors.

    \b
    Examples:
      ragtide jobs runs
      ragtide jobs runs --job drift --last 20
      ragtide jobs runs --failed --json | jq -r '.[].failed'
    """
    from ragtide.drift.job_history import load_runs
    from ragtide.drift.jobs import server_time

    with open_database(config) as (_, database):
        found = load_runs(database, server_time(database) - timedelta(days=days), job, failed=failed, most=last)
        if job and not found:
            check_names("--job", [job], (), lambda: known_jobs(database))
    if as_json:
        say_json([one._asdict() for one in found], default=str)
    elif not found:
        say("no runs")
    else:
        _table(found)


def _table(found: "list[JobRun]") -> None:
    from ragtide.stream.console import plain_console, table_of

    console = plain_console()
    table = table_of("job", "started (UTC)")
    for column in ("seconds", "read", "raised"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("failed", overflow="fold")
    for one in found:
        counts = ["-" if count is None else f"{count:,}" for count in (one.read, one.raised)]
        table.add_row(one.job, f"{one.started_at:%Y-%m-%d %H:%M:%S}", f"{one.took_s:.3f}", *counts, one.failed or "-")
    console.print(table)
