"""The queue of slices of a lane: one at a time in order, what is left of each in tasks of its own.

No exception reaches Faust, whose agents acknowledge what they drop: every error ends `run`.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Handle = Callable[[Any, ThreadPoolExecutor], Awaitable[None]]


class SliceQueue:
    """Passes what was submitted to `handle`, with one thread for work that blocks. The caller limits the queue."""

    def __init__(self, thread: str, handle: Handle) -> None:
        self._thread = thread
        self._handle = handle
        self._queue: deque[Any] = deque()
        self._submitted = asyncio.Event()
        self._finishing: set[asyncio.Task[None]] = set()
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._busy = False
        self._stopping = False

    def submit(self, event: Any) -> None:
        """Take a slice's event; neither blocks nor raises."""
        self._queue.append(event)
        self._submitted.set()

    @property
    def is_idle(self) -> bool:
        """Whether all accepted work is finished."""
        return not self._busy and not self._finishing

    def stop_accepting(self) -> None:
        """Finish work in progress; the next owner reads queued slices again."""
        self._stopping = True
        self._queue.clear()

    def finish(self, rest: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run what is left of a slice beside the next ones; its error ends `run`."""
        task = asyncio.create_task(rest)
        self._finishing.add(task)
        task.add_done_callback(self._on_finished)
        return task

    async def run(self) -> None:
        """Run until cancelled; raise errors that no retry can fix."""
        with ThreadPoolExecutor(1, thread_name_prefix=self._thread) as executor:
            working = asyncio.create_task(self._process_queue(executor))
            try:
                await asyncio.wait({working, self._failure}, return_when=asyncio.FIRST_COMPLETED)
                for ended in (working, self._failure):
                    if ended.done():
                        ended.result()
            finally:
                working.cancel()
                for task in self._finishing:
                    task.cancel()
                executor.shutdown(wait=False, cancel_futures=True)

    async def _process_queue(self, executor: ThreadPoolExecutor) -> None:
        while True:
            while not self._queue or self._stopping:
                self._submitted.clear()
                await self._submitted.wait()
            self._busy = True
            try:
                await self._handle(self._queue.popleft(), executor)  # which nothing here keeps
            finally:
                self._busy = False

    def _on_finished(self, task: "asyncio.Task[None]") -> None:
        self._finishing.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not self._failure.done():
            self._failure.set_exception(error)
