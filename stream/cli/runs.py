"""`ragtide runs`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragtide.stream.cli import completion
from ragtide.stream.cli.names import check_names
from ragtide.stream.cli.options import config_option
from ragtide.stream.cli.problems_lookup import open_database
from ragtide.stream.known_names import known_runs
from ragtide.stream.terminal import confirm, say, say_json

if TYPE_CHECKING:
    from ragtide.sinks.clickhouse.database import Database
    from ragtide.stream.replay.stored_runs import StoredRun

run_argument = click.argument("run_name", metavar="RUN", shell_complete=completion.runs)


@click.group()
def command() -> None:
    """List replays, show one, or delete one.

    \b
    Examples:
      ragtide runs list
      ragtide runs show monday
      ragtide runs delete monday
    """


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects.")
@config_option
def list_runs(as_json: bool, config: Path | None) -> None:
    """List every run of `ragtide replay`, newest first: state, source, records read, rows stored.

    A run `live:...` is a backfill of live traffic; its rows belong to live.

    \b
    Examples:
      ragtide runs list
      ragtide runs list --json | jq -r '.[] | select(.state == "started") | .run_id'
    """
    from ragtide.stream.replay.stored_runs import stored_runs

    with open_database(config) as (_, database):
        found = stored_runs(database)
    if as_json:
        say_json([_as_object(run) for run in found], default=str)
    elif not found:
        say("no runs; `ragtide replay --run NAME` makes one")
    else:
        _table(found)


@command.command("show")
@run_argument
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@config_option
def show_run(run_name: str, as_json: bool, config: Path | None) -> None:
    """Show one run: source, state, times, records, evaluators, and rows by table.

    \b
    Examples:
      ragtide runs show monday
    """
    with open_database(config) as (_, database):
        run = _find(database, run_name)
    if as_json:
        say_json(_as_object(run), default=str)
    else:
        say(*_lines(run))


@command.command("delete")
@run_argument
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@config_option
def delete_run(run_name: str, yes: bool, config: Path | None) -> None:
    """Delete a run: its traces, texts, scores, windows and dead letters in ClickHouse.

    Refused for live traffic, for a run that is being written, and for the reference of a pinned baseline. Messages in
    Kafka stay. If interrupted, repeat the command.

    \b
    Examples:
      ragtide runs delete monday
      ragtide runs delete monday --yes
    """
    from ragtide.stream.cli.bar import bar
    from ragtide.stream.replay.stored_runs import check_deletable
    from ragtide.stream.replay.stored_runs import delete_run as delete

    with open_database(config) as (_, database):
        run = _find(database, run_name)
        check_deletable(database, run)
        if not yes:
            say(*_lines(run))
            confirm(f"delete run {run.run_id} with {sum(run.rows.values()):,} rows?")
        with bar() as progress:
            rows = delete(database, run, progress)
    say(f"deleted run {run.run_id}: {rows:,} rows")


def _find(database: "Database", run_id: str) -> "StoredRun":
    """The run; a usage error with the nearest names if there is none, or if it is live traffic."""
    from ragtide.stream.replay.stored_runs import stored_runs

    if found := stored_runs(database, run_id):
        return found[0]
    check_names("RUN", [run_id], (), lambda: known_runs(database))
    raise click.BadParameter(f"{run_id!r} is live traffic, and no replay", param_hint="RUN")


def _as_object(run: "StoredRun") -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(run)


def _table(found: "list[StoredRun]") -> None:
    from ragtide.stream.console import plain_console, table_of

    table = table_of("run", "state", "started (UTC)", "updated (UTC)")
    for column in ("records", "dead letters", "rows"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("source", overflow="fold")
    for run in found:
        times = (f"{at:%Y-%m-%d %H:%M:%S}" for at in (run.started_at, run.updated_at))
        counts = (f"{count:,}" for count in (run.records, run.dead_letters, sum(run.rows.values())))
        table.add_row(run.run_id, run.state, *times, *counts, run.source)
    plain_console().print(table)


def _lines(run: "StoredRun") -> list[str]:
    """Describe a run, one fact per line."""
    facts = {
        "source": run.source,
        "state": run.state,
        "started": f"{run.started_at:%Y-%m-%d %H:%M:%S} UTC",
        "updated": f"{run.updated_at:%Y-%m-%d %H:%M:%S} UTC",
        "records": f"{run.records:,}: {run.traces:,} traces, {run.dead_letters:,} dead letters",
        "evaluators": ", ".join(run.evaluators),
        "rows": ", ".join(f"{table} {count:,}" for table, count in run.rows.items()) or "none",
    }
    return [f"run {run.run_id}", *(f"  {name + ':':<12} {value}" for name, value in facts.items())]
