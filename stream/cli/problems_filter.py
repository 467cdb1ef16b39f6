"""Options that choose problems by application, type, metric and kind, and the check of their names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from ragtide.stream.cli import completion
from ragtide.stream.cli.names import check_names, selects_metric, with_evaluators
from ragtide.stream.cli.options import split
from ragtide.stream.known_names import known_apps, known_metrics, stored_metrics

if TYPE_CHECKING:
    from ragtide.drift.problems import Problem
    from ragtide.evaluators.settings import EvaluatorSettings
    from ragtide.sinks.clickhouse.database import Database

TYPES = (
    "accuracy", "retrieval", "fairness", "privacy", "security", "robustness", "stability", "data_quality", "efficiency",
    "cost", "storage", "runtime",
)  # fmt: skip
Command = TypeVar("Command", bound=Callable[..., Any])


def filter_options(command: Command) -> Command:
    """Add --app, --type, --metric and --kind; the command takes them as `**filters` of `ProblemFilter.of`."""
    options = (
        click.option(
            "--app",
            "apps",
            multiple=True,
            metavar="NAME[,NAME]",
            help="Only these applications.",
            shell_complete=completion.apps,
        ),
        click.option("--type", "types", multiple=True, metavar="TYPE[,TYPE]", help=f"Only of: {', '.join(TYPES)}."),
        click.option(
            "--metric",
            "metrics",
            multiple=True,
            metavar="NAME[,NAME]",
            help="Only these metrics or evaluators.",
            shell_complete=completion.metrics,
        ),
        click.option(
            "--kind", "kinds", multiple=True, metavar="KIND[,KIND]", help="Only problems that these kinds found."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class ProblemFilter:
    """Names to choose problems by; an empty field matches all."""

    apps: Sequence[str] = ()
    types: Sequence[str] = ()
    metrics: Sequence[str] = ()
    kinds: Sequence[str] = ()

    @classmethod
    def of(cls, **filters: tuple[str, ...]) -> "ProblemFilter":
        """Make a filter of the options' values; an unknown type or kind is a usage error."""
        from ragtide.drift.problems import Kind

        found = cls(**{name: split(values) for name, values in filters.items()})
        check_names("--type", found.types, TYPES)
        check_names("--kind", found.kinds, get_args(Kind))
        return found

    def __bool__(self) -> bool:
        return bool(self.apps or self.types or self.metrics or self.kinds)

    def check_names(self, database: "Database", evaluators: "EvaluatorSettings", problems: Sequence["Problem"]) -> None:
        """Raise a usage error for an application or a metric that is neither in `problems` nor anywhere else."""
        check_names("--app", self.apps, {one.app for one in problems}, lambda: known_apps(database))
        known = with_evaluators(one.metric for one in problems)
        check_names("--metric", self.metrics, known, lambda: [*known_metrics(evaluators), *stored_metrics(database)])

    def matches(self, problem: "Problem") -> bool:
        """Whether the problem is chosen."""
        return (
            (not self.apps or problem.app in self.apps)
            and (not self.types or problem.type in self.types)
            and (not self.kinds or bool({*self.kinds} & {*problem.kinds}))
            and selects_metric(self.metrics, problem.metric)
        )
