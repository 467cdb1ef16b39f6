"""`ragtide insights`."""

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtide.stream.cli import completion
from ragtide.stream.cli.insights_topics import topics
from ragtide.stream.cli.names import check_names, given
from ragtide.stream.cli.options import FiniteRange, config_option
from ragtide.stream.cli.problems_lookup import open_database
from ragtide.stream.known_names import known_apps, known_insight_types
from ragtide.stream.terminal import say, say_json

if TYPE_CHECKING:
    from ragtide.drift.insights import InsightRow

TYPES = (
    *("accuracy", "calibration", "cost", "data", "fairness", "performance_comparison", "privacy", "retrieval"),
    *("speed", "weak_point"),
)


@click.group(invoke_without_command=True)
@click.option("--app", help="Only this application.", shell_complete=completion.apps)
@click.option("--type", "type_", metavar="TYPE", help=f"Only of: {', '.join(TYPES)}.")
@click.option(
    "--days", type=FiniteRange(0, 3650, min_open=True), default=1.0, show_default=True, help="Days to look back."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects.")
@config_option
@click.pass_context
def command(
    context: click.Context, app: str | None, type_: str | None, days: float, as_json: bool, config: Path | None
) -> None:
    """Show findings that never page: best and worst models, weak points, metrics that carry no information.

    Each insight covers one period (jobs.insights_period_s). --json adds intervals of shares, means and ratios.

    \b
    Examples:
      ragtide insights
      ragtide insights --app docs-bot --type cost
      ragtide insights --days 7 --json | jq -r '.[].description'
    """
    if context.invoked_subcommand is None:
        _show(app, type_, days, as_json, config)


command.add_command(topics)


def _show(app: str | None, type_: str | None, days: float, as_json: bool, config: Path | None) -> None:
    from ragtide.drift.insights import current_insights
    from ragtide.drift.jobs import server_time

    with open_database(config) as (_, database):
        found = current_insights(database, server_time(database) - timedelta(days=days), app, type_)
        if not found:
            check_names("--app", given(app), (), lambda: known_apps(database))
            check_names("--type", given(type_), TYPES, lambda: known_insight_types(database))
    if as_json:
        objects = [one._asdict() | {"attributes": json.loads(one.attributes)} for one in found]
        for one in objects:
            del one["epoch"], one["withdrawn"]  # tell the looks of jobs apart, not what was found
        say_json(objects, default=str)
    elif not found:
        say("no insights")
    else:
        say(*_lines(found))


def _lines(found: "Sequence[InsightRow]") -> list[str]:
    """Describe insights in text, separated by empty lines."""
    lines: list[str] = []
    for one in found:
        lines += [""] if lines else []
        lines += [
            f"{one.type}, {one.period_start:%Y-%m-%d %H:%M} to {one.period_end:%Y-%m-%d %H:%M} UTC",
            one.description,
        ]
        lines += [f"  - {action}" for action in one.actions]
        lines += [f"  example traces: {' '.join(one.examples)}"] if one.examples else []
    return lines
