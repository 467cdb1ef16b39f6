"""One endpoint, asked through its Batch API: gathers calls, sends them as files, and hands out the replies.

A call waits here as it waits for a reply over the network, so that evaluators, repairs, the cache and counts of costs
know no difference. A call whose reply cannot be read is asked again in the next batch.
"""

import asyncio
import logging
import random
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ragtide.evaluators.errors import Transient
from ragtide.evaluators.judge.calls import TraceCalls
from ragtide.evaluators.judge.settings import JudgeEndpoint
from ragtide.stream.judge.batch_lines import call_id, encode_line
from ragtide.stream.judge.batch_runner import Answer, BatchOutcome, BatchRunner
from ragtide.stream.judge.batch_state import BatchRecord, BatchState
from ragtide.stream.judge.connection import UNKNOWN_FIELD, CallFailed, Miss
from ragtide.stream.judge.limits import CallLimit, LeftOut, Settle
from ragtide.stream.judge.protocol import MODES, Completion, Request, encode_request
from ragtide.stream.judge.usage import cost_usd, most_usd

_log = logging.getLogger(__name__)
_LEDGER_S = 900.0  # calls fail if the ledger of budgets does not answer for so long


@dataclass(slots=True, eq=False)
class _PendingCall:
    """A call, and everyone who waits for its reply."""

    id: str
    mode: str  # of structured output
    line: bytes
    body_bytes: int
    most_usd: float
    limit: CallLimit | None
    waiters: list[asyncio.Future[Answer]] = field(default_factory=list)
    settle: Settle | None = None


@dataclass(slots=True, eq=False)
class _Batch:
    """A batch. One of an earlier process begins to run when a call waits for it."""

    record: BatchRecord
    asked: dict[str, _PendingCall] = field(default_factory=dict)
    is_resumed: bool = False
    is_running: bool = False
    ended: BatchOutcome | None = None


