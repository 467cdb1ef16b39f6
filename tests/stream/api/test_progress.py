"""A bar shows on long work, on a terminal or in a notebook, and leaves nothing behind."""

import io
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from ragtide.stream.api import progress
from ragtide.stream.api.progress import AFTER_S, progress_bar
from ragtide.stream.console import PlainConsole


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    found = Terminal()
    monkeypatch.setattr(progress, "PlainConsole", partial(PlainConsole, file=found))
    monkeypatch.setenv("TERM", "xterm")
    return found


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a notebook's output showed, in order."""
    shown: list[str] = []

    class Handle:
        def update(self, html: str) -> None:
            shown.append(html)

    def display(html: str, *, display_id: bool) -> Handle:
        assert display_id
        shown.append(html)
        return Handle()

    kernel = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=display))
    return shown


def test_short_work_shows_nothing(terminal: Terminal) -> None:
    clock = Clock()
    with progress_bar("evaluating", 10, clock=clock) as report:
        for done in range(10):
            clock.now_s += AFTER_S / 11
            report(done)
    assert terminal.getvalue() == ""


def test_long_work_shows_a_bar_on_a_terminal(terminal: Terminal) -> None:
    clock = Clock()
    with progress_bar("evaluating\x1b[31m", 10, clock=clock) as report:
        clock.now_s += AFTER_S
        report(5)
    assert "evaluating" in terminal.getvalue()
    assert "50%" in terminal.getvalue()
    assert r"evaluating\x1b[31m" in terminal.getvalue(), "escaped"


def test_without_a_terminal_there_is_none_unless_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(progress, "PlainConsole", partial(PlainConsole, file=written))
    clock = Clock()
    with progress_bar("evaluating", 10, clock=clock) as report:
        clock.now_s += 60
        report(5)
    assert written.getvalue() == ""
    with progress_bar("evaluating", 10, wanted=True, clock=clock) as report:
        report(5)
    assert "evaluating" in written.getvalue()


def test_unwanted_it_never_shows(terminal: Terminal, cells: list[str]) -> None:
    clock = Clock()
    with progress_bar("evaluating", 10, wanted=False, clock=clock) as report:
        clock.now_s += 60
        report(5)
    assert (terminal.getvalue(), cells) == ("", [])


def test_a_notebook_shows_it_in_its_cell_and_empties_it(cells: list[str], terminal: Terminal) -> None:
    clock = Clock()

    def work() -> None:
        with progress_bar("evaluating <b>.jsonl", 200, clock=clock) as report:
            clock.now_s += AFTER_S
            report(50)
            report(51)  # at once: not shown
            clock.now_s += 1
            report(100)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        work()
    assert cells == [
        '<progress value="50" max="200"></progress> evaluating &lt;b&gt;.jsonl',
        '<progress value="100" max="200"></progress> evaluating &lt;b&gt;.jsonl',
        "",
    ]
    assert terminal.getvalue() == ""


def test_ipython_in_a_terminal_is_no_notebook(cells: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    shell: Any = type("TerminalInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert progress._notebook_bar("x", 1) is None


def test_a_kernel_of_its_own_kind_is_a_notebook_too(cells: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    kernel: Any = type("Shell", (type("ZMQInteractiveShell", (), {}),), {})()  # as Colab's
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel))
    assert progress._notebook_bar("x", 1) is not None
