"""Look up problems: open the database, find a problem by the start of its id."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ragtide.stream.cli.options import settings_from

if TYPE_CHECKING:
    from ragtide.drift.problems.model import Problem
    from ragtide.sinks.clickhouse.database import Database
    from ragtide.stream.settings.loader import Settings


@contextmanager
def open_database(config: Path | None) -> "Iterator[tuple[Settings, Database]]":
    """Open the database of the settings; close it on leaving."""
    settings = settings_from(config).settings
    from ragtide.sinks.clickhouse.database import Database

    database = Database(settings.clickhouse)
    try:
        yield settings, database
    finally:
        database.close()


def episodes_of(database: "Database", problem_id: str) -> "list[Problem]":
    """All episodes of the problem whose id starts so, newest first; ConfigError if none or several do."""
    from typing import get_args

    from ragtide.drift.problems.model import State
    from ragtide.drift.problems.store import load_problems
    from ragtide.evaluators.errors import ConfigError

    found = load_problems(database, states=get_args(State), problem=problem_id, every_episode=True)
    if not found:
        raise ConfigError(
            f"no problem {problem_id!r}; `ragtide problems list` shows the ids, with --state pending those of "
            "pending ones"
        )
    if len(distinct := {problem.problem_id for problem in found}) > 1:
        raise ConfigError(f"{problem_id!r} is the start of several ids: {', '.join(sorted(distinct))}")
    return sorted(found, key=lambda problem: problem.episode, reverse=True)
