"""`ragtide compare`."""

import sys
from datetime import datetime
from pathlib import Path

import click

from ragtide.stream.cli import completion
from ragtide.stream.cli.names import check_names, given
from ragtide.stream.cli.options import EventTime, FiniteRange, config_option, settings_from, split
from ragtide.stream.known_names import known_apps
from ragtide.stream.terminal import say_json

WORSE = 1


@click.command()
@click.argument("run_a", metavar="RUN_A", shell_complete=completion.runs)
@click.argument("run_b", metavar="RUN_B", shell_complete=completion.runs)
@click.option("--app", help="Only this application.", shell_complete=completion.apps)
@click.option("--from", "start", type=EventTime(), help="Only traces from this event time on.")
@click.option("--to", "end", type=EventTime(), help="Only traces before this event time.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME[,NAME]",
    help="Only these metrics or evaluators.",
    shell_complete=completion.metrics,
)
@click.option(
    "--alpha",
    type=FiniteRange(0, 0.5, min_open=True),
    default=0.05,
    show_default=True,
    help="Accepted share of false discoveries among reported differences. Intervals have confidence 1 - alpha.",
)
@click.option(
    "--min-change",
    type=FiniteRange(min=0),
    default=0.0,
    show_default=True,
    help="Smallest difference of means that counts, in the metric's unit.",
)
@click.option(
    "--top", type=click.IntRange(1, 100), default=3, show_default=True, help="Number of most changed traces to name."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all results.")
@config_option
def command(
    run_a: str,
    run_b: str,
    app: str | None,
    start: datetime | None,
    end: datetime | None,
    metrics: tuple[str, ...],
    alpha: float,
    min_change: float,
    top: int,
    as_json: bool,
    config: Path | None,
) -> None:
    """Compare the metrics of RUN_B with those of RUN_A: difference of means, significance, most changed traces.

    RUN_A and RUN_B are names given to `ragtide replay`, or `live`. Traces with equal ids are compared pairwise
    (Student's t). If fewer than half of the smaller run's traces have a pair, the runs are compared as independent
    (Welch's t). A metric is better or worse if its p-value is at most --alpha, after Benjamini-Hochberg correction for
    the number of metrics. A line `evaluator.(failed)` is the share of traces on which the evaluator failed.

    Exit status: 0 if no metric is worse, 1 if one is, 2 for an error, such as an unknown run.

    \b
    Examples:
      ragtide compare before after
      ragtide compare live new-prompt --app docs-bot --from 2026-03-02 --to 2026-03-03
      ragtide compare main branch --metric groundedness,rouge.rouge1_f --min-change 0.01 --json > changes.json
    """
    if run_a == run_b:
        raise click.UsageError("RUN_A and RUN_B are the same run")
    if start is not None and end is not None and start >= end:
        raise click.UsageError("--from must lie before --to")
    settings = settings_from(config).settings
    from ragtide.drift.compare import CompareQuery, compare
    from ragtide.drift.windows import metrics_by_name
    from ragtide.evaluators import registry
    from ragtide.sinks.clickhouse.database import Database
    from ragtide.stream.cli.compare_output import as_object, show

    question = CompareQuery(run_a, run_b, app, start, end, split(metrics), alpha, min_change, top)
    database = Database(settings.clickhouse)
    try:
        check_names("--app", given(app), (), lambda: known_apps(database))
        found = compare(database, metrics_by_name(registry.load(settings.evaluators)), question)
    finally:
        database.close()
    if as_json:
        say_json(as_object(found, question))
    else:
        show(found, question)
    sys.exit(WORSE if found.worse else 0)
