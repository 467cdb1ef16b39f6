"""`ragtide problems`."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from ragtide.stream.cli import problems_actions
from ragtide.stream.cli.completion import problem_ids
from ragtide.stream.cli.names import check_names
from ragtide.stream.cli.options import config_option
from ragtide.stream.cli.problems_filter import ProblemFilter, filter_options
from ragtide.stream.cli.problems_lookup import current_silences, episodes_of, open_database, warn_of_stopped_jobs
from ragtide.stream.terminal import say, say_json

if TYPE_CHECKING:
    from ragtide.stream.cli.problems_render import TraceLink
    from ragtide.stream.settings.loader import Settings

STATES = ("pending", "open", "resolved")
SEVERITIES = ("critical", "warning", "info")


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
      ragtide problems ack --app docs-bot --type retrieval --why "the index is being rebuilt"
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
@filter_options
@click.option("--severity", "severities", multiple=True, type=click.Choice(SEVERITIES), help="Only this severity.")
@click.option("--standard", help="Only problems of this compliance principle, e.g. Fair. Case does not matter.")
@click.option("--all", "with_symptoms", is_flag=True, help="List symptoms too, after the problem that explains them.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects.")
@config_option
def list_problems(
    states: tuple[str, ...],
    severities: tuple[str, ...],
    standard: str | None,
    with_symptoms: bool,
    as_json: bool,
    config: Path | None,
    **filters: tuple[str, ...],
) -> None:
    """List problems, newest first. Problems that another one explains are its symptoms: they are counted there.

    \b
    Examples:
      ragtide problems list
      ragtide problems list --all
      ragtide problems list --app docs-bot --metric groundedness --kind drift,change_point
      ragtide problems list --severity critical --standard "privacy enhanced"
      ragtide problems list --state open --json | jq -r '.[].description'
    """
    from ragtide.drift.jobs import server_time
    from ragtide.drift.problems import State, group, latest_episodes, load_problems
    from ragtide.evaluators.standards import STANDARDS
    from ragtide.stream.cli.problems_render import as_objects, show_table

    chosen = ProblemFilter.of(**filters)
    wanted: list[State] = [state for state in get_args(State) if state in (states or ("open", "resolved"))]
    with open_database(config) as (settings, database):
        # What explains a problem may be of another state or application.
        known, now = load_problems(database, states=get_args(State), every_episode=True), server_time(database)
        chosen.check_names(database, settings.evaluators, known)
        standards = {name.casefold() for one in known for name in one.standards}
        check_names(
            "--standard", [standard.casefold()] if standard else [], standards, lambda: map(str.casefold, STANDARDS)
        )
        silences = current_silences(database)
        if not as_json:
            warn_of_stopped_jobs(database, settings.jobs.live_after_s)
    matching = [
        one
        for one in latest_episodes([one for one in known if one.state in wanted or one.state != "pending"])
        if chosen.matches(one)
        and (not severities or one.severity in severities)
        and (standard is None or standard.casefold() in map(str.casefold, one.standards))
    ]
    found = [one for one in matching if one.state in wanted]
    groups = group(known, now)
    # An open symptom belongs to its parent, though that has resolved.
    listed = groups.unfold(found) if with_symptoms else groups.fold(found, matching)
    if as_json:
        say_json(as_objects(listed, groups, _trace_link(settings), silences))
    elif not listed:
        say("no problems")
    else:
        show_table(listed, groups, silences)


@command.command("show")
@click.argument("problem_id", shell_complete=problem_ids)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects, one per episode.")
@click.option("--verbose", is_flag=True, help="Also print the attributes as stored.")
@config_option
def show_problem(problem_id: str, as_json: bool, verbose: bool, config: Path | None) -> None:
    """Show one problem: what to do, example traces, a chart of the onset, details, and operator actions.

    PROBLEM_ID is an id from `ragtide problems list`, or its first characters. Event time is when traces happened,
    processing time when jobs saw them. Earlier episodes follow.

    \b
    Examples:
      ragtide problems show 3f2a
      ragtide problems show 3f2a --verbose
    """
    from ragtide.drift.jobs import server_time
    from ragtide.drift.problems import State, chart_points, chart_series, group, load_problems, problem_history
    from ragtide.drift.windows import metrics_by_name
    from ragtide.evaluators import registry
    from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds
    from ragtide.stream.cli.problems_chart import chart
    from ragtide.stream.cli.problems_render import (
        as_objects,
        describe_actions,
        describe_details,
        describe_examples,
        describe_head,
        describe_next_steps,
    )

    with open_database(config) as (settings, database):
        found = episodes_of(database, problem_id)
        known = load_problems(database, states=get_args(State), every_episode=True)
        groups = group([one for one in known if one.app in ("", found[0].app)], server_time(database))
        silences = current_silences(database, {found[0].problem_id})
        if as_json:
            say_json(as_objects(found, groups, _trace_link(settings), silences))
            return
        metrics = metrics_by_name(with_encoder_thresholds(registry.load(settings.evaluators), settings.evaluators))
        figure = chart_series(found[0], metrics.get(found[0].metric))
        points = [] if figure is None else chart_points(database, found[0], figure, settings.windows.base_s)
        actions = problem_history(database, found[0])
    chart_lines = [] if figure is None else chart(found[0], figure, points)
    newest, *earlier = found
    parts = [
        describe_head(newest, groups, silences),
        describe_next_steps(newest),
        describe_examples(newest, _trace_link(settings)),
        chart_lines,
        describe_details(newest, verbose=verbose),
        describe_actions(actions),
        *([*describe_head(one, groups), *describe_details(one, verbose=verbose)] for one in earlier),
    ]
    for number, part in enumerate(part for part in parts if part):
        say(*([""] if number else []), *part)


def _trace_link(settings: "Settings") -> "TraceLink":
    from ragtide.dashboards.trace_links import trace_link

    return partial(trace_link, settings=settings.grafana, uid_prefix=settings.dashboards.uid_prefix)
