"""`ragtide check`."""

import sys
from pathlib import Path

import click

from ragtide.stream.cli.options import check_rules, config_option, settings_from
from ragtide.stream.terminal import say, say_json


@click.command()
@click.option("--models", is_flag=True, help="Also load every model that enabled evaluators use, one at a time.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects: name, ok, message, unreachable.")
@config_option
def command(models: bool, as_json: bool, config: Path | None) -> None:
    """Check all connections and settings: Kafka, topics, ClickHouse, tables, Grafana, evaluators, ports.

    Prints one line per check: what was reached, or what is wrong and what to do. Exit status 1 means that a check
    failed, 2 that the settings are invalid; then nothing is checked. In --json, `ok` is null for a check that was not
    tried.

    Without --models, checks only whether model files exist, because loading them takes memory and time.

    \b
    Examples:
      ragtide check
      ragtide check --models
      ragtide check --json | jq -r '.[] | select(.ok == false) | .message'
      ragtide check --config production.toml && ragtide worker --lane fast --config production.toml
    """
    loaded = settings_from(config)
    check_rules(loaded)
    import logging

    from ragtide.stream.connectivity_checks import run_checks

    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # reported below in one line
    if as_json:
        from dataclasses import asdict

        found = [asdict(check) for check in run_checks(loaded, models=models)]
        say_json(found)
        sys.exit(1 if any(one["ok"] is False for one in found) else 0)
    wrong = 0
    away = False
    for check in run_checks(loaded, models=models):
        wrong += check.ok is False
        away |= check.unreachable and check.name in ("kafka", "clickhouse")
        mark, colour = {True: ("ok", "green"), False: ("WRONG", "red"), None: ("-", "yellow")}[check.ok]
        say(f"{check.name}: {check.message}", mark=f"{mark:<6}", colour=colour)
    if wrong:
        say(f"{wrong} to mend", err=True)
    if away:
        say("To try ragtide without services of your own: `ragtide local` runs a broker and ClickHouse", err=True)
    sys.exit(1 if wrong else 0)
