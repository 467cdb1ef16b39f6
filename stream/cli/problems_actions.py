"""`ragtide problems ack|unack|mute|unmute|accept`: operator actions, stored with who, when and why."""

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtide.stream.cli.options import EventTime, by_option, config_option, user_name, why_option
from ragtide.stream.cli.problems_lookup import episodes_of, open_database
from ragtide.stream.terminal import say

if TYPE_CHECKING:
    from ragtide.drift.problems.operator_actions import OperatorAction

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Until(click.ParamType):
    """A time, or how long from now on: 90m, 2h, 3d, 1w."""

    name = "until"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime | timedelta:
        """As an aware time, or as a time from now on."""
        if isinstance(value, str) and (found := re.fullmatch(r"([1-9][0-9]{0,3})([mhdw])", value)):
            return timedelta(**{_UNITS[found[2]]: int(found[1])})
        return EventTime().convert(value, param, ctx)


_why_option = click.option("--why", default="", metavar="TEXT", help="Reason, for the record.")


@click.command("ack")
@click.argument("problem_id")
@_why_option
@by_option
@config_option
def ack(problem_id: str, why: str, by: str | None, config: Path | None) -> None:
    """Acknowledge a problem: somebody is working on it.

    \b
    Examples:
      ragtide problems ack 3f2a --why "looking into it"
    """
    _record_action(config, problem_id, "acked", "acknowledged", by, why)


@click.command("unack")
@click.argument("problem_id")
@_why_option
@by_option
@config_option
def unack(problem_id: str, why: str, by: str | None, config: Path | None) -> None:
    """Withdraw the acknowledgement: nobody is working on it any more.

    \b
    Examples:
      ragtide problems unack 3f2a
    """
    _record_action(config, problem_id, "unacked", "no longer acknowledged", by, why)


@click.command("mute")
@click.argument("problem_id")
@click.option(
    "--until",
    required=True,
    type=Until(),
    help="End of the mute: 2026-03-01, 2026-03-01T12:00:00Z, or from now 90m, 2h, 3d, 1w.",
)
@why_option
@by_option
@config_option
def mute(problem_id: str, until: datetime | timedelta, why: str, by: str | None, config: Path | None) -> None:
    """Suppress notifications for this problem until then, new episodes included. Pending ones are sent afterwards.

    \b
    Examples:
      ragtide problems mute 3f2a --until 2h --why "known, mended tonight"
    """
    _record_action(config, problem_id, "muted", "muted", by, why, until)


@click.command("unmute")
@click.argument("problem_id")
@_why_option
@by_option
@config_option
def unmute(problem_id: str, why: str, by: str | None, config: Path | None) -> None:
    """Send notifications for this problem again.

    \b
    Examples:
      ragtide problems unmute 3f2a
    """
    _record_action(config, problem_id, "unmuted", "no longer muted", by, why)


@click.command("accept")
@click.argument("problem_id")
@why_option
@by_option
@config_option
def accept_problem(problem_id: str, why: str, by: str | None, config: Path | None) -> None:
    """Accept the new level as normal: the baseline restarts at the change, and the problem resolves.

    Only problems of kinds drift, change_point and input_drift can be accepted. To change a threshold, edit the rules
    in the settings. If other kinds see the problem too, it stays open for those.

    \b
    Examples:
      ragtide problems accept 3f2a --why "the new model answers more briefly"
    """
    from ragtide.drift.jobs import server_time
    from ragtide.drift.problems.kinds import REBASELINABLE
    from ragtide.drift.problems.operator_actions import accept

    with open_database(config) as (_, database):
        problem = episodes_of(database, problem_id)[0]
        *_, last = accept(database, problem, by or user_name(), server_time(database), why)
    left = ", ".join(kind for kind in problem.active_kinds if kind not in REBASELINABLE)
    ends = "is resolved" if last.event == "resolved" else f"stays open: it is seen by {left} too"
    say(f"{problem.problem_id} is accepted and {ends}")


COMMANDS = (ack, unack, mute, unmute, accept_problem)


def _record_action(
    config: Path | None,
    problem_id: str,
    what: "OperatorAction",
    state: str,
    by: str | None,
    why: str,
    until: datetime | timedelta | None = None,
) -> None:
    from ragtide.drift.jobs import server_time
    from ragtide.drift.problems.operator_actions import record_action

    with open_database(config) as (_, database):
        problem = episodes_of(database, problem_id)[0]
        now = server_time(database)
        more = {}
        if until is not None:
            end = now + until if isinstance(until, timedelta) else until
            if end <= now:
                raise click.BadParameter(f"{end:%Y-%m-%d %H:%M:%S} UTC is in the past", param_hint="--until")
            more["until"] = end.isoformat()
            state += f" until {end:%Y-%m-%d %H:%M:%S} UTC"
        record_action(database, problem, what, by or user_name(), now, why, **more)
    say(f"{problem.problem_id} is {state}")
