"""Names that a running system knows: applications, runs, metrics, jobs. Filters are checked against them."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragtide.evaluators.settings import EvaluatorSettings
    from ragtide.sinks.clickhouse.database import Database

_MOST_LISTED = 20
# Windows lag behind by the open one, which has marks.
_APPS = " UNION DISTINCT ".join(
    f"SELECT DISTINCT app AS name FROM {table}" for table in ("windows", "dirty_windows", "problem_events", "insights")
)
_METRICS = " UNION DISTINCT ".join(
    f"SELECT DISTINCT metric AS name FROM {table}" for table in ("windows", "problem_events")
)
_RUNS = "SELECT run_id AS name FROM runs FINAL UNION DISTINCT SELECT DISTINCT run_id AS name FROM windows"


def known_apps(database: "Database") -> list[str]:
    """Every application with traces, windows, problems or insights."""
    return _names(database, _APPS)


def known_values(database: "Database", column: str, app: str) -> list[str]:
    """Every value of a column of table `windows` that the application has: an environment, a model, a segment."""
    return _names(database, f"SELECT DISTINCT {column} AS name FROM windows WHERE app = {{app:String}}", {"app": app})


def known_runs(database: "Database") -> list[str]:
    """Every run that a replay started, and those with windows: `live` and `probe` too."""
    return _names(database, _RUNS)


def stored_metrics(database: "Database") -> list[str]:
    """Every metric with windows or problems, and its evaluator; some may not be installed here."""
    found = _names(database, _METRICS)
    return sorted({*found, *(name.partition(".")[0] for name in found)})


def known_insight_types(database: "Database") -> list[str]:
    """Every type that an insight has."""
    return _names(database, "SELECT DISTINCT type AS name FROM insights")


def known_jobs(database: "Database") -> list[str]:
    """Every job that ever ran."""
    return _names(database, "SELECT DISTINCT job AS name FROM job_history")


def known_metrics(settings: "EvaluatorSettings") -> list[str]:
    """Every evaluator, of prompts in the settings too, each of its metrics, and each monitored category."""
    from ragtide.drift.anomalies import monitored_metrics
    from ragtide.drift.windows import metrics_by_name
    from ragtide.evaluators import registry

    evaluators = registry.load(settings)
    return [*evaluators, *{**metrics_by_name(evaluators), **monitored_metrics(evaluators.values())}]


def _names(database: "Database", sql: str, parameters: Mapping[str, str] | None = None) -> list[str]:
    return sorted({row["name"] for row in database.rows(sql, parameters)} - {""})


def nearest_of(name: str, valid: Collection[str]) -> str:
    """Say which of the valid names was probably meant, or list them."""
    import difflib

    if near := difflib.get_close_matches(name, valid, n=3, cutoff=0.6):
        return f"did you mean {' or '.join(near)}?"
    if not valid:
        return "there are none yet"
    more = len(valid) - _MOST_LISTED
    listed = ", ".join(sorted(valid)[:_MOST_LISTED])
    return f"there are: {listed}{f' and {more} more' if more > 0 else ''}"
