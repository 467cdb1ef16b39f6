"""`ragtide insights topics`."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtide.stream.cli import completion
from ragtide.stream.cli.names import check_names, given
from ragtide.stream.cli.options import FiniteRange, config_option
from ragtide.stream.cli.problems_lookup import open_database
from ragtide.stream.known_names import known_apps
from ragtide.stream.terminal import say, say_json

if TYPE_CHECKING:
    from ragtide.drift.topics import TopicModelView


@click.command("topics")
@click.option("--app", help="Only this application.", shell_complete=completion.apps)
@click.option(
    "--days",
    type=FiniteRange(0, 3650, min_open=True),
    default=1.0,
    show_default=True,
    help="Days to count questions over.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects, one per application.")
@config_option
def topics(app: str | None, days: float, as_json: bool, config: Path | None) -> None:
    """Show the topics of questions in the current topic model, and how often each was asked.

    A topic keeps its id and name. A topic that gets no more questions is retired, and left out if it had none in this
    time. Questions without a topic count as other.

    \b
    Examples:
      ragtide insights topics
      ragtide insights topics --app docs-bot --days 7
      ragtide insights topics --json | jq -r '.[].topics[] | select(.share > 0.1) | .name'
    """
    from ragtide.drift.jobs import server_time
    from ragtide.drift.topics import current_models

    with open_database(config) as (_, database):
        found = current_models(database, server_time(database) - timedelta(days=days), app)
        if not found:
            check_names("--app", given(app), (), lambda: known_apps(database))
    if as_json:
        objects = [one._asdict() | {"topics": [topic._asdict() for topic in one.topics]} for one in found]
        say_json(objects, default=str)
    elif not found:
        say("no topic models: the job topics fits one once an application has asked enough (settings topics)")
    for one in found if not as_json else ():
        _show(one)


def _show(one: "TopicModelView") -> None:
    from ragtide.drift.text import percent
    from ragtide.stream.console import plain_console, table_of

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