class BatchEndpoint:
    """An endpoint. Used by one event loop. `on_waiting` is called when a call begins to wait."""

    def __init__(
        self,
        name: str,
        settings: JudgeEndpoint,
        state: BatchState,
        on_waiting: Callable[[], None],
        now: Callable[[], float] = time.time,
        seed: int | None = None,
    ) -> None:
        self.name, self.settings = name, settings.at_batch_prices()
        self.waiting = 0  # calls without a reply, gathered or in a batch
        self._on_waiting, self._now = on_waiting, now
        self._runner = BatchRunner(name, settings, state, now, random.Random(seed))
        self._mode = MODES[0] if settings.structured == "auto" else settings.structured
        self._is_mode_known = settings.structured != "auto"
        self._ready: dict[str, _PendingCall] = {}
        self._ready_bytes = 0
        self._deferred: dict[str, _PendingCall] = {}  # until batches in flight have given money back
        self._batch_of: dict[str, _Batch] = {}  # by id of a call
        self._batches: list[_Batch] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._submitting = asyncio.Lock()
        for record in state.records(settings.url):
            batch = _Batch(record, is_resumed=True)
            self._batches.append(batch)
            self._batch_of |= dict.fromkeys(record.sizes, batch)

    async def complete(self, request: Request, trace: TraceCalls, limit: CallLimit | None = None) -> Completion:
        """Return the model's reply. Raises `CallFailed`, and `LeftOut` if the limit does not allow the call."""
        refused: set[str] = set()  # structured outputs
        while True:
            mode = self._mode
            got = await self._ask(request, mode, limit)
            if isinstance(got, Completion):
                return got
            refused.add(mode)
            if self._mode in refused:
                raise CallFailed(got.kind, f"endpoint {self.name}: {got.why}")

    def time_left(self, trace: TraceCalls) -> float:
        """Return the seconds that a search about the trace may take: the trace waits for batches, so each has them."""
        return self.settings.trace_timeout_s

    def send(self) -> None:
        """Send the calls that are gathered, and try those again that there was no money for."""
        deferred, self._deferred = self._deferred, {}
        self._send([*deferred.values(), *self._ready.values()])

    async def close(self, *, is_done: bool) -> None:
        """End all work. If every call has its reply, forget batches that were read and delete their files.

        Else the next process finds them again.
        """
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        read = [batch.record for batch in self._batches if batch.record.was_read]
        await self._runner.close(read if is_done else ())
        if in_flight := [batch for batch in self._batches if batch.is_running and batch.ended is None]:
            calls = sum(len(batch.record.sizes) for batch in in_flight)
            number = f"{len(in_flight):,} batch{'es' if len(in_flight) > 1 else ''} with {calls:,} calls"
            files = ", ".join(batch.record.file for batch in in_flight if batch.record.file) or "none"
            told = "the same command finds them again; its files stay at the endpoint until then"
            _log.warning("judge %s: in flight: %s; %s: %s", self.name, number, told, files)

    def _send(self, asked: Sequence[_PendingCall]) -> None:
        self._ready, self._ready_bytes = {}, 0
        if asked:
            self._start(self._submit(asked))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, request: Request, mode: str, limit: CallLimit | None) -> Answer:
        body = encode_request(request, self.settings, mode)
        id = call_id(self.settings.url, body, request.vote)
        line = encode_line(id, self.settings.batch.path, body)
        if len(line) > self.settings.batch.max_bytes:
            return Miss("judge_rejected", f"a call of {len(line):,} bytes is larger than batch.max_bytes")
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        asked = _PendingCall(id, mode, line, len(body), most_usd(len(body), self.settings), limit, [future])
        del body, line  # thousands of calls wait here
        self.waiting += 1
        if (batch := self._batch_of.get(id)) is not None:
            self._join(batch, asked)
        else:
            self._gather(asked)
        self._on_waiting()
        try:
            return await future
        finally:
            self.waiting -= future.cancelled()

    def _gather(self, asked: _PendingCall) -> None:
        settings = self.settings.batch
        if (known := self._ready.get(asked.id) or self._deferred.get(asked.id)) is not None:
            known.waiters += asked.waiters
            return
        if self._ready_bytes + len(asked.line) > settings.max_bytes:
            self._send(list(self._ready.values()))
        self._ready[asked.id] = asked
        self._ready_bytes += len(asked.line)
        if len(self._ready) >= settings.max_requests:
            self._send(list(self._ready.values()))

    def _join(self, batch: _Batch, asked: _PendingCall) -> None:
        """Wait for a batch that has the call: one of an earlier process, or of a call that is asked twice."""
        if batch.ended is not None:
            self._resolve(asked, batch.ended.of(asked.id))
            return
        if asked.id in batch.asked:
            batch.asked[asked.id].waiters += asked.waiters
        else:
            batch.asked[asked.id] = asked
        self._begin(batch)

    def _resolve(self, asked: _PendingCall, answer: Answer | Exception) -> None:
        """Hand out an answer, and settle what was reserved for it."""
        if asked.settle is not None:
            if isinstance(answer, Completion):
                asked.settle(cost_usd(answer.tokens, self.settings))
            elif isinstance(answer, Miss) and not answer.lost:
                asked.settle(0.0)
        for future in asked.waiters:
            if not future.done():
                self.waiting -= 1
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

    async def _submit(self, asked: Sequence[_PendingCall]) -> None:
        """Send calls that there is money for. Others wait for batches in flight, which may cost less than reserved."""
        async with self._submitting:  # the calls that were made first are the first to get money
            await self._submit_in_turn(asked)

    async def _submit_in_turn(self, asked: Sequence[_PendingCall]) -> None:
        affordable: list[_PendingCall] = []
        short: list[tuple[_PendingCall, LeftOut]] = []
        latest_s = time.monotonic() + min(_LEDGER_S, self.settings.batch.max_wait_s)
        ended = self._count_ended()
        for one in asked:
            try:
                if one.limit is not None:
                    one.settle = await one.limit.reserve(one.most_usd, latest_s)
                affordable.append(one)
            except LeftOut as left_out:
                short.append((one, left_out))
            except Transient as error:
                self._resolve(one, CallFailed("judge_unavailable", f"the ledger of budgets does not answer: {error}"))
            except Exception as error:  # noqa: BLE001  # whoever waits must be told: the client says what it was
                self._resolve(one, error)
        if short and self._count_ended() > ended:  # meanwhile a batch gave money back
            self._start(self._submit([one for one, _ in short]))
            short = []
        is_waiting = bool(affordable) or any(batch.is_running and batch.ended is None for batch in self._batches)
        for one, refusal in short:
            if not is_waiting:
                self._resolve(one, refusal)
            elif one.id in self._deferred:  # made again meanwhile
                self._deferred[one.id].waiters += one.waiters
            else:
                self._deferred[one.id] = one
        for calls in _files(affordable, self.settings.batch.max_requests, self.settings.batch.max_bytes):
            record = BatchRecord(uuid.uuid4().hex, self._now(), {one.id: one.body_bytes for one in calls})
            batch = _Batch(record, {one.id: one for one in calls})
            self._batches.append(batch)
            self._batch_of |= dict.fromkeys(record.sizes, batch)
            self._begin(batch)

    def _count_ended(self) -> int:
        return sum(batch.ended is not None for batch in self._batches)

    def _begin(self, batch: _Batch) -> None:
        if not batch.is_running:
            batch.is_running = True
            self._start(self._run(batch))

    async def _run(self, batch: _Batch) -> None:
        """Bring a batch to its end, and hand out its answers, whatever happens."""
        try:
            if batch.is_resumed:
                ended = await self._runner.resume(batch.record)
            else:
                ended = await self._runner.send(batch.record, _take_lines(batch))
        except Exception as error:  # noqa: BLE001  # whoever waits must be told: the client says what it was
            self._drop(batch)
            for one in batch.asked.values():
                self._resolve(one, error)
            return
        if ended is None:
            self._drop(batch)
            for one in batch.asked.values():
                self._gather(one)
            self._on_waiting()
            return
        batch.ended = ended
        self._learn_mode(batch, ended)
        for one in batch.asked.values():
            self._resolve(one, ended.of(one.id))
        if not batch.is_resumed:  # a call that is made again is another call
            batch.asked, batch.ended = {}, replace(ended, answers={})
            self._forget_calls(batch)

    def _drop(self, batch: _Batch) -> None:
        self._batches.remove(batch)
        self._forget_calls(batch)

    def _forget_calls(self, batch: _Batch) -> None:
        for id in batch.record.sizes:
            if self._batch_of.get(id) is batch:
                del self._batch_of[id]

    def _learn_mode(self, batch: _Batch, ended: BatchOutcome) -> None:
        """Keep the structured output of a reply. If all calls of a batch are refused for their form, try a simpler one.

        If every form is refused, the calls are at fault, and others start with the first form.
        """
        if self._is_mode_known or not ended.answers:
            return
        replied = {one.mode for one in batch.asked.values() if isinstance(ended.answers.get(one.id), Completion)}
        if replied:
            self._mode, self._is_mode_known = min(replied, key=MODES.index), True
        elif {one.mode for one in batch.asked.values()} == {self._mode} and all(
            isinstance(answer, Miss) and answer.status in UNKNOWN_FIELD for answer in ended.answers.values()
        ):
            self._mode = MODES[(MODES.index(self._mode) + 1) % len(MODES)]


def _take_lines(batch: _Batch) -> bytes:
    """Return the lines of a new batch. Nothing else keeps them in memory then."""
    lines = [one.line for one in batch.asked.values()]
    for one in batch.asked.values():
        one.line = b""
    return b"".join(lines)


def _files(asked: Sequence[_PendingCall], most_calls: int, most_bytes: int) -> Iterator[list[_PendingCall]]:
    """Cut calls into files of limited size."""
    held: list[_PendingCall] = []
    size = 0
    for one in asked:
        if held and (len(held) >= most_calls or size + len(one.line) > most_bytes):
            yield held
            held, size = [], 0
        held.append(one)
        size += len(one.line)
    if held:
        yield held
