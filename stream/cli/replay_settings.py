"""--set: what a replay does with other settings than the process's own."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def set_option(command: Command) -> Command:
    """--set NAME=VALUE, as often as wanted: `changes`."""
    return click.option(
        "--set",
        "changes",
        multiple=True,
        metavar="NAME=VALUE",
        help="A setting for this run alone, by its dotted name, e.g. evaluators.params.ID.PARAMETER=VALUE.",
    )(command)


def as_variables(changes: Sequence[str]) -> dict[str, str]:
    """Each NAME=VALUE as the setting's variable, which wins over the environment and the file."""
    from stream.configuration.names import variable_of

    variables = {}
    for change in changes:
        name, equals, value = change.partition("=")
        path = tuple(part.strip() for part in name.split("."))
        if not equals or len(path) < 2 or not all(path):
            raise click.BadParameter(f"{name!r}: NAME=VALUE, NAME as `ragwatch config` lists it", param_hint="--set")
        variables[variable_of(path)] = value
    return variables
