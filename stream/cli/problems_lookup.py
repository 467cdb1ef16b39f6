"""Look up problems: open the database, find problems by the start of an id or by filters."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click

from ragtide.stream.cli.options import settings_from
from ragtide.stream.cli.problems_filter import ProblemFilter
from ragtide.stream.terminal import say

if TYPE_CHECKING:
    from ragtide.drift.problems import Problem, ProblemSilence
    from ragtide.evaluators.settings import EvaluatorSettings
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


def warn_of_stopped_jobs(database: "Database", live_after_s: float) -> None:
    """Warn on standard error if no jobs process finds problems now."""
    from ragtide.drift.job_history import seconds_since_success

    age_s = seconds_since_success(database, "watch")
    if age_s is not None and age_s <= live_after_s:
        return
    since = "never ran" if age_s is None else f"last succeeded {timedelta(seconds=round(age_s))} (h:mm:ss) ago"
    say(f"job watch {since}: later problems are missing; start `ragtide jobs`, or read its log", err=True)


@dataclass(frozen=True, slots=True)
class Selection:
    """Problems that an operator chose: by ids, or by a filter, which asks for confirmation unless `yes`."""

    ids: Sequence[str]
    filter: ProblemFilter
    yes: bool

    @classmethod
    def of(cls, *, problem_ids: Sequence[str], yes: bool, **filters: tuple[str, ...]) -> Self:
        """Make a selection of a command's arguments; a usage error unless there are ids or filters, and not both."""
        chosen = ProblemFilter.of(**filters)
        if bool(problem_ids) == bool(chosen):
            raise click.UsageError("name problems by id, or choose them by --app, --type, --metric or --kind")
        return cls(problem_ids, chosen, yes)

    def find(
        self, database: "Database", evaluators: "EvaluatorSettings", suits: "Callable[[Problem], bool]"
    ) -> "list[Problem]":
        """The last episode of each problem, newest first; of a filter's only those that `suits` accepts.

        Raises `ConfigError` for an id that no problem or several have, and a usage error for an unknown name.
        """
        if self.ids:
            found = [episodes_of(database, one)[0] for one in self.ids]
            return list({problem.problem_id: problem for problem in found}.values())
        from typing import get_args

        from ragtide.drift.problems import State, load_problems

        known = load_problems(database, states=get_args(State))
        self.filter.check_names(database, evaluators, known)
        return [one for one in known if self.filter.matches(one) and suits(one)]


def current_silences(database: "Database", ids: Collection[str] = ()) -> "Mapping[str, Sequence[ProblemSilence]]":
    """Silences of Alertmanager that hold now, by problem id; of these problems, or of all."""
    from ragtide.drift.problems import load_silences

    return load_silences(database, datetime.now(UTC), ids)


def episodes_of(database: "Database", problem_id: str) -> "list[Problem]":
    """All episodes of the problem whose id starts so, newest first; ConfigError if none or several do."""
    from typing import get_args

    from ragtide.drift.problems import State, load_problems
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
