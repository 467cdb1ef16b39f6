"""Check the names that filters give: an unknown one is an error with the nearest, never an empty result."""

from collections.abc import Callable, Collection, Iterable

import click

from ragtide.stream.known_names import nearest_of


def check_names(
    option: str, names: Iterable[str], known: Collection[str], others: Callable[[], Iterable[str]] = tuple
) -> None:
    """Raise a usage error for the first name that is neither in `known` nor in `others`.

    `others` is called only for a name outside `known`, so that it may ask the database.
    """
    unknown = [name for name in names if name not in known]
    if not unknown:
        return
    valid = sorted({*known, *others()} - {""})
    for name in unknown:
        if name not in valid:
            raise click.BadParameter(f"there is no {name!r}; {nearest_of(name, valid)}", param_hint=option)


def given(name: str | None) -> list[str]:
    """The names of an option that takes one; none where it was left out."""
    return [] if name is None else [name]


def with_evaluators(metrics: Iterable[str]) -> set[str]:
    """The metrics, and their evaluators: both select a metric."""
    return {name for metric in metrics for name in (metric, metric.partition(".")[0])}


def selects_metric(names: Collection[str], metric: str) -> bool:
    """Whether the metric, or its evaluator, is among the names; no names select all."""
    return not names or metric in names or metric.partition(".")[0] in names
