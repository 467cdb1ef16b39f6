"""The settings of one replay: the process's own, with what --set changes."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from stream.settings import Settings

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


def settings_with(config: Path | None, changes: Sequence[str]) -> "Settings":
    """The effective settings of this process with each NAME=VALUE over them; raises `ConfigError`.

    A change says what the setting's variable would say, and wins over that variable and the file.
    """
    from stream.configuration.names import variable_of
    from stream.settings import load

    environ = dict(os.environ)
    for change in changes:
        name, equals, value = change.partition("=")
        path = tuple(part.strip() for part in name.split("."))
        if not equals or len(path) < 2 or not all(path):
            raise click.BadParameter(f"{name!r}: NAME=VALUE, NAME as `ragwatch config` lists it", param_hint="--set")
        variable = variable_of(path)
        environ = {key: kept for key, kept in environ.items() if key.upper() != variable} | {variable: value}
    return load(config, environ).settings
