"""`ragwatch dead-letters`."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from stream.cli.options import EventTime, by_option, config_option, settings_from, split, user_name
from stream.cli.replay import check_name, fill

if TYPE_CHECKING:
    from stream.dead_letters.letters import Group, Letter, Letters, State, Wanted
    from stream.settings import Settings

STATES = ("open", "replayed", "dropped")
Command = TypeVar("Command", bound=Callable[..., Any])


def which(command: Command) -> Command:
    """--reason, --topic, --since, --until, --limit: which letters."""
    options = (
        click.option("--reason", "reasons", multiple=True, metavar="REASON[,REASON]", help="Only of these reasons."),
        click.option("--topic", "topics", multiple=True, metavar="TOPIC[,TOPIC]", help="Only of these topics."),
        click.option("--since", type=EventTime(), help="Only from this time of the broker on."),
        click.option("--until", type=EventTime(), help="Only before this time of the broker."),
        click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many."),
    )
    for option in reversed(options):
        command = option(command)
    return command


run_option = click.option("--run", "run_id", default="live", metavar="NAME", help="Letters of this run; default: live.")


@click.group()
def command() -> None:
    """Records that could not be used: why, and what to do about them.

    Their bytes are in the dead-letter topic. A letter is open until it is replayed or dropped.

    \b
    Examples:
      ragwatch dead-letters list
      ragwatch dead-letters show rag.traces/0/4711
      ragwatch dead-letters replay --reason too_old
      ragwatch dead-letters drop --reason not_json --until 2026-03-01
    """


@command.command("list")
@which
@run_option
@click.option("--state", type=click.Choice(STATES), default="open", help="Default: open.")
@click.option("--each", is_flag=True, help="Every letter by itself, the newest first, as `show` takes it.")
@click.option("--json", "as_json", is_flag=True, help="A list of objects.")
@config_option
def list_letters(state: "State", each: bool, as_json: bool, config: Path | None, **options: Any) -> None:
    """How many there are by reason and partition, with the times of the first and the last.

    \b
    Examples:
      ragwatch dead-letters list --since 2026-03-02T09:00Z
      ragwatch dead-letters list --reason wrong_type --each --limit 20
      ragwatch dead-letters list --json | jq -r '.[] | [.reason, .count] | @tsv'
    """
    settings = settings_from(config).settings
    wanted = _wanted(state=state, **options)
    with _letters(settings) as letters:
        found: Sequence[Letter] | Sequence[Group] = letters.find(wanted) if each else letters.groups(wanted)
    if as_json:
        import msgspec

        click.echo(json.dumps(msgspec.to_builtins(found), indent=2))
    elif found:
        from stream.cli.dead_letters_shown import show_table

        show_table(found)
    else:
        click.echo(f"no {state} {wanted}")


@command.command("show")
@click.argument("place", metavar="TOPIC/PARTITION/OFFSET")
@run_option
@config_option
def show_letter(place: str, run_id: str, config: Path | None) -> None:
    """One dead letter: why, where, its headers, and its value AS IT WAS SENT, with what users wrote.

    What steers a terminal, cannot be seen or is not UTF-8 stands as an escape (\\x1b); 64 KiB are shown. Mind who
    looks over your shoulder, and where the output goes: nothing is masked.

    \b
    Examples:
      ragwatch dead-letters show rag.traces/0/4711
    """
    topic, partition, offset = _place(place)
    settings = settings_from(config).settings
    with _letters(settings) as letters:
        found = letters.at(topic, partition, offset, run_id)
    from evaluators.errors import ConfigError

    if not found:
        raise ConfigError(f"no dead letter {place} in run {run_id}; `ragwatch dead-letters list --each` has them")
    from stream.cli.dead_letters_shown import show_one

    for letter in found:
        show_one(letter, settings)


@command.command("replay")
@which
@click.option("--run", "run_id", default="live", metavar="NAME", help="The run to fill; default: live.")
@by_option
@config_option
def replay_letters(run_id: str, by: str | None, config: Path | None, **options: Any) -> None:
    """Evaluate open dead letters of live traffic once more, through the same pipeline, as `ragwatch replay` does.

    What succeeds is marked as replayed; what fails again stays, with its new reason. Where a newer message about a
    trace has come since, that one stands. Event times are not limited (too_old, in_the_future). Stopped or killed,
    the same command goes on where it was; done twice, it leaves the same rows. Another run than live is filled beside
    it, and the letters stay open.

    \b
    Examples:
      ragwatch dead-letters replay --reason too_old,too_big
      ragwatch dead-letters replay --since 2026-03-02T09:00Z --run mended
    """
    check_name(run_id)
    settings = settings_from(config).settings
    actor = by or user_name()
    from stream.dead_letters.source import LetterSource, Settled
    from stream.dead_letters.values import Values

    wanted = _wanted(**options)
    with _letters(settings) as letters:
        open_ = letters.to_replay(wanted, run_id)
        found = [letter for letter in open_ if letter.topic != settings.kafka.labels_topic]
        if len(found) < len(open_):
            click.echo(f"{len(open_) - len(found):,} are labels, which are no traces: mend them and send them again")
        if not found and run_id == wanted.run_id:
            click.echo(f"no open {wanted}")
            return
        source = LetterSource(wanted, found, Values(settings.kafka, batch_records=settings.worker.batch_records))
        settled = Settled(letters, run_id, actor)
        fill(settings, run_id, source, settled=settled)
    click.echo(
        f"run {run_id}: {settled.count:,} of {len(found):,} dead letters replayed, "
        f"{source.found - settled.count:,} failed again, {len(found) - source.found:,} in no topic any more"
    )


@command.command("drop")
@which
@run_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@by_option
@config_option
def drop_letters(yes: bool, by: str | None, config: Path | None, **options: Any) -> None:
    """Mark open dead letters as dropped, with who did it and when: they are neither listed nor replayed any more.

    Their bytes stay in the dead-letter topic for as long as that keeps them.

    \b
    Examples:
      ragwatch dead-letters drop --reason not_json --until 2026-03-01
      ragwatch dead-letters drop --topic rag.test --yes
    """
    settings = settings_from(config).settings
    actor = by or user_name()
    wanted = _wanted(**options)
    with _letters(settings) as letters:
        found = letters.find(wanted)
        if not found:
            click.echo(f"no open {wanted}")
            return
        reasons = Counter(letter.reason for letter in found).most_common()
        told = f"{len(found):,} dead letters ({', '.join(f'{reason} {count:,}' for reason, count in reasons)})"
        if not yes:
            click.confirm(f"drop {told} of run {wanted.run_id}?", abort=True, err=True)
        letters.mark([letter.place for letter in found], wanted.run_id, "dropped", actor)
    click.echo(f"dropped {told}, as {actor}")


def _wanted(
    reasons: tuple[str, ...],
    topics: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    limit: int | None,
    run_id: str = "live",
    state: "State" = "open",
) -> "Wanted":
    if since is not None and until is not None and since >= until:
        raise click.UsageError("--since must lie before --until")
    from stream.dead_letters.letters import Wanted

    return Wanted(run_id, state, split(reasons), split(topics), since, until, limit)


@contextmanager
def _letters(settings: "Settings") -> "Iterator[Letters]":
    from sinks.clickhouse.database import Database
    from stream.dead_letters.letters import Letters

    database = Database(settings.clickhouse)
    try:
        yield Letters(database)
    finally:
        database.close()


def _place(text: str) -> tuple[str, int, int]:
    """A topic's name has no slash."""
    topic, *numbers = text.split("/")
    if not topic or len(numbers) != 2 or not all(number.isascii() and number.isdecimal() for number in numbers):
        raise click.BadParameter(f"{text!r} is not TOPIC/PARTITION/OFFSET, e.g. rag.traces/0/4711", param_hint="PLACE")
    partition, offset = map(int, numbers)
    if partition >= 1 << 31 or offset >= 1 << 63:
        raise click.BadParameter(f"{text!r}: no topic has so many", param_hint="PLACE")
    return topic, partition, offset
