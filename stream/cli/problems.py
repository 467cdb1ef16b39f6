"""`ragwatch problems`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from stream.cli.options import config_option, settings_from

if TYPE_CHECKING:
    from drift.problems import Problem

STATES = ("pending", "open", "resolved")
_WIDTH = 1000  # of the table where it goes to a file or a pipe: nothing is folded there


@click.group()
def command() -> None:
    """What is wrong with the watched applications, and what was.

    \b
    Examples:
      ragwatch problems list
      ragwatch problems list --state open --app docs-bot --json
      ragwatch problems show 3f2a
    """


@command.command("list")
@click.option("--state", "states", multiple=True, type=click.Choice(STATES), help="Default: open and resolved.")
@click.option("--app", help="Only this application.")
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
@config_option
def list_problems(states: tuple[str, ...], app: str | None, as_json: bool, config: Path | None) -> None:
    """The problems, the newest first.

    \b
    Examples:
      ragwatch problems list
      ragwatch problems list --state open --json | jq -r '.[].description'
    """
    found = _load(config, states or ("open", "resolved"), app=app)
    if as_json:
        click.echo(_json(found))
        return
    if not found:
        click.echo("no problems")
        return
    _table(found)


@command.command("show")
@click.argument("problem_id")
@click.option("--json", "as_json", is_flag=True, help="A list of objects, one per episode.")
@config_option
def show_problem(problem_id: str, as_json: bool, config: Path | None) -> None:
    """One problem: its figures, example traces and what to do, by episode.

    PROBLEM_ID is as `problems list` prints it; the first characters suffice.

    \b
    Examples:
      ragwatch problems show 3f2a
    """
    found = _load(config, STATES, problem=problem_id)
    from evaluators.errors import ConfigError

    if not found:
        raise ConfigError(
            f"there is no problem {problem_id!r}; `ragwatch problems list` has the ids, with --state pending also "
            "of those that may open"
        )
    if len(distinct := {problem.problem_id for problem in found}) > 1:
        raise ConfigError(f"{problem_id!r} begins several ids: {', '.join(sorted(distinct))}")
    click.echo(_json(found) if as_json else "\n\n".join(_told(problem) for problem in found))


def _load(
    config: Path | None, states: tuple[str, ...], *, app: str | None = None, problem: str | None = None
) -> "list[Problem]":
    settings = settings_from(config).settings
    from drift.problems import State, load_problems
    from sinks.clickhouse.database import Database

    wanted: list[State] = [state for state in get_args(State) if state in states]
    database = Database(settings.clickhouse)
    try:
        return load_problems(database, states=wanted, app=app, problem=problem, every_episode=problem is not None)
    finally:
        database.close()


def _table(problems: "list[Problem]") -> None:
    """One line each where it goes to a file or a pipe; the description names app and metric."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = _WIDTH
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("problem", "state", "severity", "since (UTC)"):
        table.add_column(column, no_wrap=True)
    table.add_column("what", overflow="fold")
    for problem in problems:
        since = f"{problem.opened_at or problem.first_seen_at:%Y-%m-%d %H:%M:%S}"
        table.add_row(problem.problem_id[:8], problem.state, problem.severity, since, problem.description)
    console.print(table)


def _json(problems: "list[Problem]") -> str:
    import msgspec

    return json.dumps(msgspec.to_builtins(problems), indent=2, ensure_ascii=False)


def _told(problem: "Problem") -> str:
    where = f"{problem.app} {problem.environment}".strip()
    segment = f", {problem.segment} = {problem.segment_value}" if problem.segment else ""
    lines = [
        f"{problem.problem_id} episode {problem.episode}: {problem.state}, severity {problem.severity}",
        f"  {problem.description}",
        f"  in {where}{f', model {problem.model}' if problem.model else ''}{segment}: {problem.metric}",
        f"  {problem.type} {problem.code}".rstrip(),
    ]
    times = {
        "first seen": problem.first_seen_at,
        "last seen": problem.last_seen_at,
        "opened": problem.opened_at,
        "resolved": problem.resolved_at,
    }
    lines += [f"  {what} {at:%Y-%m-%d %H:%M:%S} UTC" for what, at in times.items() if at is not None]
    lines += [f"  acknowledged by {problem.acked_by}"] if problem.acked_by else []
    lines += [f"  muted by {problem.muted_by}"] if problem.muted_by else []
    lines += [f"  found by: {', '.join(problem.kinds)}"]
    lines += [f"  {name}: {value}" for name, value in problem.attributes.items() if value not in (None, "", [], [""])]
    lines += [f"  standards: {', '.join(problem.standards)}"] if problem.standards else []
    lines += ["  example traces, the worst first:", *(f"    {trace}" for trace in problem.examples)]
    lines += ["  what to do:", *(f"    {action}" for action in problem.actions)]
    return "\n".join(lines)
