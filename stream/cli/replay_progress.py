"""The progress bar of a replay, on standard error; without a terminal, a log line every few seconds."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from ragtide.stream.console import PlainConsole
from ragtide.stream.replay.loop import ReplayProgress

log = logging.getLogger(__name__)
_EVERY_S = 10.0


@contextmanager
def show_progress(run_id: str, *, resumed: int = 0) -> Iterator[Callable[[ReplayProgress], None]]:
    """Provide the function that shows the progress of the replay."""
    console = PlainConsole(stderr=True)
    if not console.is_terminal:
        yield _lines(run_id)
        return
    if resumed:
        console.print(f"run {run_id}: going on after {resumed:,} traces")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[traces]:,} traces, {task.fields[dead]:,} dead letters"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(f"run {run_id}", total=None, traces=0, dead=0)

        def report(at: ReplayProgress) -> None:
            done, total = (at.done, at.total) if at.total else (1, 1)
            bar.update(task, completed=done, total=total, traces=at.traces, dead=at.dead_letters)

        yield report


def _lines(run_id: str) -> Callable[[ReplayProgress], None]:
    logged_at = time.monotonic()

    def report(at: ReplayProgress) -> None:
        nonlocal logged_at
        if time.monotonic() - logged_at >= _EVERY_S:
            logged_at = time.monotonic()
            share = 100 * at.done / at.total if at.total else 100
            log.info("run %s: %.0f %%, %d traces, %d dead letters", run_id, share, at.traces, at.dead_letters)

    return report
