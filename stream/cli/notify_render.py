"""Notifications on a terminal: undelivered messages as a table, previews as text."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from ragtide.drift.notify import Preview, Unsent
from ragtide.stream.console import plain_console, table_of


def show_unsent(messages: Sequence[Unsent], now: datetime) -> None:
    """Print a table of messages; one line each if the output is a file or a pipe."""
    table = table_of("target", "state", "problem or insight", "action", "age", "attempts")
    table.add_column("why", overflow="fold")
    for one in messages:
        subject = one.subject.partition(":")[0]
        why = one.why or "not tried yet"
        table.add_row(one.target, one.state, subject, one.action, _age(one, now), str(one.attempts), why)
    plain_console().print(table)


def summary(messages: Sequence[Unsent], now: datetime, words: Mapping[str, str]) -> Iterator[str]:
    """One line for each target: how many messages wait, were refused and were given up, and the oldest."""
    for target in dict.fromkeys(one.target for one in messages):
        own = [one for one in messages if one.target == target]
        counts = {state: sum(one.state == state for one in own) for state in words}
        said = ", ".join(f"{count:,} {words[state]}" for state, count in counts.items() if count)
        oldest = min(own, key=lambda one: one.written_at)
        yield f"{target}: {said}; the oldest is {_age(oldest, now)} (h:mm:ss) old"


def as_objects(messages: Sequence[Unsent], now: datetime) -> list[dict[str, Any]]:
    """Messages as JSON objects, with their age in seconds."""
    return [
        {
            **{name: value for name, value in one._asdict().items() if not isinstance(value, datetime)},
            "written_at": one.written_at.isoformat(),
            "updated_at": one.updated_at.isoformat(),
            "age_s": round((now - one.written_at).total_seconds(), 3),
        }
        for one in messages
    ]


def describe_preview(one: Preview) -> Iterator[str]:
    """The target, why it gets nothing, and what it gets or would get otherwise."""
    yield f"{one.target}: nothing now: {one.why_not}" if one.why_not else one.target
    if one.content:
        yield from (f"  {line}" for line in json.dumps(one.content, indent=2, ensure_ascii=False).splitlines())


def _age(message: Unsent, now: datetime) -> str:
    return str(timedelta(seconds=max(round((now - message.written_at).total_seconds()), 0)))
