"""Holds the conversations of a micro-batch at the same time, and sends equal calls once."""

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Any

from ragtide.evaluators.errors import ends_process
from ragtide.evaluators.judge.calls import MOST_CALLS, Answer, Asker, Call, Conversation, Judge, SearchCall
from ragtide.evaluators.outcome import Failed, NotApplicable

Key = tuple[str, Call]  # endpoint and call
Replies = MutableMapping[Key, Answer]


@dataclass(slots=True, eq=False)
class Held:
    """A conversation and who holds it. `result` is what it returned, or why it ended before: a call that failed or that
    a limit left out, or NotApplicable("too_long"). `error` is what it raised.
    """

    conversation: Conversation[Any]
    asker: Asker
    result: Any = None
    error: BaseException | None = None
    _keys: list[Key] = field(default_factory=list)
    _missing: int = 0
    _left_out: NotApplicable | None = None  # a limit of its application left out one of its calls
    _calls: int = 0


class Driver:
    """Drives conversations in the calling thread, while the judge works on their calls."""

    def __init__(self, judge: Judge, replies: Replies) -> None:
        self._judge = judge
        self._replies = replies
        self._waiting: dict[Key, list[Held]] = {}
        self._left_out: dict[Key, NotApplicable] = {}
        self._done: SimpleQueue[tuple[Key, Answer]] = SimpleQueue()

    def hold(self, conversations: Sequence[Held]) -> None:
        """Hold all conversations to their ends. A call without a reply ends the conversations that need it.

        Calls that limits left out for every application are then among the replies, so that they are not sent later.
        """
        for held in conversations:
            self._advance(held, partial(next, held.conversation))
        while self._waiting:
            if self._done.empty():
                self._judge.flush(len(self._waiting))
            key, reply = self._done.get()
            waiting = self._waiting.pop(key)
            if isinstance(reply, NotApplicable):  # limits are of one application: others may ask
                app = waiting[0].asker.trace.app
                self._submit(key, [held for held in waiting if held.asker.trace.app != app])
                waiting = [held for held in waiting if held.asker.trace.app == app]
                self._left_out[key] = reply
                for held in waiting:
                    held._left_out = reply
            else:
                self._replies[key] = reply
            for held in waiting:
                held._missing -= 1
                if not held._missing:
                    self._continue(held)
        for key, outcome in self._left_out.items():
            self._replies.setdefault(key, outcome)

    def _submit(self, key: Key, waiting: list[Held]) -> None:
        if waiting:
            self._waiting[key] = waiting
            call, asker, done = key[1], waiting[0].asker, partial(self._put, key)
            if isinstance(call, SearchCall):
                self._judge.search(call, asker, done)
            else:
                self._judge.submit(call, asker, done)

    def _continue(self, held: Held) -> None:
        missing: Answer | None = held._left_out
        replies: list[Answer] = [] if missing is not None else [self._replies[key] for key in held._keys]
        missing = missing or next((reply for reply in replies if isinstance(reply, (Failed, NotApplicable))), None)
        if missing is not None:
            held.conversation.close()
            held.result = missing
        else:
            self._advance(held, lambda: held.conversation.send(replies))

    def _advance(self, held: Held, resume: Callable[[], Sequence[Call]]) -> None:
        try:
            calls = resume()
        except StopIteration as stop:
            held.result = stop.value
            return
        except BaseException as error:  # code of evaluators: the engine says which record it is about
            if ends_process(error):
                raise
            held.error = error
            return
        held._calls += len(calls)
        if held._calls > MOST_CALLS:
            held.conversation.close()
            held.result = NotApplicable("too_long")
            return
        endpoint = self._judge.endpoint_of(held.asker.evaluator)
        held._keys = [(endpoint, call) for call in calls]
        missing = [key for key in dict.fromkeys(held._keys) if key not in self._replies]
        held._missing = len(missing)
        if not missing:
            self._continue(held)
        for key in missing:
            if key in self._waiting:
                self._waiting[key].append(held)
            else:
                self._submit(key, [held])

    def _put(self, key: Key, reply: Answer) -> None:
        self._done.put((key, reply))
