"""Check the names that filters give: an unknown one is an error with the nearest, never an empty result."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ragtide.sinks.clickhouse.database import Database

_MOST_LISTED = 20
# Windows lag behind by the open one, which has marks.
_APPS = " UNION DISTINCT ".join(
    f"SELECT DISTINCT app AS name FROM {table}" for table in ("windows", "dirty_windows", "problem_events", "insights")
)
_RUNS = "SELECT run_id AS name FROM runs FINAL UNION DISTINCT SELECT DISTINCT run_id AS name FROM windows"


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
            raise click.BadParameter(f"there is no {name!r}; {_nearest(name, valid)}", param_hint=option)


def given(name: str | None) -> list[str]:
    """The names of an option that takes one; none where it was left out."""
    return [] if name is None else [name]


def known_apps(database: "Database") -> list[str]:
    """Every application with traces, windows, problems or insights."""
    return _names(database, _APPS)


def known_values(database: "Database", column: str, app: str) -> list[str]:
    """Every value of a column of table `windows` that the application has: an environment, a model, a segment."""
    return _names(database, f"SELECT DISTINCT {column} AS name FROM windows WHERE app = {{app:String}}", {"app": app})


def known_runs(database: "Database") -> list[str]:
    """Every run that a replay started, and those with windows: `live` and `probe` too."""
    return _names(database, _RUNS)


def known_insight_types(database: "Database") -> list[str]:
    """Every type that an insight has."""
    return _names(database, "SELECT DISTINCT type AS name FROM insights")


def known_jobs(database: "Database") -> list[str]:
    """Every job that ever ran."""
    return _names(database, "SELECT DISTINCT job AS name FROM job_history")


def known_metrics() -> list[str]:
    """Every installed evaluator, each of its metrics, and each monitored category such as a language."""
    from ragtide.drift.anomalies import monitored_metrics
    from ragtide.drift.windows import metrics_by_name
    from ragtide.evaluators import registry

    evaluators = registry.load()
    return [*evaluators, *{**metrics_by_name(evaluators), **monitored_metrics(evaluators.values())}]


def with_evaluators(metrics: Iterable[str]) -> set[str]:
    """The metrics, and their evaluators: both select a metric."""
    return {name for metric in metrics for name in (metric, metric.partition(".")[0])}


def selects_metric(names: Collection[str], metric: str) -> bool:
    """Whether the metric, or its evaluator, is among the names; no names select all."""
    return not names or metric in names or metric.partition(".")[0] in names


def _names(database: "Database", sql: str, parameters: Mapping[str, str] | None = None) -> list[str]:
    return sorted({row["name"] for row in database.rows(sql, parameters)} - {""})


def _nearest(name: str, valid: Collection[str]) -> str:
    import difflib

    if near := difflib.get_close_matches(name, valid, n=3, cutoff=0.6):
        return f"did you mean {' or '.join(near)}?"
    if not valid:
        return "there are none yet"
    more = len(valid) - _MOST_LISTED
    listed = ", ".join(sorted(valid)[:_MOST_LISTED])
    return f"there are: {listed}{f' and {more} more' if more > 0 else ''}"
