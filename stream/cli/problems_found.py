"""How commands come to problems: the settings' database, and a problem by how its id begins."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stream.cli.options import settings_from

if TYPE_CHECKING:
    from drift.problems.problem import Problem
    from sinks.clickhouse.database import Database
    from stream.settings import Settings


@contextmanager
def reached(config: Path | None) -> "Iterator[tuple[Settings, Database]]":
    """The settings and their database, closed afterwards."""
    settings = settings_from(config).settings
    from sinks.clickhouse.database import Database

    database = Database(settings.clickhouse)
    try:
        yield settings, database
    finally:
        database.close()


def episodes_of(database: "Database", problem_id: str) -> "list[Problem]":
    """All episodes of the one problem whose id begins so, the newest first; ConfigError where none does, or several."""
    from typing import get_args

    from drift.problems.folding import load_problems
    from drift.problems.problem import State
    from evaluators.errors import ConfigError

    found = load_problems(database, states=get_args(State), problem=problem_id, every_episode=True)
    if not found:
        raise ConfigError(
            f"there is no problem {problem_id!r}; `ragwatch problems list` has the ids, with --state pending also "
            "of those that may open"
        )
    if len(distinct := {problem.problem_id for problem in found}) > 1:
        raise ConfigError(f"{problem_id!r} begins several ids: {', '.join(sorted(distinct))}")
    return sorted(found, key=lambda problem: problem.episode, reverse=True)
