"""Complete names in the shell from the database: within a short time, and silently without one.

An option or argument takes one of these functions as `shell_complete`. docs/completion.md says how to switch it on.
"""

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from ragtide.stream.cli.options import settings_from
from ragtide.stream.known_names import known_apps, known_metrics, known_runs

if TYPE_CHECKING:
    from ragtide.sinks.clickhouse.database import Database
    from ragtide.stream.settings.loader import Settings

WAIT_S = 2.0
_LOAD_S = 5.0  # evaluators, which other packages may bring
_REQUEST_S = 1.0
Named = dict[str, str]  # a name, and what the shell says about it


def problem_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of problems, with their descriptions."""

    def load(database: "Database") -> Named:
        from ragtide.drift.problems import load_problems

        found = load_problems(database, states=("pending", "open", "resolved"))
        return {one.problem_id: f"{one.state}, {one.severity}: {one.description}" for one in found}

    return _complete(ctx, incomplete, load)


def apps(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of applications."""
    return _complete(ctx, incomplete, lambda database: dict.fromkeys(known_apps(database), ""))


def runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of runs."""
    return _complete(ctx, incomplete, lambda database: dict.fromkeys(known_runs(database), ""))


def metrics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of evaluators and metrics; they need no database."""

    def load() -> Named:
        return dict.fromkeys(known_metrics(_settings(ctx).evaluators), "")

    return _items(incomplete, _within(_LOAD_S, load))


def user_prompts(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the prompts in the settings; they need no database."""

    def load() -> Named:
        return {name: one.description for name, one in _settings(ctx).evaluators.judge.byop.items()}

    return _items(incomplete, _within(_LOAD_S, load))


def _settings(ctx: click.Context) -> "Settings":
    config = ctx.params.get("config")
    return settings_from(Path(config) if config else None).settings


def _complete(ctx: click.Context, incomplete: str, load: "Callable[[Database], Named]") -> list[CompletionItem]:
    def ask() -> Named:
        from ragtide.sinks.clickhouse.database import Database

        settings = _settings(ctx).clickhouse
        database = Database(settings.model_copy(update={"timeout_s": min(settings.timeout_s, _REQUEST_S)}))
        try:
            return load(database)
        finally:
            database.close()

    return _items(incomplete, _within(WAIT_S, ask))


def _items(incomplete: str, found: Named) -> list[CompletionItem]:
    """Complete the last of several names that commas separate."""
    before, comma, last = incomplete.rpartition(",")
    names: Iterable[str] = sorted(name for name in found if name.startswith(last))
    return [CompletionItem(f"{before}{comma}{name}", help=found[name] or None) for name in names]


def _within(seconds: float, ask: Callable[[], Named]) -> Named:
    """Return what `ask` returns; nothing if it raises or takes longer, because a shell waits for its user."""
    found: Named = {}

    def run() -> None:
        try:
            found.update(ask())
        except Exception:  # noqa: BLE001  # the edge of a request: the shell completes nothing
            return

    asking = threading.Thread(target=run, daemon=True)
    asking.start()
    asking.join(seconds)
    return {} if asking.is_alive() else found
