"""The judge: takes calls from any thread and answers them in an event loop of its own."""

import asyncio
import atexit
import hashlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from copy import deepcopy
from functools import partial

import msgspec

from ragtide.evaluators.errors import ConfigError, RagtideError
from ragtide.evaluators.judge.calls import Answer, Asker, Done, JudgeCall, SearchCall, SearchResults
from ragtide.evaluators.judge.fences import REPAIR, instructions, render_inputs
from ragtide.evaluators.judge.prompt_files import load_prompt
from ragtide.evaluators.judge.reading import UnreadableReply, read_reply, redact
from ragtide.evaluators.judge.replies import JudgeReply
from ragtide.evaluators.judge.settings import JudgeEndpoint, JudgeSettings
from ragtide.evaluators.outcome import Failed
from ragtide.evaluators.run import where
from ragtide.stream.judge.batch_endpoint import BatchEndpoint
from ragtide.stream.judge.batch_state import BatchState
from ragtide.stream.judge.connection import CallFailed, check_certificates
from ragtide.stream.judge.endpoint import Endpoint
from ragtide.stream.judge.limits import Ledger, LeftOut, Limits, MemoryLedger
from ragtide.stream.judge.protocol import Completion, Message, Request
from ragtide.stream.judge.record_limits import RecordLimits
from ragtide.stream.judge.reply_cache import ReplyCache
from ragtide.stream.judge.search import SearchEndpoint
from ragtide.stream.judge.usage import Usage, UsageKey, cost_usd

_log = logging.getLogger(__name__)
_MOST_REPEATED = 8_000  # characters of a bad reply that the judge sees again
_CLOSED = Failed("judge_unavailable", "the judge was shut down")
_Work = Callable[[Asker, UsageKey], Awaitable[Answer]]


