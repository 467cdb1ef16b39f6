"""Dead letters on a terminal: a table of many, or one with its headers and value."""

from collections.abc import Sequence
from datetime import datetime

import click

from stream.cli.tables import plain_console, table_of
from stream.dead_letters.display import safe_text
from stream.dead_letters.letters import Group, Letter
from stream.dead_letters.values import value_of
from stream.settings import Settings

_SHOWN_BYTES = 64 << 10


def show_table(found: Sequence[Letter] | Sequence[Group]) -> None:
    """One line each where it goes to a file or a pipe."""
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
    """What the table says of it, then its key, headers and value, escaped."""
    click.echo(f"{_at(letter)}: {letter.reason}, at stage {letter.stage}, {letter.state}")
    if letter.marked_at is not None:
        click.echo(f"  {letter.state} by {letter.actor} at {_utc(letter.marked_at)} UTC")
    click.echo(
        f"  {letter.detail}\n  broker's time {_utc(letter.time)} UTC, {letter.size:,} bytes, SHA-256 {letter.sha256}"
    )
    record = value_of(settings.kafka, letter)
    if record is None:
        click.echo("  its bytes are gone: neither the dead-letter topic nor the topic it lay on has them any more")
        return
    if record.key is not None:
        click.echo(f"  key: {safe_text(record.key, _SHOWN_BYTES)}")
    for name, value in record.headers:
        click.echo(f"  header {safe_text(name.encode(errors='replace'), 100)}: {safe_text(value or b'', _SHOWN_BYTES)}")
    click.echo("  no value" if record.value is None else f"value:\n{safe_text(record.value, _SHOWN_BYTES)}")


def _at(letter: Letter) -> str:
    return f"{letter.topic}/{letter.partition}/{letter.offset}"


def _utc(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}"
