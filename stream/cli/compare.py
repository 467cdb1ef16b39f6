"""`ragwatch compare`."""

import json
import sys
from datetime import datetime
from pathlib import Path

import click

from stream.cli.options import EventTime, FiniteRange, config_option, settings_from, split

WORSE = 1


@click.command()
@click.argument("run_a", metavar="RUN_A")
@click.argument("run_b", metavar="RUN_B")
@click.option("--app", help="Only this application.")
@click.option("--from", "start", type=EventTime(), help="Only traces of this event time and later.")
@click.option("--to", "end", type=EventTime(), help="Only traces of an earlier event time.")
@click.option("--metric", "metrics", multiple=True, metavar="NAME[,NAME]", help="Only these metrics, or evaluators.")
@click.option(
    "--alpha",
    type=FiniteRange(0, 0.5, min_open=True),
    default=0.05,
    show_default=True,
    help="Share of the differences found that may be chance; intervals have confidence 1 - alpha.",
)
@click.option(
    "--min-change",
    type=FiniteRange(min=0),
    default=0.0,
    show_default=True,
    help="Smaller differences of means, in the metric's unit, are none.",
)
@click.option(
    "--top", type=click.IntRange(1, 100), default=3, show_default=True, help="Traces to name that moved most."
)
@click.option("--json", "as_json", is_flag=True, help="One object with all that is known.")
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
    """What changed from RUN_A to RUN_B: per metric the difference of means, how sure it is, the traces that moved most.

    Runs are names given to `ragwatch replay`, or `live`. Where trace ids match, what counts is how each trace changed
    (Student's interval of the mean change); where fewer than half of the smaller run's do, the runs are taken for
    independent (Welch's). A metric is worse or better where its p, adjusted for the number of metrics (Benjamini and
    Hochberg), is at most --alpha. A line `evaluator.(failed)` is the share of traces on which it failed.

    Exit status: 0 nothing is worse, 1 something is, 2 an error, such as a run that is not there.

    \b
    Examples:
      ragwatch compare before after
      ragwatch compare live new-prompt --app docs-bot --from 2026-03-02 --to 2026-03-03
      ragwatch compare main branch --metric groundedness,rouge.rouge1_f --min-change 0.01 --json > changes.json
    """
    if run_a == run_b:
        raise click.UsageError("RUN_A and RUN_B are the same run")
    if start is not None and end is not None and start >= end:
        raise click.UsageError("--from must lie before --to")
    settings = settings_from(config).settings
    from drift.compare.judging import compare
    from drift.compare.result import Question
    from drift.windows.metrics import metrics_by_name
    from evaluators import registry
    from sinks.clickhouse.database import Database
    from stream.cli.compare_output import as_object, show

    question = Question(run_a, run_b, app, start, end, split(metrics), alpha, min_change, top)
    database = Database(settings.clickhouse)
    try:
        found = compare(database, metrics_by_name(registry.load()), question)
    finally:
        database.close()
    if as_json:
        click.echo(json.dumps(as_object(found, question), indent=2))
    else:
        show(found, question)
    sys.exit(WORSE if found.worse else 0)