class JudgeClient:
    """A `Judge`. The event loop starts with the first call, in the process that makes it.

    Budgets are taken from the `ledger`; without one they are of this process alone. `max_usd` limits all calls of the
    client together. `now` is in seconds since 1970. Without `limits_records` evaluators' limits of records an hour do
    not hold: they are meant for live traffic, and a run would have but the first few of its records evaluated. With
    `by_batch` calls are gathered until `flush`, and sent through the Batch API of endpoints.
    Raises `ConfigError` for a file of certificates or a cache that cannot be used, and for batches without a cache.
    """

    def __init__(
        self,
        settings: JudgeSettings,
        seed: int | None = None,
        ledger: Ledger | None = None,
        now: Callable[[], float] = time.time,
        max_usd: float | None = None,
        limits_records: bool = True,
        by_batch: bool = False,
    ) -> None:
        self._settings = settings
        self._limits = Limits(settings, ledger or MemoryLedger(), now, max_usd=max_usd)
        self._records = RecordLimits() if limits_records else None
        self._seed = seed
        for name, endpoint in settings.endpoints.items():
            check_certificates(f"evaluators.judge.endpoints.{name}.ca_file", endpoint.ca_file)
        check_certificates("evaluators.judge.search.ca_file", settings.search.ca_file)
        self._batches = _batch_state(settings, now) if by_batch else None
        try:
            self._cache = ReplyCache(settings.cache.path, settings.cache.max_bytes) if settings.cache.path else None
        except BaseException:
            if self._batches is not None:  # else no other client could use its file
                self._batches.close()
            raise
        self._now = now
        self._constant: dict[tuple[str, type[JudgeReply]], str] = {}
        self._usage: dict[UsageKey, Usage] = {}
        self._on_usage: Callable[[UsageKey, Usage], None] | None = None
        self._usage_lock = threading.Lock()
        self._start_lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._endpoints: dict[str, Endpoint | BatchEndpoint] = {}  # of the loop's thread, as all below
        self._search_endpoint: SearchEndpoint | None = None
        self._tasks: set[asyncio.Task[Answer]] = set()
        self._is_flushed = False  # no call comes before a reply
        self._is_finished = self._is_closed = False

    def endpoint_of(self, evaluator: str) -> str:
        """Return the name of the endpoint that the evaluator asks."""
        name = self._settings.endpoint_of(evaluator)
        assert name is not None, "the plan has no judge evaluator without an endpoint"
        return name

    def submit(self, call: JudgeCall, asker: Asker, done: Done) -> None:
        """Start the call and return. `done` is called once, in the loop's thread."""
        self._submit(partial(self._reply, call), asker, done)

    def search(self, call: SearchCall, asker: Asker, done: Done) -> None:
        """Start the search, likewise."""
        self._submit(partial(self._results, call), asker, done)

    def _submit(self, work: _Work, asker: Asker, done: Done) -> None:
        loop = self._started()
        try:
            if loop is not None:
                loop.call_soon_threadsafe(self._spawn, work, asker, done)
                return
        except RuntimeError:  # closed meanwhile
            pass
        done(_CLOSED)

    def flush(self, waiting: int) -> None:
        """Send calls that are gathered: no further one comes before a reply. `waiting` calls have none yet."""
        loop = self._loop
        if self._batches is None or loop is None:
            return
        with suppress(RuntimeError):  # closed meanwhile: all calls have ended
            loop.call_soon_threadsafe(self._flush, waiting)

    def usage(self) -> Mapping[UsageKey, Usage]:
        """Return a copy of the sums so far."""
        with self._usage_lock:
            return deepcopy(self._usage)

    def report_to(self, on_usage: Callable[[UsageKey, Usage], None]) -> None:
        """Call `on_usage` from the loop's thread with everything that is counted from now on."""
        self._on_usage = on_usage

    def finish(self) -> None:
        """Say that all results are stored: the close may forget batches that were read, and delete their files."""
        self._is_finished = True

    def close(self) -> None:
        """End all calls, which fail, and the loop."""
        with self._start_lock:
            self._is_closed = True
            loop, thread = self._loop, self._thread
        if loop is not None and thread is not None and thread.is_alive():
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            self._settle()
        if self._cache is not None:
            self._cache.close()
        if self._batches is not None:
            self._batches.close()
        atexit.unregister(self.close)

    def _settle(self) -> None:
        try:
            self._limits.settle()
        except RagtideError as error:  # what was leased then counts as spent
            _log.warning("the rest of the judge's budget could not be given back: %s", error)

    def _started(self) -> asyncio.AbstractEventLoop | None:
        with self._start_lock:
            if self._is_closed:
                return None
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._run, args=(self._loop,), name="judge", daemon=True)
                self._thread.start()
                atexit.register(self.close)
            return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        loop.run_until_complete(self._finish())
        loop.run_until_complete(loop.shutdown_default_executor())  # leases under way: they are given back afterwards
        loop.close()

    async def _finish(self) -> None:
        await asyncio.sleep(0)  # calls that were submitted before the end
        is_done = self._is_finished and not self._tasks
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for endpoint in self._endpoints.values():
            if isinstance(endpoint, BatchEndpoint):
                await endpoint.close(is_done=is_done)
            else:
                await endpoint.close()
        if self._search_endpoint is not None:
            await self._search_endpoint.close()
        await asyncio.sleep(0)  # aiohttp closes sockets in the next turn

    def _spawn(self, work: _Work, asker: Asker, done: Done) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(work, asker))
        self._tasks.add(task)
        task.add_done_callback(partial(self._end, done))

    def _end(self, done: Done, task: "asyncio.Task[Answer]") -> None:
        """Tell whoever waits: a task that is cancelled before it begins runs nothing of its own."""
        self._tasks.discard(task)
        self._is_flushed = False  # whoever waits may make further calls
        done(_CLOSED if task.cancelled() else task.result())

    def _flush(self, waiting: int) -> None:
        self._is_flushed = waiting == len(self._tasks)  # else a reply is on its way
        self._send_ready()

    def _send_ready(self) -> None:
        """Send what is gathered if every call waits for a batch. A search that is under way may lead to a call."""
        batched = [one for one in self._endpoints.values() if isinstance(one, BatchEndpoint)]
        if self._is_flushed and sum(one.waiting for one in batched) == len(self._tasks):
            for one in batched:
                one.send()

    async def _answer(self, work: _Work, asker: Asker) -> Answer:
        key = UsageKey(self.endpoint_of(asker.evaluator), asker.evaluator, asker.trace.app)
        try:
            return await work(asker, key)
        except LeftOut as left_out:
            self._count(key, Usage(failures=Counter((left_out.outcome.reason,))))
            return left_out.outcome
        except CallFailed as failed:
            failure = Failed(failed.kind, failed.detail)
        except RagtideError as error:  # such as a budget that cannot be read
            _log.error("a judge call was not sent: %s", error)
            failure = Failed("judge_crashed", type(error).__name__)
        except Exception as error:  # noqa: BLE001  # a bug: whoever waits must be told
            _log.error("a judge call crashed: %s", where(error))
            failure = Failed("judge_crashed", type(error).__name__)
        self._count(key, Usage(failures=Counter((failure.kind,))))
        return failure

    async def _reply(self, call: JudgeCall, asker: Asker, key: UsageKey) -> JudgeReply:
        endpoint = self._endpoint(key.endpoint)
        constant, inputs = self._instructions(call), render_inputs(call)
        stored_at = _cache_key(endpoint.settings, constant, inputs, call.vote)
        if (known := self._cached(stored_at, call, key)) is not None:
            return known
        messages = (Message("system", constant), Message("user", inputs))
        with self._admitted(asker):
            said = await self._complete(endpoint, Request(messages, call.reply, call.vote), asker, key)
        try:
            reply = read_reply(said.text, call.reply, call.counts)
        except UnreadableReply as fault:
            if said.cut:
                raise _unreadable(call, said, "it reached max_tokens") from None
            again = (Message("assistant", said.text[:_MOST_REPEATED]), Message("user", REPAIR.format(fault=fault)))
            repaired = Request((*messages, *again), call.reply, call.vote)
            said = await self._complete(endpoint, repaired, asker, key, is_repair=True)
            try:
                reply = read_reply(said.text, call.reply, call.counts)
            except UnreadableReply as second:
                raise _unreadable(call, said, f"{second}, also when asked again") from None
        if self._cache is not None:
            self._cache.put(stored_at, msgspec.json.encode(reply))
        return reply

    async def _complete(
        self, endpoint: Endpoint | BatchEndpoint, request: Request, asker: Asker, key: UsageKey, is_repair: bool = False
    ) -> Completion:
        said = await endpoint.complete(request, asker.trace, self._limits.of(key.app))
        tokens = said.tokens
        used = Usage(
            calls=1,
            repairs=int(is_repair),
            input_tokens=tokens.input,
            cached_tokens=tokens.cached,
            output_tokens=tokens.output,
            cost_usd=cost_usd(tokens, endpoint.settings),
            uncounted=int(not tokens.reported),
        )
        self._count(key, used)
        if said.refused:
            raise CallFailed("judge_refused", f"endpoint {endpoint.name}: the model or its filter declined")
        return said

    def _cached(self, stored_at: bytes, call: JudgeCall, key: UsageKey) -> JudgeReply | None:
        stored = self._cache.get(stored_at) if self._cache is not None else None
        if stored is None:
            return None
        try:
            reply = read_reply(stored.decode(), call.reply, call.counts)
        except (UnreadableReply, UnicodeDecodeError):  # written by another version
            return None
        self._count(key, Usage(from_cache=1))
        return reply

    async def _results(self, call: SearchCall, asker: Asker, key: UsageKey) -> SearchResults:
        settings = self._settings.search
        asked = ("search", settings.result_settings(), settings.url, call.query)
        stored_at = hashlib.sha256(msgspec.json.encode(asked)).digest()
        if self._cache is not None and (stored := self._cache.get(stored_at)) is not None:
            try:
                known = msgspec.json.decode(stored, type=SearchResults)
                self._count(key, Usage(from_cache=1))
                return known
            except msgspec.DecodeError:  # written by another version
                pass
        if self._search_endpoint is None:
            self._search_endpoint = SearchEndpoint(settings, seed=self._seed)
        time_left, limit = self._endpoint(key.endpoint).time_left, self._limits.of(key.app)
        with self._admitted(asker):
            found = await self._search_endpoint.find(call.query, asker.trace, time_left, limit)
        self._count(key, Usage(searches=1, cost_usd=settings.usd_per_search))
        if self._cache is not None and found.texts:  # pages may appear, and an engine may have been away
            self._cache.put(stored_at, msgspec.json.encode(found))
        return found

    def _admitted(self, asker: Asker) -> AbstractContextManager[None]:
        return nullcontext() if self._records is None else self._records.admitted(asker)

    def _count(self, key: UsageKey, used: Usage) -> None:
        with self._usage_lock:
            self._usage.setdefault(key, Usage()).add(used)
        if self._on_usage is not None:
            self._on_usage(key, used)

    def _endpoint(self, name: str) -> Endpoint | BatchEndpoint:
        if name not in self._endpoints:
            settings = self._settings.endpoints[name]
            self._endpoints[name] = (
                Endpoint(name, settings, seed=self._seed)
                if self._batches is None
                else BatchEndpoint(name, settings, self._batches, self._send_ready, self._now, self._seed)
            )
        return self._endpoints[name]

    def _instructions(self, call: JudgeCall) -> str:
        at = (call.prompt, call.reply)
        if at not in self._constant:
            self._constant[at] = instructions(load_prompt(call.prompt, self._settings), call.reply)
        return self._constant[at]


def _batch_state(settings: JudgeSettings, now: Callable[[], float]) -> BatchState:
    path = settings.cache.path
    if path is None:
        raise ConfigError(
            "--batch needs evaluators.judge.cache.path: the replies of a batch are kept there, so that a command that "
            "is stopped pays for no call twice"
        )
    return BatchState(path.with_name(f"{path.name}.batches"), now())


def _unreadable(call: JudgeCall, said: Completion, why: str) -> CallFailed:
    shape = redact(said.text, call.reply)
    return CallFailed("judge_reply", f"{call.prompt}: {why}; the reply without its words: {shape}")


def _cache_key(endpoint: JudgeEndpoint, constant: str, inputs: str, vote: int) -> bytes:
    return hashlib.sha256(msgspec.json.encode((endpoint.reply_settings(), constant, inputs, vote))).digest()
