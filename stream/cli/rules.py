"""`ragwatch rules`."""

from datetime import datetime
from pathlib import Path

import click

from stream.cli.options import EventTime, config_option, variables_of
from stream.cli.problems_found import reached


@click.group()
def command() -> None:
    """Try rules on past windows before they go live.

    \b
    Examples:
      ragwatch rules test new-rules.toml --from 2026-03-01
    """


@command.command("test")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--from", "first", type=EventTime(), required=True, metavar="TIME", help="Windows that start from then.")
@click.option("--to", "until", type=EventTime(), metavar="TIME", help="Windows that end by then; default: now.")
@click.option("--json", "as_json", is_flag=True, help="An object: problems, new, same, gone, untried.")
@config_option
def try_rules(file: Path, first: datetime, until: datetime | None, as_json: bool, config: Path | None) -> None:
    """What the rules of FILE would have raised, and how that differs from what was raised; nothing is written.

    FILE is a settings file whose section [rules] is tried, and [drift] where it sets something there, with the
    variables RAGWATCH_RULES__ and RAGWATCH_DRIFT__ over them; everything else is as in the settings that run. The live
    windows of that time are judged as they are stored now, each at the moment at which it ended: by the rules mean,
    share, value, any and coverage, by objectives and the budgets that are left of the time before, by the limits of
    failure rates and of evaluators' errors, and for missing_after_s. So are stored traces, for findings, flips and
    inconsistency, and dead letters. Detectors of changes in windows and in what users ask begin at --from, with
    baselines of the days before. A problem is new where the running settings raised none there in that time, and gone
    where only they did.

    What has no past is named as not tried where FILE sets it: how full disks are, and what brokers keep. Nor is what
    people said of problems part of it, what rules knew before --from, and lanes that wrote nothing at all.

    \b
    Examples:
      ragwatch rules test new-rules.toml --from 2026-03-01 --to 2026-03-08
      ragwatch rules test ragwatch.toml --from 2026-03-01T12:00:00Z --json | jq -r '.problems[].description'
    """
    from drift.dry_run.compared import compared
    from drift.dry_run.everything import try_settings, untried
    from drift.jobs import server_time
    from evaluators import registry
    from evaluators.suited import suited
    from stream.cli.bar import bar
    from stream.cli.rules_shown import as_object, show
    from stream.rules_file import said_in

    with reached(config) as (settings, database):
        evaluators = suited(registry.load(), settings.evaluators)
        said = said_in(file, evaluators, variables_of("rules") | variables_of("drift"))
        now = server_time(database)
        until = min(until or now, now)
        if first >= until:
            raise click.BadParameter("it must be before --to, and before now", param_hint="--from")
        with bar() as progress:
            tried = (said.rules, settings.windows, settings.jobs, first, until, said.drift)
            found = try_settings(database, evaluators, *tried, progress)
        against = compared(database, found, first, until, detectors=said.drift is not None)
    if as_json:
        click.echo(as_object(found, against, untried(said.names), first, until))
    else:
        show(found, against, untried(said.names))
