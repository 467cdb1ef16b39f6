"""`ragtide problems ack|unack|mute|unmute|accept`: operator actions, stored with who, when and why."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ragtide.stream.cli.completion import problem_ids
from ragtide.stream.cli.options import EventTime, by_option, config_option, user_name, why_option
from ragtide.stream.cli.problems_filter import filter_options
from ragtide.stream.cli.problems_lookup import Selection, open_database
from ragtide.stream.terminal import confirm, say

if TYPE_CHECKING:
    from ragtide.drift.problems import OperatorAction, Problem

_VERBS = {"acked": "acknowledge", "unacked": "stop acknowledging", "muted": "mute", "unmuted": "unmute"}
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
Command = TypeVar("Command", bound=Callable[..., None])


class Until(click.ParamType):
    """A time, or how long from now on: 90m, 2h, 3d, 1w."""

    name = "until"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime | timedelta:
        """As an aware time, or as a time from now on."""
        if isinstance(value, str) and (found := re.fullmatch(r"([1-9][0-9]{0,3})([mhdw])", value)):
            return timedelta(**{_UNITS[found[2]]: int(found[1])})
        return EventTime().convert(value, param, ctx)


_why_option = click.option("--why", default="", metavar="TEXT", help="Reason, for the record.")


def selection_options(command: Command) -> Command:
    """Add PROBLEM_ID..., the filters and --yes: arguments of `Selection.of`."""
    yes = click.option("--yes", is_flag=True, help="Skip the confirmation that filters ask for.")
    ids = click.argument("problem_ids", metavar="[PROBLEM_ID]...", nargs=-1, shell_complete=problem_ids)
    return ids(filter_options(yes(command)))


@click.command("ack")
@selection_options
@_why_option
@by_option
@config_option
def ack(why: str, by: str | None, config: Path | None, **selection: Any) -> None:
    """Acknowledge problems: somebody is working on them.

    Name problems by id, or choose all unresolved ones by filters: those are listed and confirmed first.

    \b
    Examples:
      ragtide problems ack 3f2a --why "looking into it"
      ragtide problems ack --app docs-bot --type retrieval --why "the index is being rebuilt"
    """
    _record_action(config, Selection.of(**selection), "acked", "acknowledged", by, why)


@click.command("unack")
@selection_options
@_why_option
@by_option
@config_option
def unack(why: str, by: str | None, config: Path | None, **selection: Any) -> None:
    """Withdraw acknowledgements: nobody is working on the problems any more.

    Name problems by id, or choose all acknowledged ones by filters: those are listed and confirmed first.

    \b
    Examples:
      ragtide problems unack 3f2a
      ragtide problems unack --app docs-bot --yes
    """
    _record_action(config, Selection.of(**selection), "unacked", "no longer acknowledged", by, why)


@click.command("mute")
@selection_options
@click.option(
    "--until",
    required=True,
    type=Until(),
    help="End of the mute: 2026-03-01, 2026-03-01T12:00:00Z, or from now 90m, 2h, 3d, 1w.",
)
@why_option
@by_option
@config_option
def mute(
    until: datetime | timedelta,
    why: str,
    by: str | None,
    config: Path | None,
    **selection: Any,
) -> None:
    """Suppress notifications of problems until then, new episodes included. Pending ones are sent afterwards.

    Name problems by id, or choose all unresolved ones by filters: those are listed and confirmed first.

    \b
    Examples:
      ragtide problems mute 3f2a --until 2h --why "known, mended tonight"
      ragtide problems mute --metric operations --kind threshold --until 1d --why "load test" --yes
    """
    _record_action(config, Selection.of(**selection), "muted", "muted", by, why, until)


@click.command("unmute")
@selection_options
@_why_option
@by_option
@config_option
def unmute(why: str, by: str | None, config: Path | None, **selection: Any) -> None:
    """Send notifications of problems again.

    Name problems by id, or choose all muted ones by filters: those are listed and confirmed first.

    \b
    Examples:
      ragtide problems unmute 3f2a
    """
    _record_action(config, Selection.of(**selection), "unmuted", "no longer muted", by, why)


@click.command("accept")
@selection_options
@why_option
@by_option
@config_option
def accept_problem(why: str, by: str | None, config: Path | None, **selection: Any) -> None:
    """Accept the new level as normal: the baseline restarts at the change, and the problem resolves.

    Only problems of kinds drift, change_point, input_drift and judge_shift can be accepted. To change a threshold, edit
    the rules in the settings. If other kinds see the problem too, it stays open for those.

    Name problems by id, or choose all open ones of these kinds by filters: those are listed and confirmed first.

    \b
    Examples:
      ragtide problems accept 3f2a --why "the new model answers more briefly"
      ragtide problems accept --app docs-bot --metric answer_length --why "the new model answers more briefly"
    """
    from ragtide.drift.jobs import server_time
    from ragtide.drift.problems import REBASELINABLE, accept

    chosen = Selection.of(**selection)
    with open_database(config) as (settings, database):
        found = chosen.find(database, settings.evaluators, _suits("accepted"))
        _confirm(chosen, found, "accept")
        actor = by or user_name()
        for problem in found:
            *_, last = accept(database, problem, actor, server_time(database), why)
            left = ", ".join(kind for kind in problem.active_kinds if kind not in REBASELINABLE)
            ends = "is resolved" if last.event == "resolved" else f"stays open: it is seen by {left} too"
            say(f"{problem.problem_id} is accepted and {ends}")


COMMANDS = (ack, unack, mute, unmute, accept_problem)


def _suits(action: "OperatorAction") -> "Callable[[Problem], bool]":
    """Whether the action changes anything about a problem that a filter chose."""
    from ragtide.drift.problems import REBASELINABLE

    now = datetime.now(UTC)
    conditions: dict[OperatorAction, Callable[[Problem], bool]] = {
        "acked": lambda one: one.state != "resolved" and not one.acked_by,
        "unacked": lambda one: one.state != "resolved" and bool(one.acked_by),
        "muted": lambda one: one.state != "resolved",
        "unmuted": lambda one: one.is_muted(now),
        "accepted": lambda one: one.state == "open" and any(kind in REBASELINABLE for kind in one.active_kinds),
    }
    return conditions[action]


def _confirm(selection: Selection, found: "list[Problem]", action: str) -> None:
    """Show what filters chose, and ask; ids were chosen by hand."""
    if selection.ids:
        return
    from ragtide.drift.problems import group
    from ragtide.stream.cli.problems_render import show_table

    if not found:
        say(f"no problems to {action}")
        return
    show_table(found, group(found, datetime.now(UTC)))
    if not selection.yes:
        confirm(f"{action} {'this problem' if len(found) == 1 else f'these {len(found):,} problems'}?")


def _record_action(
    config: Path | None,
    selection: Selection,
    what: "OperatorAction",
    state: str,
    by: str | None,
    why: str,
    until: datetime | timedelta | None = None,
) -> None:
    from ragtide.drift.jobs import server_time
    from ragtide.drift.problems import record_action

    with open_database(config) as (settings, database):
        found = selection.find(database, settings.evaluators, _suits(what))
        now = server_time(database)
        more = {}
        if until is not None:
            end = now + until if isinstance(until, timedelta) else until
            if end <= now:
                raise click.BadParameter(f"{end:%Y-%m-%d %H:%M:%S} UTC is in the past", param_hint="--until")
            more["until"] = end.isoformat()
            state += f" until {end:%Y-%m-%d %H:%M:%S} UTC"
        _confirm(selection, found, _VERBS[what])
        actor = by or user_name()
        for problem in found:
            record_action(database, problem, what, actor, now, why, **more)
            say(f"{problem.problem_id} is {state}")
