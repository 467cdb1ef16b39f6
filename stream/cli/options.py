"""Options that commands share."""

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from evaluators.spec import Lane
    from stream.settings import Loaded

LANES: "tuple[Lane, ...]" = ("fast", "model", "judge")

Command = TypeVar("Command", bound=Callable[..., Any])


class EventTime(click.ParamType):
    """RFC 3339 with an offset, or a date (midnight UTC)."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """As an aware time."""
        if isinstance(value, datetime):
            return value
        text = str(value)
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            self.fail(f"{text!r} is not a time; e.g. 2026-03-01 or 2026-03-01T12:00:00Z", param, ctx)
        if time.tzinfo is None and len(text) > 10:
            self.fail(f"{text!r} has no offset; e.g. 2026-03-01T12:00:00Z", param, ctx)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def config_option(command: Command) -> Command:
    """--config FILE: which settings file to read."""
    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Settings file; otherwise RAGWATCH_CONFIG, otherwise ./ragwatch.toml where there is one.",
    )(command)


def settings_from(config: Path | None, changes: Mapping[str, str] = MappingProxyType({})) -> "Loaded":
    """The effective settings of this process, with `changes` in place of variables; raises `ConfigError`."""
    from stream.settings import load

    return load(config, {name: os.environ[name] for name in os.environ if name.upper() not in changes} | dict(changes))


def split(values: tuple[str, ...]) -> tuple[str, ...]:
    """`--lane fast,model` and `--lane fast --lane model` are the same; each once, in order."""
    return tuple(dict.fromkeys(part.strip() for value in values for part in value.split(",") if part.strip()))


def lanes_named(values: tuple[str, ...]) -> "list[Lane]":
    """The lanes of `--lane`, in order; a name that is none is a usage error."""
    wanted = split(values)
    if unknown := [lane for lane in wanted if lane not in LANES]:
        raise click.BadParameter(f"no such lane: {', '.join(unknown)}; there are: {', '.join(LANES)}")
    return [lane for lane in LANES if lane in wanted]
