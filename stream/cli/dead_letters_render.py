"""Dead letters on a terminal: a table of many, or one with its headers and value."""

from collections.abc import Sequence
from datetime import datetime

from ragtide.stream.console import plain_console, table_of
from ragtide.stream.dead_letters.display import as_text, value_lines
from ragtide.stream.dead_letters.letters import Group, Letter
from ragtide.stream.dead_letters.values import find_record
from ragtide.stream.ingest.header_names import header_bytes
from ragtide.stream.ingest.records import sent_headers
from ragtide.stream.settings.loader import Settings
from ragtide.stream.terminal import say

_SHOWN_BYTES = 64 << 10


def show_table(found: Sequence[Letter] | Sequence[Group]) -> None:
    """Print a table of letters; one line each if the output is a file or a pipe."""
    console = plain_console()
    table = table_of()
    each = isinstance(found[0], Letter)
    heads = ("place", "time (UTC)", "reason", "bytes") if each else ("reason", "count", "first (UTC)", "last (UTC)")
    for head in heads:
        table.add_column(head, no_wrap=True, justify="right" if head in ("bytes", "count") else "left")
    table.add_column("detail" if each else "topic/partition", overflow="fold")
    for one in found:
        if isinstance(one, Letter):
            table.add_row(_at(one), _utc(one.time), one.reason, f"{one.size:,}", one.detail)
        else:
            where = f"{one.topic}/{one.partition}"
            table.add_row(one.reason, f"{one.count:,}", _utc(one.first), _utc(one.last), where)
    console.print(table)


def show_one(letter: Letter, settings: Settings) -> None:
    """Print one letter: its row of the table, then key, headers and value, escaped."""
    say(f"{_at(letter)}: {letter.reason}, at stage {letter.stage}, {letter.state}")
    if letter.marked_at is not None:
        say(f"  {letter.state} by {letter.actor} at {_utc(letter.marked_at)} UTC")
    say(
        f"  {letter.detail}",
        f"  broker's time {_utc(letter.time)} UTC, {letter.size:,} bytes, SHA-256 {letter.sha256}",
    )
    record = find_record(settings.kafka, letter)
    if record is None:
        say("  its bytes are gone: neither the dead-letter topic nor the topic it lay on has them any more")
        return
    if record.key is not None:
        say(f"  key: {as_text(record.key, _SHOWN_BYTES)}")
    for name, value in sent_headers(record):
        say(f"  header {as_text(header_bytes(name), 100)}: {as_text(value or b'', _SHOWN_BYTES)}")
    say(*(["  no value"] if record.value is None else ["value:", *value_lines(record.value, _SHOWN_BYTES)]))


def _at(letter: Letter) -> str:
    return f"{letter.topic}/{letter.partition}/{letter.offset}"


def _utc(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}"
