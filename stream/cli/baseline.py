"""`ragwatch baseline`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stream.cli.baseline_pins import COMMANDS
from stream.cli.options import config_option, settings_from

if TYPE_CHECKING:
    from sinks.clickhouse.database import Database
    from stream.settings import Settings


@click.group()
def command() -> None:
    """What is usual for each series of windows: learned from the last days, once a day; or pinned.

    \b
    Examples:
      ragwatch baseline learn
      ragwatch baseline show docs-bot groundedness.groundedness
      ragwatch baseline pin docs-bot --run release-7 --why "what we shipped"
      ragwatch baseline unpin docs-bot --why "a new model since"
      ragwatch baseline pins docs-bot
    """


for _one in COMMANDS:
    command.add_command(_one)


@command.command("learn")
@config_option
def learn(config: Path | None) -> None:
    """Learn the baselines of all series that have none, and look at what is closed, with a progress bar.

    `ragwatch jobs` does the same, unseen; where it runs, what it finds stands. No problem is raised here.

    \b
    Examples:
      ragwatch baseline learn
    """
    settings = settings_from(config).settings
    from drift.jobs import server_time
    from drift.leadership import least_version
    from drift.watching.bearings import Running
    from drift.watching.look import Look
    from evaluators import registry
    from evaluators.suited import suited
    from stream.cli.bar import bar

    with _database(settings) as database, bar() as tell:
        epoch = int(database.rows("SELECT max(epoch) AS epoch FROM leaders")[0]["epoch"])
        # Whatever the leader of this epoch wrote, or writes, wins.
        evaluators = suited(registry.load(), settings.evaluators)
        bearings = Running(database, settings.windows, lambda: least_version(epoch))
        look = Look(database, evaluators, settings.windows, settings.drift, bearings)
        looked = look.run(server_time(database), partial(tell, "baselines"))
    click.echo(f"{looked.series} series, {looked.warming} of them with too little history, {looked.alarms} in alarm")


@command.command("show")
@click.argument("app")
@click.argument("metric")
@click.option("--environment", help="Only of this environment.")
@click.option("--model", help="Only of this model.")
@click.option("--segment", metavar="NAME=VALUE", default="=", help="Of this segment; default: of the whole.")
@click.option("--json", "as_json", is_flag=True, help="A list of objects, one per series.")
@config_option
def show(
    app: str,
    metric: str,
    environment: str | None,
    model: str | None,
    segment: str,
    as_json: bool,
    config: Path | None,
) -> None:
    """What is usual for METRIC of APP, by hour of the day (UTC), and how its last day was.

    Drawn are the level of weekdays and of weekends, and of days with an hour that differs every week; the spread of a
    usual window's figure around it; and the last day's figure by hour. METRIC is evaluator.metric; of rates, latency
    and cost the figure is a share of traces.

    \b
    Examples:
      ragwatch baseline show docs-bot groundedness.groundedness
      ragwatch baseline show docs-bot operations.latency_seconds --model gpt-x --json
      ragwatch baseline show docs-bot inputs.question_meaning
    """
    settings = settings_from(config).settings
    from drift.questions.lots import StoredQuestions
    from drift.questions.shown import shown_questions
    from drift.questions.telling import METRIC
    from drift.watching.kinds import watches
    from drift.watching.shown import shown
    from evaluators import registry
    from evaluators.suited import suited

    name, _, value = segment.partition("=")
    wanted = {"app": app, "metric": metric, "segment": name, "segment_value": value}
    wanted |= {} if environment is None else {"environment": environment}
    wanted |= {} if model is None else {"model": model}
    with _database(settings) as database:
        if metric == METRIC and not (model or name):  # questions come before any model
            found = shown_questions(database, StoredQuestions(database), app, environment)
        else:
            watched = watches(suited(registry.load(), settings.evaluators).values(), settings.drift.ignored_everywhere)
            found = shown(database, watched, settings.windows, settings.drift, wanted)
    if as_json:
        import msgspec

        click.echo(json.dumps(msgspec.to_builtins(found), indent=2, ensure_ascii=False))
        return
    from stream.cli.baseline_drawn import draw

    draw(found)


@contextmanager
def _database(settings: "Settings") -> "Iterator[Database]":
    from sinks.clickhouse.database import Database

    database = Database(settings.clickhouse)
    try:
        yield database
    finally:
        database.close()
