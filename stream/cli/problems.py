"""`ragtide problems`."""

from pathlib import Path
from typing import get_args

import click

from ragtide.stream.cli import problems_actions
from ragtide.stream.cli.options import config_option
from ragtide.stream.cli.problems_lookup import episodes_of, open_database
from ragtide.stream.terminal import say, say_json

STATES = ("pending", "open", "resolved")
SEVERITIES = ("critical", "warning", "info")
TYPES = (
    "accuracy", "retrieval", "fairness", "privacy", "security", "robustness", "stability", "data_quality", "efficiency",
    "cost", "storage", "runtime",
)  # fmt: skip


@click.group()
def command() -> None:
    """List problems, show one, and acknowledge, mute or accept it.

    \b
    Examples:
      ragtide problems list
      ragtide problems list --state open --app docs-bot --json
      ragtide problems show 3f2a
      ragtide problems ack 3f2a --why "looking into it"
      ragtide problems mute 3f2a --until 2h --why "known, mended tonight"
      ragtide problems accept 3f2a --why "the new model answers more briefly"
    """


for each in problems_actions.COMMANDS:
    command.add_command(each)


@command.command("list")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES),
    help="Only problems in this state. Default: open and resolved.",
)
@click.option("--app", help="Only this application.")
@click.option(
    "--type", "types", multiple=True, type=click.Choice(TYPES), metavar="TYPE", help=f"Only of: {', '.join(TYPES)}."
)
@click.option("--severity", "severities", multiple=True, type=click.Choice(SEVERITIES), help="Only this severity.")
@click.option("--standard", help="Only problems of this compliance principle, e.g. Fair. Case does not matter.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects.")
@config_option
def list_problems(
    states: tuple[str, ...],
    app: str | None,
    types: tuple[str, ...],
    severities: tuple[str, ...],
    standard: str | None,
    as_json: bool,
    config: Path | None,
) -> None:
    """List problems, newest first.

    \b
    Examples:
      ragtide problems list
      ragtide problems list --severity critical --standard "privacy enhanced"
      ragtide problems list --state open --json | jq -r '.[].description'
    """
    from ragtide.drift.problems.model import State
    from ragtide.drift.problems.store import load_problems
    from ragtide.stream.cli.problems_render import as_objects, show_table

    wanted: list[State] = [state for state in get_args(State) if state in (states or ("open", "resolved"))]
    with open_database(config) as (settings, database):
        # What explains a problem may be of another state or application.
        known = load_problems(database, states=get_args(State))
    found = [
        one
        for one in known
        if one.state in wanted
        and app in (None, one.app)
        and (not types or one.type in types)
        and (not severities or one.severity in severities)
        and (standard is None or standard.casefold() in map(str.casefold, one.standards))
    ]
    if as_json:
        say_json(as_objects(found, known, settings.grafana))
    elif not found:
        say("no problems")
    else:
        show_table(found)


@command.command("show")
@click.argument("problem_id")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects, one per episode.")
@config_option
def show_problem(problem_id: str, as_json: bool, config: Path | None) -> None:
    """Show one problem by episode: figures, example traces, next steps, operator actions, and a chart of its onset.

    PROBLEM_ID is an id from `ragtide problems list`, or its first characters.

    \b
    Examples:
      ragtide problems show 3f2a
    """
    from ragtide.drift.problems.chart import chart_points, chart_series
    from ragtide.drift.problems.operator_actions import history
    from ragtide.drift.problems.store import load_problems
    from ragtide.drift.windows.metrics import metrics_by_name
    from ragtide.evaluators import registry
    from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds
    from ragtide.stream.cli.problems_chart import chart
    from ragtide.stream.cli.problems_render import as_objects, describe_actions, describe_problem

    with open_database(config) as (settings, database):
        found = episodes_of(database, problem_id)
        if as_json:
            say_json(as_objects(found, load_problems(database), settings.grafana))
            return
        metrics = metrics_by_name(with_encoder_thresholds(registry.load(), settings.evaluators))
        figure = chart_series(found[0], metrics.get(found[0].metric))
        points = [] if figure is None else chart_points(database, found[0], figure, settings.windows.base_s)
        actions = history(database, found[0])
    chart_lines = [] if figure is None else chart(found[0], figure, points)
    first, *before = [describe_problem(problem, settings.grafana) for problem in found]
    for number, part in enumerate(part for part in (first, describe_actions(actions), chart_lines, *before) if part):
        say(*([""] if number else []), *part)
