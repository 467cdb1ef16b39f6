"""`ragtide labels`."""

from datetime import timedelta
from pathlib import Path

import click

from ragtide.stream.cli import completion
from ragtide.stream.cli.names import check_names, given
from ragtide.stream.cli.options import FiniteRange, config_option
from ragtide.stream.cli.problems_lookup import open_database
from ragtide.stream.known_names import known_apps, known_runs
from ragtide.stream.terminal import say
from ragtide.stream.terminal_text import plain_json

_MOST = 100_000


@click.group()
def command() -> None:
    """Draw answers for people to label, so that their labels stand for all answers.

    docs/labels.md explains labels.

    \b
    Examples:
      ragtide labels sample faithfulness.faithfulness --rate 0.05
    """


@command.command("sample", short_help="Draw judged answers at random, and print a label to complete for each.")
@click.argument("metric")
@click.option(
    "--rate",
    required=True,
    type=FiniteRange(0, 1, min_open=True),
    help="Share of the judged answers to draw. Choose it so that people label all that are drawn.",
)
@click.option("--app", help="Only this application.", shell_complete=completion.apps)
@click.option("--run", "run_id", default="live", show_default=True, help="Scores of this run.")
@click.option(
    "--days", type=FiniteRange(0, 3650, min_open=True), default=7.0, show_default=True, help="Days to look back."
)
@config_option
def sample(metric: str, rate: float, app: str | None, run_id: str, days: float, config: Path | None) -> None:
    """Draw answers that the evaluator of METRIC (evaluator.metric) scored, and print a label to complete for each.

    They are JSON lines. The choice depends on the trace id alone, so the same command draws the same answers, without
    those that have a label of a sample of the evaluator. The labels count for all metrics of that evaluator, and for no
    other. Replace null by "up" or "down", then send the file with ragtide.label. ragtide calibrate then estimates what
    people would say of all answers.

    \b
    Examples:
      ragtide labels sample faithfulness.faithfulness --rate 0.05 --app shop > labels.jsonl
      python -c 'import ragtide; print(ragtide.label("labels.jsonl"))'
    """
    from ragtide.drift.jobs import server_time
    from ragtide.drift.label_sample import JudgedTraces, draw_traces
    from ragtide.drift.windows import metrics_by_name
    from ragtide.evaluators import registry
    from ragtide.evaluators.errors import ConfigError

    with open_database(config) as (settings, database):
        evaluators = registry.load(settings.evaluators)
        metrics = {name: one for name, one in metrics_by_name(evaluators).items() if one.evaluator.combine is None}
        check_names("METRIC", [metric], metrics)
        judged = JudgedTraces(metrics[metric], run_id, app, server_time(database) - timedelta(days=days))
        trace_ids = draw_traces(database, judged, rate, _MOST + 1)
        if not trace_ids:
            check_names("--app", given(app), (), lambda: known_apps(database))
            check_names("--run", [run_id], ("live",), lambda: known_runs(database))
    if len(trace_ids) > _MOST:  # a part of them would be no random sample
        raise ConfigError(f"more than {_MOST:,} answers are drawn; lower --rate or --days")
    if not trace_ids:
        say(f"no answer with a score of {metric} is drawn that has no label yet; raise --rate or --days", err=True)
    sample_of = {"sample_rate": rate, "sample_evaluator": judged.metric.evaluator.id}
    for trace_id in trace_ids:
        say(plain_json({"trace_id": trace_id, **sample_of, "verdict": {"thumbs": None}}))
