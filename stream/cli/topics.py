"""`ragtide topics`."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtide.stream.cli.options import FiniteRange, config_option, settings_from
from ragtide.stream.terminal import say, say_json

if TYPE_CHECKING:
    from ragtide.stream.kafka.consumer_groups import GroupPosition


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects, one per group and partition.")
@config_option
@click.pass_context
def command(context: click.Context, as_json: bool, config: Path | None) -> None:
    """Show lag per lane and partition, the members of each consumer group, and which jobs process leads.

    Lag counts uncommitted records; without a commit, all records. Seconds are the age of the oldest uncommitted
    record, or - if unknown. Lanes that never ran are left out. Members are not known with the embedded broker. For the
    dead-letter topic, which no group reads, only the number of records is shown.

    \b
    Examples:
      ragtide topics
      ragtide topics --json | jq '[.[].lag // 0] | add'
    """
    if context.invoked_subcommand is None:
        _show(as_json, config)


@command.command()
@click.option(
    "--partitions", type=click.IntRange(1), default=4, show_default=True, help="Partitions of each topic of traces."
)
@click.option("--replicas", type=click.IntRange(1), default=1, show_default=True, help="Replicas of every topic.")
@click.option(
    "--retention-days",
    type=FiniteRange(0, min_open=True),
    help="Retention of every topic except those of jobs, problems and insights. Default: the brokers' setting.",
)
@click.option("--spans", is_flag=True, help="Also create the topics of stage assemble: otel.topics and the like.")
@config_option
def create(partitions: int, replicas: int, retention_days: float | None, spans: bool, config: Path | None) -> None:
    """Create every topic that the settings name and that does not exist.

    Existing topics are never changed; exit status 1 means that one of them differs. Dead letters, labels and jobs get
    one partition. Topics of problems and insights get one, too, and are compacted. Patterns create no topic.
    max.message.bytes is set from kafka.max_record_bytes. The jobs topic keeps the brokers' retention.

    \b
    Examples:
      ragtide topics create
      ragtide topics create --partitions 12 --replicas 3 --retention-days 7
      ragtide topics create --spans
    """
    settings = settings_from(config).settings
    from ragtide.stream.kafka import topic_admin
    from ragtide.stream.settings.topics import PATTERN_MARK

    kafka = settings.kafka
    named = [entry for entry in kafka.topics if not entry.startswith(PATTERN_MARK)]
    retention_ms = None if retention_days is None else round(retention_days * 86_400_000)
    wanted = topic_admin.wanted_topics(kafka, named, partitions, replicas, retention_ms)
    scores = settings.otel.export.scores_topic
    wanted |= topic_admin.wanted_export_topic(kafka, scores, partitions, replicas, retention_ms)
    if spans:
        wanted |= topic_admin.wanted_span_topics(kafka, settings.otel, partitions, replicas, retention_ms)
    made = asyncio.run(topic_admin.create_topics(kafka, wanted))
    for one in made:
        state = (
            "made" if one.is_new else f"is there, with {', '.join(one.differences)}" if one.differences else "is there"
        )
        say(f"{one.topic}: {state}")
    if any(one.differences for one in made):
        raise SystemExit(1)


def _show(as_json: bool, config: Path | None) -> None:
    settings = settings_from(config).settings
    import logging

    from ragtide.stream.kafka.broker_check import partition_counts
    from ragtide.stream.kafka.consumer_groups import active_groups, group_positions, topics_by_group

    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # reported in one line
    kafka = settings.kafka
    known = asyncio.run(partition_counts(kafka))
    groups = topics_by_group(kafka, known)
    if kafka.spans_topic in known:
        read = (*settings.otel.topics, *settings.otel.log_topics, kafka.spans_topic)
        groups[kafka.group("assemble")] = [topic for topic in read if topic in known]
    groups |= {kafka.group("jobs"): (kafka.jobs_topic,), "": (kafka.dead_letter_topic,)}
    found = asyncio.run(group_positions(kafka, groups))
    ran = active_groups(found)
    shown = [one for one in found if one.group in ran or not one.group]
    if as_json:
        import msgspec

        say_json(msgspec.to_builtins(shown))
        return
    _table(shown)
    idle = [group for group in groups if group and group not in ran]
    if idle:
        say("", f"no offsets and no members are known of: {', '.join(idle)}")


def _table(found: "list[GroupPosition]") -> None:
    from ragtide.stream.console import plain_console, table_of

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
