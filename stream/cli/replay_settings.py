"""Changed settings of a replay: --set, --evaluators and --lane."""

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
    """Restrict the settings to these evaluators, and to these lanes; empty: all.

    Other evaluators load no model. Raises `UsageError` if a named evaluator runs in another lane.
    """
    chosen = settings.evaluators
    if evaluators:
        chosen = chosen.model_copy(update={"enabled": tuple(evaluators)})
    if lanes:
        from ragtide.evaluators import registry

        lane_of = {id: evaluator.lane for id, evaluator in registry.load().items()}
        if elsewhere := [f"{id} ({lane_of[id]})" for id in evaluators if lane_of.get(id, lanes[0]) not in lanes]:
            raise click.UsageError(f"--evaluators names {', '.join(elsewhere)}; --lane has {', '.join(lanes)} only")
        others = tuple(id for id, lane in lane_of.items() if lane not in lanes)
        chosen = chosen.model_copy(update={"disabled": (*chosen.disabled, *others)})
    return settings.model_copy(update={"evaluators": chosen})
