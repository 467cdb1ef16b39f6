"""The demo's display: a live screen on a terminal, plain lines anywhere else."""

from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.live import Live

from ragtide.stream.demo.console import View, alert_line, clock, limit, number, render, symptom_count
from ragtide.stream.demo.schedule import Episode
from ragtide.stream.terminal_text import plain

_LINE_EVERY_S = 10.0


class Display(Protocol):
    """Shows the latest view; used as a context manager around all updates."""

    def update(self, view: View) -> None:
        """Called about once a second."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...


def display(console: Console) -> Display:
    """The display for the console."""
    return Screen(console) if console.is_terminal else Lines(console)


class Screen:
    """Shows the whole view in place; the last one stays."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False)

    def update(self, view: View) -> None:
        """Show the view."""
        size = self._live.console.size
        self._live.update(render(view, size.width, size.height), refresh=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()


class Lines:
    """One line for every fault and every change of a problem, and one for the figures every ten seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._fault: Episode | None = None
        self._states: dict[tuple[str, int], str] = {}
        self._stage = ""
        self._next_s = 0.0

    def update(self, view: View) -> None:
        """Print what is new."""
        if view.elapsed_s is None:
            if view.stage != self._stage:
                self._say(view, view.stage)
                self._stage = view.stage
            return
        if view.fault != self._fault:
            self._say(
                view, f"fault on: {view.fault.fault.name}: {view.fault.fault.title}" if view.fault else "fault off"
            )
            self._fault = view.fault
        for problem in reversed(view.problems):
            known = (problem.problem_id, problem.episode)
            if self._states.get(known) != problem.state:
                self._states[known] = problem.state
                examples = ", ".join(problem.examples[:3]) or "none"
                symptoms = view.groups.symptoms_of(problem)
                what = f"{problem.metric}, with {symptom_count(symptoms)}" if symptoms else problem.metric
                self._say(view, f"problem {problem.state}: {what}: {problem.description} Examples: {examples}")
                if problem.state == "open":
                    self._say(view, alert_line(problem, view.groups, with_labels=True))
        if view.elapsed_s >= self._next_s:
            self._next_s = view.elapsed_s - view.elapsed_s % _LINE_EVERY_S + _LINE_EVERY_S
            self._say(view, _figures(view))
            if view.delay:
                self._say(view, view.delay)

    def _say(self, view: View, text: str) -> None:
        at = clock(view.elapsed_s) if view.elapsed_s is not None else "--:--"
        self._console.print(plain(f"{at} {text}"), highlight=False, markup=False, soft_wrap=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass


def _figures(view: View) -> str:
    snapshot = view.snapshot
    if snapshot is None:
        return f"{view.sent} sent"
    lag = ", ".join(f"{lane} {records}" for lane, records in snapshot.lag.items())
    means = []
    for one in view.shown_metrics:
        points = snapshot.series.get(one.metric)
        if points:
            last = points[-1]
            means.append(f"{one.metric} {number(last.mean)} ({limit(one)}; {last.scored}/{last.seen})")
    return f"{snapshot.rate:.1f} traces/s, {snapshot.stored} stored, lag {lag or '-'}; " + ", ".join(means)
