"""`ragwatch insights`."""

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stream.cli.insights_topics import topics
from stream.cli.options import FiniteRange, config_option
from stream.cli.problems_found import reached
from stream.plain import plain

if TYPE_CHECKING:
    from drift.insights.insight import InsightRow


@click.group(invoke_without_command=True)
@click.option("--app", help="Only of this application.")
@click.option("--type", "type_", help="Only of this type: accuracy, calibration, cost, data, retrieval, speed, ...")
@click.option("--days", type=FiniteRange(0, 3650, min_open=True), default=1.0, show_default=True, help="Back to.")
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
@config_option
@click.pass_context
def command(
    context: click.Context, app: str | None, type_: str | None, days: float, as_json: bool, config: Path | None
) -> None:
    """What is worth knowing and never pages: best and worst models, weak points, metrics that tell nothing.

    Each is stated for a period (jobs.insights_period_s). Shares, means and ratios have an interval, which --json shows.

    \b
    Examples:
      ragwatch insights
      ragwatch insights --app docs-bot --type cost
      ragwatch insights --days 7 --json | jq -r '.[].description'
    """
    if context.invoked_subcommand is None:
        _shown(app, type_, days, as_json, config)


command.add_command(topics)


def _shown(app: str | None, type_: str | None, days: float, as_json: bool, config: Path | None) -> None:
    from drift.insights.stated import stated
    from drift.jobs import server_time

    with reached(config) as (_, database):
        found = stated(database, server_time(database) - timedelta(days=days), app, type_)
    if as_json:
        objects = [one._asdict() | {"attributes": json.loads(one.attributes)} for one in found]
        for one in objects:
            del one["epoch"], one["withdrawn"]  # tell the looks of jobs apart, not what was found
        click.echo(json.dumps(objects, indent=2, ensure_ascii=False, default=str))
    elif not found:
        click.echo("no insights")
    else:
        click.echo("\n\n".join(_told(found)))


def _told(found: "Sequence[InsightRow]") -> list[str]:
    """One after another in words."""
    told = []
    for one in found:
        lines = [
            f"{one.type}, {one.period_start:%Y-%m-%d %H:%M} to {one.period_end:%Y-%m-%d %H:%M} UTC",
            one.description,
        ]
        lines += [f"  - {action}" for action in one.actions]
        lines += [f"  example traces: {' '.join(one.examples)}"] if one.examples else []
        told.append("\n".join(map(plain, lines)))
    return told
