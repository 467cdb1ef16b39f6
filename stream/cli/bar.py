"""Progress bars of commands that take long."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import Progress

from ragtide.stream.console import PlainConsole


@contextmanager
def bar() -> Iterator[Callable[[str, int, int], None]]:
    """What is done, how much of it and of how much: a line each, on standard error, where that is a terminal."""
    with Progress(console=PlainConsole(stderr=True), transient=True) as shown:
        tasks = {}

        def report(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = shown.add_task(what, total=None)
            shown.update(tasks[what], completed=done, total=of)

        yield report
