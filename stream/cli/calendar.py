"""`ragtide calendar`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtide.stream.cli.options import config_option, settings_from
from ragtide.stream.terminal import say, say_json

if TYPE_CHECKING:
    from ragtide.drift.app_calendar import AppCalendar

_DAY_S = 86_400


@click.group()
def command() -> None:
    """Show the times that change detection leaves out.

    \b
    Examples:
      ragtide calendar show docs-bot
    """


@command.command()
@click.argument("app", required=False, default="")
@click.option("--days", type=click.IntRange(1, 366), default=14, show_default=True, help="Days from now on.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects.")
@config_option
def show(app: str, days: int, as_json: bool, config: Path | None) -> None:
    """Show known events, holidays and clock changes of an application in the next days, in its time zone.

    Without APP: those of an application without settings or events of its own.

    \b
    Examples:
      ragtide calendar show
      ragtide calendar show docs-bot --days 60
      ragtide calendar show docs-bot --json | jq -r '.[].name'
    """
    settings = settings_from(config).settings
    import time

    from ragtide.drift.app_calendar import calendar_of

    calendar, now = calendar_of(settings.drift, app), int(time.time())
    found = _entries(calendar, now, now + days * _DAY_S)
    if as_json:
        say_json(found)
    elif found:
        _table(found, calendar.settings.time_zone)
    else:
        say(f"nothing in the next {days} days; see drift.calendar, drift.holidays and drift.dates in the settings")


def _entries(calendar: "AppCalendar", since: int, until: int) -> list[dict[str, str]]:
    from datetime import datetime

    spans = [(one.start, one.end, one.name) for one in calendar.occurrences(since, until)]
    spans += [(at, at, "clock change") for at in calendar.clock_changes(since, until)]
    return [
        {
            "start": datetime.fromtimestamp(start, calendar.zone).isoformat(),
            "end": datetime.fromtimestamp(end, calendar.zone).isoformat(),
            "name": name,
        }
        for start, end, name in sorted(spans)
    ]


def _table(found: list[dict[str, str]], zone: str) -> None:
    from ragtide.stream.console import plain_console, table_of

    table = table_of(f"start ({zone})", f"end ({zone})")
    table.add_column("what", overflow="fold")
    for one in found:
        times = (one[name].replace("T", " ")[:16] for name in ("start", "end"))
        table.add_row(*times, one["name"])
    plain_console().print(table)
