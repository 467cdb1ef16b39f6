"""`ragtide dead-letters`."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ragtide.stream.cli import completion
from ragtide.stream.cli.names import check_names
from ragtide.stream.cli.options import EventTime, by_option, config_option, settings_from, split, user_name
from ragtide.stream.cli.replay import check_name, fill
from ragtide.stream.terminal import confirm, say, say_json

if TYPE_CHECKING:
    from ragtide.stream.dead_letters.letters import Group, Letter, Letters, State, Wanted
    from ragtide.stream.settings.loader import Settings

STATES = ("open", "replayed", "dropped")
Command = TypeVar("Command", bound=Callable[..., Any])


def filter_options(command: Command) -> Command:
    """Add the options that filter letters: --reason, --topic, --since, --until, --limit."""
    options = (
        click.option("--reason", "reasons", multiple=True, metavar="REASON[,REASON]", help="Only these reasons."),
        click.option("--topic", "topics", multiple=True, metavar="TOPIC[,TOPIC]", help="Only these topics."),
        click.option("--since", type=EventTime(), help="Only from this broker time on."),
        click.option("--until", type=EventTime(), help="Only before this broker time."),
        click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Maximum number of dead letters."),
    )
    for option in reversed(options):
        command = option(command)
    return command


run_option = click.option(
    "--run",
    "run_id",
    default="live",
    metavar="NAME",
    help="Dead letters of this run. Default: live.",
    shell_complete=completion.runs,
)


@click.group()
def command() -> None:
    """List, show, replay or drop records that could not be processed.

    Their bytes stay in the dead-letter topic. A dead letter is open until it is replayed or dropped.

    \b
    Examples:
      ragtide dead-letters list
      ragtide dead-letters show rag.traces/0/4711
      ragtide dead-letters replay --reason too_old
      ragtide dead-letters drop --reason not_json --until 2026-03-01
    """


@command.command("list")
@filter_options
@run_option
@click.option(
    "--state", type=click.Choice(STATES), default="open", help="Only dead letters in this state. Default: open."
)
@click.option("--each", is_flag=True, help="List every dead letter, newest first, with the id that `show` takes.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects.")
@config_option
def list_letters(state: "State", each: bool, as_json: bool, config: Path | None, **options: Any) -> None:
    """Count dead letters by reason and partition, with the times of the first and the last.

    \b
    Examples:
      ragtide dead-letters list --since 2026-03-02T09:00Z
      ragtide dead-letters list --reason wrong_type --each --limit 20
      ragtide dead-letters list --json | jq -r '.[] | [.reason, .count] | @tsv'
    """
    settings = settings_from(config).settings
    wanted = _wanted(state=state, **options)
    with _letters(settings) as letters:
        found: Sequence[Letter] | Sequence[Group] = letters.find(wanted) if each else letters.groups(wanted)
        _check_wanted(letters, wanted, found)
    if as_json:
        import msgspec

        say_json(msgspec.to_builtins(found))
    elif found:
        from ragtide.stream.cli.dead_letters_render import show_table

        show_table(found)
    else:
        say(f"no {state} {wanted}")


@command.command("show")
@click.argument("place", metavar="TOPIC/PARTITION/OFFSET")
@run_option
@config_option
def show_letter(place: str, run_id: str, config: Path | None) -> None:
    """Show one dead letter: reason, position, headers, and the unmasked value AS IT WAS SENT.

    Control characters, invisible characters and bytes that are not UTF-8 are escaped (\\x1b). Up to 64 KiB are shown.
    The value can hold private data: nothing is masked.

    \b
    Examples:
      ragtide dead-letters show rag.traces/0/4711
    """
    topic, partition, offset = _place(place)
    settings = settings_from(config).settings
    from ragtide.stream.telemetry.logs import configure

    configure(settings.telemetry.model_copy(update={"log_level": "WARNING"}))
    with _letters(settings) as letters:
        found = letters.at(topic, partition, offset, run_id)
    from ragtide.evaluators.errors import ConfigError

    if not found:
        raise ConfigError(f"no dead letter {place} in run {run_id}; `ragtide dead-letters list --each` has them")
    from ragtide.stream.cli.dead_letters_render import show_one

    for letter in found:
        show_one(letter, settings)


@command.command("replay")
@filter_options
@click.option("--run", "run_id", default="live", metavar="NAME", help="Run to write to. Default: live.")
@click.option(
    "--any-time",
    is_flag=True,
    help="Also put records into live whose event time is older than retention.traces_days, or in the future.",
)
@by_option
@config_option
def replay_letters(run_id: str, any_time: bool, by: str | None, config: Path | None, **options: Any) -> None:
    """Evaluate open dead letters of live traffic again, with the same pipeline as `ragtide replay`.

    A record that succeeds is marked as replayed. One that fails again stays open with its new reason. A newer message
    about the same trace takes precedence. The limits ingest.max_age_s and ingest.max_future_s do not apply. A record
    whose event time is older than retention.traces_days, or more than a day ahead, stays open unless --any-time is
    given: live tables would delete it at once, or get a partition for its day. If stopped or killed, repeat the command
    to continue; a repetition leaves the same rows. With --run, rows go to that run and the dead letters stay open.

    Messages of spans, which stage assemble could not read, are sent to their topics again, as they came. Those that
    it would refuse again stay open. They are replayed into live only.

    \b
    Examples:
      ragtide dead-letters replay --reason too_old,too_big
      ragtide dead-letters replay --since 2026-03-02T09:00Z --run mended
      ragtide dead-letters replay --topic otlp_spans
    """
    check_name(run_id)
    settings = settings_from(config).settings
    actor = by or user_name()
    from ragtide.stream.dead_letters.source import LetterSource, MarkReplayed
    from ragtide.stream.dead_letters.values import RecordFinder
    from ragtide.stream.ingest.timeliness import EventBounds
    from ragtide.stream.stage_letters import store_stage_letters

    wanted = _wanted(**options)
    with _letters(settings) as letters:
        store_stage_letters(settings.kafka, settings.otel, letters.database)
        open_ = letters.to_replay(wanted, run_id)
        _check_wanted(letters, wanted, open_)
        spans, others = _spans(open_)
        found = [letter for letter in others if letter.topic != settings.kafka.labels_topic]
        if len(found) < len(others):
            say(f"{len(others) - len(found):,} are labels, which are no traces: mend them and send them again")
        if spans:
            _replay_spans(settings, letters, spans, run_id, actor)
        if not found and (spans or run_id == wanted.run_id):
            if not spans:
                say(f"no open {wanted}")
            return
        source = LetterSource(wanted, found, RecordFinder(settings.kafka, batch_records=settings.worker.batch_records))
        on_stored = MarkReplayed(letters, run_id, actor)
        bounds = None
        if run_id == wanted.run_id and not any_time:
            bounds = EventBounds.of_live(settings.ingest, settings.retention, time.time())
        fill(settings, run_id, source, on_stored=on_stored, event_bounds=bounds)
    say(
        f"run {run_id}: {on_stored.count:,} of {len(found):,} dead letters replayed, "
        f"{source.found - on_stored.count:,} failed again, {len(found) - source.found:,} in no topic any more"
    )
    if bounds is not None and bounds.refused:
        say(
            f"{bounds.refused:,} not put into live: their event time is older than retention.traces_days "
            f"({settings.retention.traces_days} days), or in the future; --any-time puts them there, --run NAME "
            "into a run"
        )


def _spans(letters: "Sequence[Letter]") -> "tuple[Sequence[Letter], Sequence[Letter]]":
    """Letters of stage `assemble`, and the others."""
    from ragtide.stream.worker.assembly.rekeying import STAGE

    return [one for one in letters if one.stage == STAGE], [one for one in letters if one.stage != STAGE]


def _replay_spans(settings: "Settings", letters: "Letters", found: "Sequence[Letter]", run_id: str, actor: str) -> None:
    """Send messages of spans to their topics again; say what became of all."""
    from ragtide.sinks.rows import LIVE
    from ragtide.stream.dead_letters.source import MarkReplayed
    from ragtide.stream.dead_letters.spans import SpanReplay

    if run_id != LIVE:
        say(f"{len(found):,} are messages of spans, which are replayed into live only: leave out --run")
        return
    otel = settings.otel
    wanted = [letter for letter in found if letter.topic in (*otel.topics, *otel.log_topics)]
    foreign = sum(letter.topic == settings.kafka.spans_topic for letter in found)
    if foreign:
        say(f"{foreign:,} are of {settings.kafka.spans_topic} (kafka.spans_topic) and not of stage assemble: drop them")
    if unread := len(found) - len(wanted) - foreign:
        say(f"{unread:,} are of topics that otel.topics and otel.log_topics do not name: stage assemble reads them not")
    if wanted:
        on_sent = MarkReplayed(letters, run_id, actor)
        done = SpanReplay(settings.kafka, otel, letters.database, on_sent).run(wanted)
        say(
            f"spans: {done.sent:,} of {len(wanted):,} dead letters sent to their topics again, {done.failed:,} failed "
            f"again, {len(wanted) - done.sent - done.failed:,} in no topic any more"
        )


@command.command("drop")
@filter_options
@run_option
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@by_option
@config_option
def drop_letters(yes: bool, by: str | None, config: Path | None, **options: Any) -> None:
    """Mark open dead letters as dropped, with who did it and when.

    They are no longer listed or replayed. Their bytes stay in the dead-letter topic for its retention.

    \b
    Examples:
      ragtide dead-letters drop --reason not_json --until 2026-03-01
      ragtide dead-letters drop --topic rag.test --yes
    """
    settings = settings_from(config).settings
    actor = by or user_name()
    wanted = _wanted(**options)
    with _letters(settings) as letters:
        found = letters.find(wanted)
        _check_wanted(letters, wanted, found)
        if not found:
            say(f"no open {wanted}")
            return
        reasons = Counter(letter.reason for letter in found).most_common()
        summary = f"{len(found):,} dead letters ({', '.join(f'{reason} {count:,}' for reason, count in reasons)})"
        if not yes:
            confirm(f"drop {summary} of run {wanted.run_id}?")
        letters.mark([letter.position for letter in found], wanted.run_id, "dropped", actor)
    say(f"dropped {summary}, as {actor}")


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
    from ragtide.stream.dead_letters.letters import Wanted

    return Wanted(run_id, state, split(reasons), split(topics), since, until, limit)


def _check_wanted(letters: "Letters", wanted: "Wanted", found: Sequence[object]) -> None:
    """Raise a usage error for a reason or topic that no dead letter of the run has, or for a run without any."""
    if found and not (wanted.reasons or wanted.topics):
        return
    names = letters.names(wanted.run_id)
    if not names.reasons and wanted.run_id != "live":
        check_names("--run", [wanted.run_id], letters.runs())
    if names.reasons:
        check_names("--reason", wanted.reasons, names.reasons)
        check_names("--topic", wanted.topics, names.topics)


@contextmanager
def _letters(settings: "Settings") -> "Iterator[Letters]":
    from ragtide.sinks.clickhouse.database import Database
    from ragtide.stream.dead_letters.letters import Letters

    database = Database(settings.clickhouse)
    try:
        yield Letters(database)
    finally:
        database.close()


def _place(text: str) -> tuple[str, int, int]:
    """Parse TOPIC/PARTITION/OFFSET; a topic's name has no slash."""
    topic, *numbers = text.split("/")
    if not topic or len(numbers) != 2 or not all(number.isascii() and number.isdecimal() for number in numbers):
        raise click.BadParameter(f"{text!r} is not TOPIC/PARTITION/OFFSET, e.g. rag.traces/0/4711", param_hint="PLACE")
    partition, offset = map(int, numbers)
    if partition >= 1 << 31 or offset >= 1 << 63:
        raise click.BadParameter(f"{text!r}: no topic has that many partitions or records", param_hint="PLACE")
    return topic, partition, offset
