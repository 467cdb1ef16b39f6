"""`ragtide trace`."""

from pathlib import Path

import click

from ragtide.stream.cli import completion
from ragtide.stream.cli.options import config_option
from ragtide.stream.cli.problems_lookup import open_database
from ragtide.stream.terminal import say_json


@click.command()
@click.argument("trace_id")
@click.option("--app", help="Application of the trace, if several have the id.", shell_complete=completion.apps)
@click.option("--environment", help="Environment of the trace, if several have the id.")
@click.option(
    "--run",
    "run_id",
    metavar="NAME",
    help="Run of the trace. Default: live and probes.",
    shell_complete=completion.runs,
)
@click.option("--full", is_flag=True, help="Print texts whole. Default: the first 4,000 characters of each.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object with whole texts.")
@config_option
def command(
    trace_id: str,
    app: str | None,
    environment: str | None,
    run_id: str | None,
    full: bool,
    as_json: bool,
    config: Path | None,
) -> None:
    """Show one trace: question, contexts, answer, every score with its evidence, and the problems that name it.

    Texts are shown as stored: in full, masked or not at all (privacy.store_texts). Evidence is numbered and marked in
    the text: [1>like this<1]. Masked texts have no marks, because offsets are those of the original.

    \b
    Examples:
      ragtide trace 7f3c
      ragtide trace 7f3c --app docs-bot --environment prod
      ragtide trace 7f3c --run monday --json | jq '.scores[] | select(.status == "failed")'
    """
    from ragtide.stream.cli.trace_lookup import find_trace
    from ragtide.stream.cli.trace_render import as_object, show_trace

    with open_database(config) as (settings, database):
        found = find_trace(database, trace_id, app, environment, run_id)
    if as_json:
        say_json(as_object(found), default=str)
        return
    from ragtide.drift.windows import metrics_by_name
    from ragtide.evaluators import registry
    from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds

    metrics = metrics_by_name(with_encoder_thresholds(registry.load(settings.evaluators), settings.evaluators))
    show_trace(found, metrics, settings.rules, longest=None if full else 4000)
