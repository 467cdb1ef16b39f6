"""`ragwatch problems`."""

from pathlib import Path
from typing import get_args

import click

from stream.cli import problems_marks
from stream.cli.options import config_option
from stream.cli.problems_found import episodes_of, reached

STATES = ("pending", "open", "resolved")
SEVERITIES = ("high", "medium", "low")
TYPES = (
    "accuracy", "retrieval", "fairness", "privacy", "security", "robustness", "stability", "data_quality", "efficiency",
    "cost", "storage", "runtime",
)  # fmt: skip


@click.group()
def command() -> None:
    """What is wrong with the watched applications, and what was.

    \b
    Examples:
      ragwatch problems list
      ragwatch problems list --state open --app docs-bot --json
      ragwatch problems show 3f2a
      ragwatch problems ack 3f2a --why "looking into it"
      ragwatch problems mute 3f2a --until 2h --why "known, mended tonight"
      ragwatch problems accept 3f2a --why "the new model answers more briefly"
    """


for each in problems_marks.COMMANDS:
    command.add_command(each)


@command.command("list")
@click.option("--state", "states", multiple=True, type=click.Choice(STATES), help="Default: open and resolved.")
@click.option("--app", help="Only this application.")
@click.option(
    "--type", "types", multiple=True, type=click.Choice(TYPES), metavar="TYPE", help=f"Only of: {', '.join(TYPES)}."
)
@click.option("--severity", "severities", multiple=True, type=click.Choice(SEVERITIES), help="Only so severe.")
@click.option("--standard", help="Only what touches this principle, e.g. Fair; upper and lower case are alike.")
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
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
    """The problems, the newest first.

    \b
    Examples:
      ragwatch problems list
      ragwatch problems list --severity high --standard "privacy enhanced"
      ragwatch problems list --state open --json | jq -r '.[].description'
    """
    from drift.problems.folding import load_problems
    from drift.problems.problem import State
    from stream.cli.problems_shown import as_objects, show_table

    wanted: list[State] = [state for state in get_args(State) if state in (states or ("open", "resolved"))]
    with reached(config) as (settings, database):
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
        click.echo(as_objects(found, known, settings.grafana))
    elif not found:
        click.echo("no problems")
    else:
        show_table(found)


@command.command("show")
@click.argument("problem_id")
@click.option("--json", "as_json", is_flag=True, help="A list of objects, one per episode.")
@config_option
def show_problem(problem_id: str, as_json: bool, config: Path | None) -> None:
    """One problem: its figures, example traces and what to do, by episode, and what was judged, drawn around its onset.

    PROBLEM_ID is as `problems list` prints it; the first characters suffice.

    \b
    Examples:
      ragwatch problems show 3f2a
    """
    from drift.problems.drawn import judged
    from drift.problems.folding import load_problems
    from drift.problems.marks import history
    from drift.problems.onset import around
    from drift.windows.metrics import metrics_by_name
    from evaluators import registry
    from evaluators.suited import suited
    from stream.cli.problems_chart import chart
    from stream.cli.problems_shown import as_objects, told, words_of_people

    with reached(config) as (settings, database):
        found = episodes_of(database, problem_id)
        if as_json:
            click.echo(as_objects(found, load_problems(database), settings.grafana))
            return
        metrics = metrics_by_name(suited(registry.load(), settings.evaluators))
        figure = judged(found[0], metrics.get(found[0].metric))
        points = [] if figure is None else around(database, found[0], figure, settings.windows.base_s)
        said = history(database, found[0])
    drawn = "" if figure is None else chart(found[0], figure, points)
    first, *before = [told(problem, settings.grafana) for problem in found]
    click.echo("\n\n".join(part for part in (first, words_of_people(said), drawn, *before) if part))
