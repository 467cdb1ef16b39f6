"""Options that commands share."""

import math
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ragtide.stream.cli.names import check_names

if TYPE_CHECKING:
    from ragtide.evaluators.spec import Lane
    from ragtide.stream.settings.loader import Loaded

LANES: "tuple[Lane, ...]" = ("fast", "model", "judge")
_FIRST_YEAR, _LAST_YEAR = 1970, 2299  # what the tables' times can say, from when brokers have times on

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
        try:
            time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        except OverflowError:  # in UTC it is of the year 0 or 10000
            time = datetime.min.replace(tzinfo=UTC)
        if not _FIRST_YEAR <= time.year <= _LAST_YEAR:
            self.fail(f"{text!r} lies outside of the years {_FIRST_YEAR} to {_LAST_YEAR}", param, ctx)
        return time


class FiniteRange(click.FloatRange):
    """Like click's, which accepts nan in any range."""

    def _describe_range(self) -> str:
        return "" if self.min is None and self.max is None else super()._describe_range()

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """A finite number of the range."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class Reason(click.ParamType):
    """A reason that an operator gives; empty text is an error."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """As it is."""
        if not str(value).strip():
            self.fail("say why", param, ctx)
        return str(value)


why_option = click.option("--why", required=True, type=Reason(), metavar="TEXT", help="The reason, for the record.")


def config_option(command: Command) -> Command:
    """--config FILE: which settings file to read."""
    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Settings file. Default: RAGTIDE_CONFIG, then ./ragtide.toml if it exists.",
    )(command)


def settings_from(config: Path | None, changes: Mapping[str, str] = MappingProxyType({})) -> "Loaded":
    """The effective settings of this process, with `changes` in place of variables; raises `ConfigError`."""
    from ragtide.stream.settings.loader import load

    return load(config, {name: os.environ[name] for name in os.environ if name.upper() not in changes} | dict(changes))


def check_rules(loaded: "Loaded") -> None:
    """Raise `ConfigError` if a rule of the settings fits no metric; cheap if the settings have no rules."""
    settings = loaded.settings
    if not (settings.rules.overrides or settings.rules.limits or settings.rules.objectives):
        return
    from ragtide.evaluators import registry
    from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds
    from ragtide.stream import rules_reload

    rules_reload.check_rules(loaded, with_encoder_thresholds(registry.load(settings.evaluators), settings.evaluators))


def split(values: tuple[str, ...]) -> tuple[str, ...]:
    """Split values, so that `--lane fast,model` and `--lane fast --lane model` are equal; each once, in order."""
    return tuple(dict.fromkeys(part.strip() for value in values for part in value.split(",") if part.strip()))


def lanes_named(values: tuple[str, ...]) -> "list[Lane]":
    """The lanes of `--lane`, in order; an unknown name is a usage error."""
    wanted = split(values)
    check_names("--lane", wanted, LANES)
    return [lane for lane in LANES if lane in wanted]


def by_option(command: Command) -> Command:
    """Add --by: the operator."""
    return click.option(
        "--by", metavar="NAME", help="Who does this, for the record. Default: the user of this machine."
    )(command)


def user_name() -> str:
    """Name of the operating system's user."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        raise click.UsageError("this user has no name: name the operator with --by NAME") from None
