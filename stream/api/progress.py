"""A progress bar for long work: on a terminal by rich, in a notebook by the notebook's own display."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from ragtide.stream.console import PlainConsole
from ragtide.stream.terminal_text import plain

AFTER_S = 2.0  # shorter work shows no bar
_EVERY_S = 0.2
Report = Callable[[int], None]


@contextmanager
def progress_bar(
    what: str, total: int | None, wanted: bool | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Report]:
    """Provide the function that takes how much of `total` is done. A `total` of None: unknown.

    `wanted` None: only on a terminal or in a notebook, and after two seconds. True shows it at once, False never.
    """
    bar = None if wanted is False else _notebook_bar(what, total) or _terminal_bar(what, total, wanted=bool(wanted))
    if bar is None:
        yield lambda done: None
        return
    due_s = clock() + (0.0 if wanted else AFTER_S)

    def report(done: int) -> None:
        nonlocal due_s
        if (now := clock()) >= due_s:
            due_s = now + _EVERY_S
            bar.show(done)

    try:
        yield report
    finally:
        bar.close()


class _TerminalBar:
    """A line on standard error, removed at the end."""

    def __init__(self, what: str, total: int | None, console: PlainConsole) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=console, transient=console.is_terminal, auto_refresh=False)
        self._task = self._bar.add_task(plain(what), total=total)
        self._is_started = False

    def show(self, done: int) -> None:
        if not self._is_started:
            self._bar.start()
            self._is_started = True
        self._bar.update(self._task, completed=done, refresh=True)

    def close(self) -> None:
        if self._is_started:
            self._bar.stop()


class _NotebookBar:
    """An output of the cell, emptied at the end. Needs no widgets."""

    def __init__(self, what: str, total: int | None, display: Any) -> None:
        self._what = what
        self._total = total
        self._display = display
        self._handle: Any = None

    def show(self, done: int) -> None:
        share = f'value="{done}" max="{self._total}"' if self._total else ""
        self._write(f"<progress {share}></progress> {escape(plain(self._what))}")

    def close(self) -> None:
        if self._handle is not None:
            self._write("")

    def _write(self, html: str) -> None:
        written = self._display.HTML(html)
        if self._handle is None:
            self._handle = self._display.display(written, display_id=True)
        else:
            self._handle.update(written)


def _notebook_bar(what: str, total: int | None) -> _NotebookBar | None:
    """A notebook's kernel has loaded IPython; nothing else here needs it."""
    core, display = sys.modules.get("IPython"), sys.modules.get("IPython.display")
    shell = core.get_ipython() if core is not None and display is not None else None
    is_notebook = any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).__mro__)  # Colab has its own
    return _NotebookBar(what, total, display) if is_notebook else None


def _terminal_bar(what: str, total: int | None, *, wanted: bool) -> _TerminalBar | None:
    console = PlainConsole(stderr=True)
    return _TerminalBar(what, total, console) if wanted or console.is_terminal else None
