"""`ragwatch check`."""

import sys
from pathlib import Path

import click

from stream.cli.options import check_rules, config_option, settings_from


@click.command()
@config_option
def command(config: Path | None) -> None:
    """Try everything the settings name: Kafka and its topics, ClickHouse and its tables, Grafana, evaluators, ports.

    Each is said in one line: what was reached, or what is wrong and what to do. Exit status 1 where something is, 2
    where settings are wrong in themselves: then nothing is tried.

    \b
    Examples:
      ragwatch check
      ragwatch check --config production.toml && ragwatch worker --lane fast --config production.toml
    """
    loaded = settings_from(config)
    check_rules(loaded)
    import logging

    from stream.checks import checks

    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # said better below
    wrong = 0
    away = False
    for check in checks(loaded):
        wrong += check.well is False
        away |= check.away and check.name in ("kafka", "clickhouse")
        mark, colour = {True: ("ok", "green"), False: ("WRONG", "red"), None: ("-", "yellow")}[check.well]
        click.echo(f"{click.style(f'{mark:<6}', fg=colour)}{check.name}: {check.said}")
    if wrong:
        click.echo(f"{wrong} to mend", err=True)
    if away:
        click.echo(
            "To try ragwatch without services of your own: `ragwatch local` runs a broker and ClickHouse", err=True
        )
    sys.exit(1 if wrong else 0)
