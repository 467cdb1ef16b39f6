"""`ragtide baseline`."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtide.stream.cli import completion
from ragtide.stream.cli.baseline_pin import COMMANDS
from ragtide.stream.cli.names import check_names, given
from ragtide.stream.cli.options import config_option, settings_from
from ragtide.stream.known_names import known_apps, known_metrics, known_values
from ragtide.stream.terminal import say, say_json

if TYPE_CHECKING:
    from ragtide.sinks.clickhouse.database import Database
    from ragtide.stream.settings.loader import Settings


@click.group()
def command() -> None:
    """Learn, show or pin baselines: the usual level of each series, learned once a day from its history.

    \b
    Examples:
      ragtide baseline learn
      ragtide baseline show docs-bot groundedness.groundedness
      ragtide baseline pin docs-bot --run release-7 --why "what we shipped"
      ragtide baseline unpin docs-bot --why "a new model since"
      ragtide baseline pins docs-bot
    """


for _one in COMMANDS:
    command.add_command(_one)


@command.command("learn")
@config_option
def learn(config: Path | None) -> None:
    """Learn missing baselines now and scan closed windows, with a progress bar.

    `ragtide jobs` does the same in the background, and its results take precedence. This command raises no problem.

    \b
    Examples:
      ragtide baseline learn
    """
    settings = settings_from(config).settings
    from ragtide.drift.anomalies import Scanner, live_context
    from ragtide.drift.jobs import server_time
    from ragtide.drift.leadership import min_version
    from ragtide.evaluators import registry
    from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds
    from ragtide.stream.cli.bar import bar

    with _database(settings) as database, bar() as progress:
        epoch = int(database.rows("SELECT max(epoch) AS epoch FROM leaders")[0]["epoch"])
        # Whatever the leader of this epoch wrote, or writes, wins.
        evaluators = with_encoder_thresholds(registry.load(settings.evaluators), settings.evaluators)
        context = live_context(database, settings.windows, lambda: min_version(epoch))
        scanner = Scanner(database, evaluators, settings.windows, settings.drift, context)
        result = scanner.run(server_time(database), partial(progress, "baselines"))
    say(f"{result.series} series, {result.warming_up} of them with too little history, {result.alarms} in alarm")


@command.command("show")
@click.argument("app", shell_complete=completion.apps)
@click.argument("metric", shell_complete=completion.metrics)
@click.option("--environment", help="Only this environment.")
@click.option("--model", help="Only this model.")
@click.option("--segment", metavar="NAME=VALUE", default="=", help="Only this segment. Default: the total.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects, one per series.")
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
    """Show the baseline of METRIC of APP by hour of the day (UTC), and its last day.

    The chart shows the level of weekdays, of weekends, and of days with an hour that differs every week. It shows the
    spread of a window's figure, and the last day by hour. METRIC is evaluator.metric. For rates, latency and cost the
    figure is a share of traces.

    \b
    Examples:
      ragtide baseline show docs-bot groundedness.groundedness
      ragtide baseline show docs-bot operations.latency_seconds --model gpt-x --json
      ragtide baseline show docs-bot inputs.question_meaning
    """
    settings = settings_from(config).settings
    from ragtide.drift.anomalies import baseline_views, monitored_metrics
    from ragtide.drift.input_drift import QUESTION_METRIC, ClickHouseQuestionStore, reference_views
    from ragtide.evaluators import registry
    from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds

    name, _, value = segment.partition("=")
    wanted = {"app": app, "metric": metric, "segment": name, "segment_value": value}
    wanted |= {} if environment is None else {"environment": environment}
    wanted |= {} if model is None else {"model": model}
    with _database(settings) as database:
        check_names("APP", [app], (), lambda: known_apps(database))
        check_names("METRIC", [metric], (QUESTION_METRIC,), partial(known_metrics, settings.evaluators))
        for column, chosen in (("environment", environment), ("model", model), ("segment", name)):
            check_names(f"--{column}", given(chosen), ("",), partial(known_values, database, column, app))
        if metric == QUESTION_METRIC and not (model or name):  # questions come before any model
            found = reference_views(database, ClickHouseQuestionStore(database), app, environment)
        else:
            watched = monitored_metrics(
                with_encoder_thresholds(registry.load(settings.evaluators), settings.evaluators).values(),
                settings.drift.ignored_everywhere,
            )
            found = baseline_views(database, watched, settings.windows, settings.drift, wanted)
    if as_json:
        import msgspec

        say_json(msgspec.to_builtins(found))
        return
    from ragtide.stream.cli.baseline_render import draw

    draw(found)


@contextmanager
def _database(settings: "Settings") -> "Iterator[Database]":
    from ragtide.sinks.clickhouse.database import Database

    database = Database(settings.clickhouse)
    try:
        yield database
    finally:
        database.close()
