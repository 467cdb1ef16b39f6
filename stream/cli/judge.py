"""`ragtide judge`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragtide.stream.cli.options import FiniteRange, config_option
from ragtide.stream.cli.problems_lookup import open_database
from ragtide.stream.terminal import say, say_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtide.drift.canaries import JudgeShift
    from ragtide.drift.checks import JudgedMetric
    from ragtide.evaluators.spec import Evaluator
    from ragtide.sinks.clickhouse.database import Database
    from ragtide.stream.settings.loader import Settings


@click.group()
def command() -> None:
    """Show how steadily judges score traces that never change (canaries).

    docs/judge.md explains them.

    \b
    Examples:
      ragtide judge canaries
    """


@command.command("canaries", short_help="Show each judge's level on canaries, and how far it moved.")
@click.option("--run", "run_now", is_flag=True, help="First score the canaries now. This costs money.")
@click.option(
    "--max-usd",
    type=FiniteRange(0, min_open=True),
    help="With --run: send no call once the run has cost so much. Calls in flight are paid for beyond it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects.")
@config_option
def canaries(run_now: bool, max_usd: float | None, as_json: bool, config: Path | None) -> None:
    """Show each judge's level on canaries: in its first five runs, and since its scores moved.

    Reads the stored runs, and sends no call without --run. Jobs score canaries if evaluators.judge.canaries.enabled is
    set, and open the problem judge_shift; --run scores them once more, whatever that setting. p is the probability of
    such a difference if the judge had not changed. Failed counts canaries of the newest run without a score.

    \b
    Examples:
      ragtide judge canaries
      ragtide judge canaries --run --max-usd 0.50
      ragtide judge canaries --json | jq '.[] | select(.shift != null and .p < 0.001)'
    """
    if max_usd is not None and not run_now:
        raise click.UsageError("--max-usd limits the cost of --run; give both")
    from ragtide.drift.checks import CheckContext, judge_shifts
    from ragtide.drift.jobs import server_time
    from ragtide.evaluators import registry
    from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds

    with open_database(config) as (settings, database):
        evaluators = with_encoder_thresholds(registry.load(settings.evaluators), settings.evaluators)
        if run_now:
            say(*_score(settings, database, evaluators, max_usd), err=True)
        context = CheckContext(database, evaluators, settings.rules, settings.windows, settings.jobs)
        found = judge_shifts(context, server_time(database))
    if as_json:
        say_json([_as_object(one, shift) for one, shift in found])
    elif not found:
        say("no judge scored canaries yet; --run does, and jobs do if evaluators.judge.canaries.enabled is set")
    else:
        _table([_as_object(one, shift) for one, shift in found])


def _score(
    settings: "Settings", database: "Database", evaluators: "Mapping[str, Evaluator]", max_usd: float | None
) -> list[str]:
    """Score the canaries now; return lines about counts and cost."""
    from ragtide.drift.jobs import server_time
    from ragtide.evaluators.errors import ConfigError
    from ragtide.evaluators.judge.settings import NO_ENDPOINT, needs_prices
    from ragtide.stream.judge import usage_lines
    from ragtide.stream.judge_canaries import CanaryScorer, load_canaries
    from ragtide.stream.telemetry.logs import configure

    configure(settings.telemetry)
    judge = settings.evaluators.judge
    if not judge.endpoints:
        raise ConfigError(NO_ENDPOINT)
    if max_usd is not None and (name := judge.without_prices(judge.endpoints)) is not None:
        raise ConfigError(f"a limit of the cost {needs_prices(name)}")
    scorer = CanaryScorer(settings, database, load_canaries(settings), evaluators, max_usd=max_usd)
    done = scorer.run(server_time(database))
    left = "" if done.is_complete else "; limits or the endpoint left some out"
    return [f"{done.scored:,} scored, {done.failed:,} failed{left}", *usage_lines(done.usage)]


def _as_object(one: "JudgedMetric", shift: "JudgeShift | None") -> dict[str, Any]:
    return {
        "metric": one.metric.name,
        "endpoint": one.judge.endpoint,
        "fingerprint": one.judge.fingerprint,
        "reference_runs": len(one.reference),
        "later_runs": len(one.later),
        "newest_run": one.judge.runs[-1].isoformat(),
        "scored": one.judge.scored,
        "failed": one.judge.failed,
        "reference": shift and shift.baseline,
        "level": shift and shift.value,
        "shift": shift and shift.shift,
        "since": shift and shift.since.isoformat(),
        "p": shift and shift.p,
        "run_noise": shift and shift.run_noise,
    }


def _table(found: list[dict[str, Any]]) -> None:
    from ragtide.drift.text import number
    from ragtide.stream.console import plain_console, table_of

    console = plain_console()
    table = table_of("metric", "endpoint", "newest run (UTC)")
    for column in ("runs", "scored", "failed", "reference", "level", "shift", "p"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in found:
        figures = ("reference", "level", "shift", "p")
        known = ["-" if one[name] is None else number(one[name]) for name in figures]
        runs = one["reference_runs"] + one["later_runs"]
        counts = [f"{count:,}" for count in (runs, one["scored"], one["failed"])]
        table.add_row(one["metric"], one["endpoint"], one["newest_run"][:16].replace("T", " "), *counts, *known)
    console.print(table)
