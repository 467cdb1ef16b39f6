"""`ragwatch topics`."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stream.cli.options import FiniteRange, config_option, settings_from

if TYPE_CHECKING:
    from stream.kafka.standing import Standing


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="A list of objects, one per group and partition.")
@config_option
@click.pass_context
def command(context: click.Context, as_json: bool, config: Path | None) -> None:
    """How far each lane is in each partition of the topics of traces, who works on it, who reads labels and who leads.

    Offsets are the brokers' own. Lag counts records that are not committed yet; where a group has committed nothing,
    every record. Seconds are how long the oldest of them has waited, - where nobody can tell. A lane that never ran
    is left out. The embedded broker does not tell members. Of the dead letters,
    which no group reads, it says how many there are.

    \b
    Examples:
      ragwatch topics
      ragwatch topics --json | jq '[.[].lag // 0] | add'
    """
    if context.invoked_subcommand is None:
        _shown(as_json, config)


@command.command()
@click.option("--partitions", type=click.IntRange(1), default=4, show_default=True, help="Of each topic of traces.")
@click.option("--replicas", type=click.IntRange(1), default=1, show_default=True, help="Of every topic.")
@click.option("--retention-days", type=FiniteRange(0, min_open=True), help="Default: what the brokers do.")
@config_option
def create(partitions: int, replicas: int, retention_days: float | None, config: Path | None) -> None:
    """Make every topic that the settings name and that is not there; 1 where one is there with other numbers.

    Nothing that exists is changed. Dead letters, labels and jobs have one partition; patterns make no topic. Messages
    may have kafka.max_record_bytes, and the jobs' topic keeps what the brokers keep.

    \b
    Examples:
      ragwatch topics create
      ragwatch topics create --partitions 12 --replicas 3 --retention-days 7
    """
    settings = settings_from(config).settings
    from stream.configuration.topics import MARK
    from stream.kafka import creation

    kafka = settings.kafka
    named = [entry for entry in kafka.topics if not entry.startswith(MARK)]
    retention_ms = None if retention_days is None else round(retention_days * 86_400_000)
    wanted = creation.wanted_topics(kafka, named, partitions, replicas, retention_ms)
    made = asyncio.run(creation.create(kafka, wanted))
    for one in made:
        said = "made" if one.new else f"is there, with {', '.join(one.differs)}" if one.differs else "is there"
        click.echo(f"{one.topic}: {said}")
    if any(one.differs for one in made):
        raise SystemExit(1)


def _shown(as_json: bool, config: Path | None) -> None:
    settings = settings_from(config).settings
    import logging

    from stream.kafka.brokers import partitions
    from stream.kafka.standing import groups_of, standings, that_ran

    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # said better as one line
    kafka = settings.kafka
    groups = groups_of(kafka, asyncio.run(partitions(kafka)))
    groups |= {kafka.group("jobs"): (kafka.jobs_topic,), "": (kafka.dead_letter_topic,)}
    found = asyncio.run(standings(kafka, groups))
    ran = that_ran(found)
    shown = [one for one in found if one.group in ran or not one.group]
    if as_json:
        import msgspec

        click.echo(json.dumps(msgspec.to_builtins(shown), indent=2))
        return
    _table(shown)
    idle = [group for group in groups if group and group not in ran]
    if idle:
        click.echo(f"\nno offsets and no members are known of: {', '.join(idle)}")


def _table(found: "list[Standing]") -> None:
    from stream.cli.tables import plain_console, table_of

    console = plain_console()
    table = table_of("group")
    table.add_column("topic", overflow="fold")
    for column in ("partition", "records", "end", "committed", "lag", "seconds"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("member", overflow="fold")
    for one in found:
        figures = (one.end - one.begin, one.end, one.committed, one.lag)
        numbers = ["-" if figure is None else f"{figure:,}" for figure in figures]
        table.add_row(one.group or "-", one.topic, str(one.partition), *numbers, _age(one.lag_s), one.member or "-")
    for group in dict.fromkeys(one.group for one in found if one.group):
        own = [one for one in found if one.group == group]
        lag, ages = sum(one.lag or 0 for one in own), [one.lag_s for one in own if one.lag_s is not None]
        table.add_row(group, "all", "", "", "", "", f"{lag:,}", _age(max(ages, default=None)), "")
    console.print(table)


def _age(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:,.1f}"
