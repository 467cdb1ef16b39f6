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
@click.option("--json", "as_json", is_flag=True, help="An object: problems, new, same, gone.")
@config_option
def try_rules(file: Path, first: datetime, until: datetime | None, as_json: bool, config: Path | None) -> None:
    """What the rules of FILE would have raised, and how that differs from what was raised; nothing is written.

    FILE is a settings file whose section [rules] is tried, RAGWATCH_RULES__ variables over it; everything else is as
    in the settings that run. The live windows of that time are judged as they are stored now, each at the moment at
    which it ended, by the rules mean, share, value, any and coverage. A problem is new where the running rules raised
    none there in that time, and gone where only they did.

    Detectors of drift, objectives, failure rates, findings and what else jobs watch are no part of it, nor is what
    people said of problems, what was known before --from, and lanes that wrote nothing at all.

    \b
    Examples:
      ragwatch rules test new-rules.toml --from 2026-03-01 --to 2026-03-08
      ragwatch rules test ragwatch.toml --from 2026-03-01T12:00:00Z --json | jq -r '.problems[].description'
    """
    from drift.dry_run.compared import compared
    from drift.dry_run.run import dry_run
    from drift.jobs import server_time
    from drift.windows.metrics import metrics_by_name
    from evaluators import registry
    from evaluators.suited import suited
    from stream.cli.rules_shown import as_object, show
    from stream.rules_file import rules_in

    with reached(config) as (settings, database):
        evaluators = suited(registry.load(), settings.evaluators)
        rules = rules_in(file, evaluators, variables_of("rules"))
        now = server_time(database)
        until = min(until or now, now)
        if first >= until:
            raise click.BadParameter("it must be before --to, and before now", param_hint="--from")
        found = dry_run(database, metrics_by_name(evaluators), rules, settings.windows, first, until)
        against = compared(database, found, first, until)
    if as_json:
        click.echo(as_object(found, against, first, until))
    else:
        show(found, against)
