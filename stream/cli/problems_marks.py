"""`ragwatch problems ack|unack|mute|unmute|accept`: what a person says of a problem, kept with who, when and why."""

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stream.cli.options import EventTime, by_option, config_option, user_name, why_option
from stream.cli.problems_found import episodes_of, reached

if TYPE_CHECKING:
    from drift.problems.marks import Mark

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Until(click.ParamType):
    """A time, or how long from now on: 90m, 2h, 3d, 1w."""

    name = "until"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime | timedelta:
        """As an aware time, or as a time from now on."""
        if isinstance(value, str) and (found := re.fullmatch(r"([1-9][0-9]{0,3})([mhdw])", value)):
            return timedelta(**{_UNITS[found[2]]: int(found[1])})
        return EventTime().convert(value, param, ctx)


_why_option = click.option("--why", default="", metavar="TEXT", help="The reason.")


@click.command("ack")
@click.argument("problem_id")
@_why_option
@by_option
@config_option
def ack(problem_id: str, why: str, by: str | None, config: Path | None) -> None:
    """Say that somebody looks at it.

    \b
    Examples:
      ragwatch problems ack 3f2a --why "looking into it"
    """
    _mark(config, problem_id, "acked", "acknowledged", by, why)


@click.command("unack")
@click.argument("problem_id")
@_why_option
@by_option
@config_option
def unack(problem_id: str, why: str, by: str | None, config: Path | None) -> None:
    """Say that nobody looks at it any more.

    \b
    Examples:
      ragwatch problems unack 3f2a
    """
    _mark(config, problem_id, "unacked", "no longer acknowledged", by, why)


@click.command("mute")
@click.argument("problem_id")
@click.option("--until", required=True, type=Until(), help="2026-03-01, 2026-03-01T12:00:00Z, or 90m, 2h, 3d, 1w.")
@why_option
@by_option
@config_option
def mute(problem_id: str, until: datetime | timedelta, why: str, by: str | None, config: Path | None) -> None:
    """Announce nothing of it until then, also where it comes back; then what is still to be told is.

    \b
    Examples:
      ragwatch problems mute 3f2a --until 2h --why "known, mended tonight"
    """
    _mark(config, problem_id, "muted", "muted", by, why, until)


@click.command("unmute")
@click.argument("problem_id")
@_why_option
@by_option
@config_option
def unmute(problem_id: str, why: str, by: str | None, config: Path | None) -> None:
    """Announce it again.

    \b
    Examples:
      ragwatch problems unmute 3f2a
    """
    _mark(config, problem_id, "unmuted", "no longer muted", by, why)


@click.command("accept")
@click.argument("problem_id")
@why_option
@by_option
@config_option
def accept_problem(problem_id: str, why: str, by: str | None, config: Path | None) -> None:
    """Say that this is the new normal: its baseline begins anew at the change, and the problem is resolved.

    Only what drift, change points and input drift see can be accepted: a threshold is changed by a rule in the
    settings. Where other kinds see the problem too, it stays open for those.

    \b
    Examples:
      ragwatch problems accept 3f2a --why "the new model answers more briefly"
    """
    from drift.jobs import server_time
    from drift.problems.marks import accept
    from drift.problems.problem import OF_A_BASELINE

    with reached(config) as (_, database):
        problem = episodes_of(database, problem_id)[0]
        *_, last = accept(database, problem, by or user_name(), server_time(database), why)
    left = ", ".join(kind for kind in problem.holding if kind not in OF_A_BASELINE)
    ends = "is resolved" if last.event == "resolved" else f"stays open: it is seen by {left} too"
    click.echo(f"{problem.problem_id} is accepted and {ends}")


COMMANDS = (ack, unack, mute, unmute, accept_problem)


def _mark(
    config: Path | None,
    problem_id: str,
    what: "Mark",
    said: str,
    by: str | None,
    why: str,
    until: datetime | timedelta | None = None,
) -> None:
    from drift.jobs import server_time
    from drift.problems.marks import mark

    with reached(config) as (_, database):
        problem = episodes_of(database, problem_id)[0]
        now = server_time(database)
        more = {}
        if until is not None:
            end = now + until if isinstance(until, timedelta) else until
            if end <= now:
                raise click.BadParameter(f"{end:%Y-%m-%d %H:%M:%S} UTC is over", param_hint="--until")
            more["until"] = end.isoformat()
            said += f" until {end:%Y-%m-%d %H:%M:%S} UTC"
        mark(database, problem, what, by or user_name(), now, why, **more)
    click.echo(f"{problem.problem_id} is {said}")
