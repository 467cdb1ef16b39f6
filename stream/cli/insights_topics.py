"""`ragwatch insights topics`."""

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stream.cli.options import FiniteRange, config_option
from stream.cli.problems_found import reached

if TYPE_CHECKING:
    from drift.topics.shown import ModelShown


@click.command("topics")
@click.option("--app", help="Only of this application.")
@click.option(
    "--days",
    type=FiniteRange(0, 3650, min_open=True),
    default=1.0,
    show_default=True,
    help="Count what was asked.",
)
@click.option("--json", "as_json", is_flag=True, help="A list of objects, one per application.")
@config_option
def topics(app: str | None, days: float, as_json: bool, config: Path | None) -> None:
    """The topics that questions are placed in, by the model that holds, and how much is asked of each now.

    A topic has its id and its name for good; one that nobody asks about any more is retired, and left out where it was
    not asked about. What is of no topic counts as other.

    \b
    Examples:
      ragwatch insights topics
      ragwatch insights topics --app docs-bot --days 7
      ragwatch insights topics --json | jq -r '.[].topics[] | select(.share > 0.1) | .name'
    """
    from drift.jobs import server_time
    from drift.topics.shown import in_force

    with reached(config) as (_, database):
        found = in_force(database, server_time(database) - timedelta(days=days), app)
    if as_json:
        objects = [one._asdict() | {"topics": [topic._asdict() for topic in one.topics]} for one in found]
        click.echo(json.dumps(objects, indent=2, ensure_ascii=False, default=str))
    elif not found:
        click.echo("no topic models: the job topics fits one once an application has asked enough (settings topics)")
    for one in found if not as_json else ():
        _show(one)


def _show(one: "ModelShown") -> None:
    from drift.phrases import percent
    from stream.cli.tables import plain_console, table_of

    console = plain_console()
    fitted = f"{one.fitted_at:%Y-%m-%d %H:%M} UTC"
    console.print(f"{one.app}: version {one.version}, fitted {fitted} on {one.questions:,} questions by {one.encoder}")
    table = table_of()
    table.add_column("topic", overflow="fold")
    for column in ("id", "fitted on", "asked", "share"):
        table.add_column(column, justify="right", no_wrap=True)
    for topic in one.topics:
        if topic.fitted_on or topic.asked:
            share = "-" if topic.share is None else percent(topic.share)
            id_ = "-" if topic.id is None else str(topic.id)
            table.add_row(topic.name, id_, f"{topic.fitted_on:,}", f"{topic.asked:,}", share)
    console.print(table)
