"""Options that commands share."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from evaluators.spec import Lane
    from stream.settings import Loaded

LANES: "tuple[Lane, ...]" = ("fast", "model", "judge")

Command = TypeVar("Command", bound=Callable[..., Any])


def config_option(command: Command) -> Command:
    """--config FILE: which settings file to read."""
    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Settings file; otherwise RAGWATCH_CONFIG, otherwise ./ragwatch.toml where there is one.",
    )(command)


def settings_from(config: Path | None) -> "Loaded":
    """The effective settings of this process; raises `ConfigError`."""
    from stream.settings import load

    return load(config, os.environ)


def split(values: tuple[str, ...]) -> tuple[str, ...]:
    """`--lane fast,model` and `--lane fast --lane model` are the same; each once, in order."""
    return tuple(dict.fromkeys(part.strip() for value in values for part in value.split(",") if part.strip()))


def lanes_named(values: tuple[str, ...]) -> "list[Lane]":
    """The lanes of `--lane`, in order; a name that is none is a usage error."""
    wanted = split(values)
    if unknown := [lane for lane in wanted if lane not in LANES]:
        raise click.BadParameter(f"no such lane: {', '.join(unknown)}; there are: {', '.join(LANES)}")
    return [lane for lane in LANES if lane in wanted]
