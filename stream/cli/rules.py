"""`ragtide rules`."""

from datetime import datetime
from pathlib import Path

import click

from ragtide.stream.cli.options import EventTime, config_option, variables_of
from ragtide.stream.cli.problems_lookup import open_database
from ragtide.stream.terminal import say_json


@click.group()
def command() -> None:
    """Backtest rules on stored windows before they go live.

    \b
    Examples:
      ragtide rules test new-rules.toml --from 2026-03-01
    """


@command.command("test")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "first",
    type=EventTime(),
    required=True,
    metavar="TIME",
    help="Start of the range. Only windows that start from then on.",
)
@click.option(
    "--to",
    "until",
    type=EventTime(),
    metavar="TIME",
    help="End of the range. Only windows that end by then. Default: now.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: problems, new, same, gone, untried.")
@config_option
def backtest_rules(file: Path, first: datetime, until: datetime | None, as_json: bool, config: Path | None) -> None:
    """Show the problems that the rules of FILE would have raised, and compare them with the real ones. Writes nothing.

    FILE is a settings file. Its sections [rules], and [drift] if set, are tested with the variables RAGTIDE_RULES__
    and RAGTIDE_DRIFT__ on top; all other settings are the running ones. Live windows are evaluated as stored now,
    each at its end: rules, objectives with the budget spent before, failure rates, evaluator errors and missing
    data. Stored traces are checked for findings, flips and inconsistency, and dead letters by number. Change detectors
    start at --from, with baselines from the days before.

    A problem is new if the running settings raised none at that place and time, and gone if only they did. Not
    covered: full disks and broker retention (named as not tried if FILE sets them), operator actions, rule state from
    before --from, and stalled lanes.

    \b
    Examples:
      ragtide rules test new-rules.toml --from 2026-03-01 --to 2026-03-08
      ragtide rules test ragtide.toml --from 2026-03-01T12:00:00Z --json | jq -r '.problems[].description'
    """
    from ragtide.drift.backtest.run import backtest, diff_with_raised, not_covered
    from ragtide.drift.jobs import server_time
    from ragtide.evaluators import registry
    from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds
    from ragtide.stream.cli.bar import bar
    from ragtide.stream.cli.rules_render import as_object, show
    from ragtide.stream.rules_reload import load_candidate

    with open_database(config) as (settings, database):
        evaluators = with_encoder_thresholds(registry.load(), settings.evaluators)
        candidate = load_candidate(file, evaluators, variables_of("rules") | variables_of("drift"))
        now = server_time(database)
        until = min(until or now, now)
        if first >= until:
            raise click.BadParameter("it must be before --to, and before now", param_hint="--from")
        with bar() as progress:
            arguments = (candidate.rules, settings.windows, settings.jobs, first, until, candidate.drift)
            found = backtest(database, evaluators, *arguments, progress)
        against = diff_with_raised(database, found, first, until, detectors=candidate.drift is not None)
    if as_json:
        say_json(as_object(found, against, not_covered(candidate.names), first, until), default=datetime.isoformat)
    else:
        show(found, against, not_covered(candidate.names))
