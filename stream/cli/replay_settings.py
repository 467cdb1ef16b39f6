"""Settings of one run: --set, --evaluators, --lane and --batch."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ragtide.evaluators.spec import Lane
    from ragtide.stream.settings.loader import Settings

Command = TypeVar("Command", bound=Callable[..., Any])


def set_option(command: Command) -> Command:
    """--set NAME=VALUE, as often as wanted: `changes`."""
    return click.option(
        "--set",
        "changes",
        multiple=True,
        metavar="NAME=VALUE",
        help="Setting for this run only, by its dotted name, e.g. evaluators.params.ID.PARAMETER=VALUE.",
    )(command)


def batch_option(command: Command) -> Command:
    """--batch: `by_batch`."""
    return click.option(
        "--batch",
        "by_batch",
        is_flag=True,
        help="Ask judges through the Batch API of their endpoints: usually at half the price, replies within a day. "
        "Needs evaluators.judge.cache.path.",
    )(command)


def as_variables(changes: Sequence[str]) -> dict[str, str]:
    """Each NAME=VALUE as the setting's variable, which overrides the environment and the file."""
    from ragtide.stream.settings.environment import variable_of

    variables = {}
    for change in changes:
        name, equals, value = change.partition("=")
        path = tuple(part.strip() for part in name.split("."))
        if not equals or len(path) < 2 or not all(path):
            raise click.BadParameter(f"{name!r}: NAME=VALUE, NAME as `ragtide config` lists it", param_hint="--set")
        variables[variable_of(path)] = value
    return variables


def choose(settings: "Settings", evaluators: Sequence[str], lanes: "Sequence[Lane]") -> "Settings":
    """Restrict the settings to the evaluators of --evaluators and the lanes of --lane; empty: all."""
    if not evaluators and not lanes:
        return settings
    from ragtide.evaluators import registry
    from ragtide.stream.assembly import restrict

    return restrict(settings, evaluators, lanes, registry.load(settings.evaluators))
