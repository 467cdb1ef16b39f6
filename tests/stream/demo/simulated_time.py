"""An event loop whose time passes while tasks sleep and not while they work: nobody waits, whatever is played."""

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Leap(selectors.SelectSelector):
    """Where nothing is left to do before the next timer, it is that timer's moment at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("every task waits, and none of them for a moment in time")
        self.now += max(timeout, 0.0)
        return super().select(0)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Begins at 0 s. Work for another thread goes to `AtOnce`: time would not wait for it."""

    def __init__(self) -> None:
        self._leap = _Leap()
        super().__init__(self._leap)

    def time(self) -> float:
        return self._leap.now


class AtOnce(Executor):
    """Does in the caller's thread what it is given."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        done.set_result(fn(*args, **kwargs))
        return done
