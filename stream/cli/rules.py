"""`ragtide rules`."""

from datetime import datetime
from pathlib import Path

import click

from ragtide.stream.cli.options import EventTime, config_option, settings_from
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

    FILE is a settings file, tested whole with RAGTIDE_ variables on top. A section that neither sets is the running
    one; rules are always those of FILE, and change detectors are tested if [drift] is set. Live windows of
    windows.base_s are evaluated as stored now, each at its end: rules, objectives with the budget spent before, failure
    rates, evaluator errors and missing data. Stored traces are checked for findings, flips and inconsistency, and dead
    letters by number. Change detectors start at --from, with baselines from the days before.

    A problem is new if the running settings raised none at that place and time, and gone if only they did. Changed
    settings that the past cannot tell of, such as parameters of evaluators, segments or limits of disks, are named as
    not tried. Not covered: operator actions, rule state from before --from, and stalled lanes.

    \b
    Examples:
      ragtide rules test new-rules.toml --from 2026-03-01 --to 2026-03-08
      ragtide rules test ragtide.toml --from 2026-03-01T12:00:00Z --json | jq -r '.problems[].description'
    """
    from ragtide.drift.backtest import backtest, diff_with_raised, not_covered
    from ragtide.drift.jobs import server_time
    from ragtide.stream.cli.bar import bar
    from ragtide.stream.cli.rules_render import as_object, show
    from ragtide.stream.rules_reload import candidate_of

    with open_database(config) as (running, database):
        candidate = candidate_of(settings_from(file), running)
        settings = candidate.settings
        drift = settings.drift if candidate.tries_detectors else None
        now = server_time(database)
        until = min(until or now, now)
        if first >= until:
            raise click.BadParameter("it must be before --to, and before now", param_hint="--from")
        with bar() as progress:
            arguments = (settings.rules, settings.windows, settings.jobs, first, until, drift)
            found = backtest(database, candidate.evaluators, *arguments, progress)
        against = diff_with_raised(database, found, first, until, detectors=drift is not None)
    if as_json:
        say_json(as_object(found, against, not_covered(candidate.names), first, until), default=datetime.isoformat)
    else:
        show(found, against, not_covered(candidate.names))
