"""One endpoint, asked directly: sends a request until it is answered, or says why it is not. It makes all retries."""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import aiohttp
from yarl import URL

from ragtide.evaluators.errors import Transient
from ragtide.evaluators.judge.calls import TraceCalls
from ragtide.evaluators.judge.settings import JudgeEndpoint
from ragtide.stream.judge.breaker import Breaker
from ragtide.stream.judge.connection import (
    JSON,
    UNKNOWN_FIELD,
    CallFailed,
    Miss,
    lost_connection,
    open_session,
    read_body,
    rejected,
)
from ragtide.stream.judge.limits import CallLimit
from ragtide.stream.judge.protocol import MODES, Completion, Request, decode_answer, encode_request
from ragtide.stream.judge.slots import Slots
from ragtide.stream.judge.usage import cost_usd, most_usd


@dataclass(slots=True)
class _Structured:
    """What is known of the endpoint's structured output."""

    mode: str
    known: bool
    found_out: asyncio.Event = field(default_factory=asyncio.Event)
    asking: bool = False


class Endpoint:
    """An endpoint. Used by one event loop."""

    def __init__(
        self, name: str, settings: JudgeEndpoint, clock: Callable[[], float] = time.monotonic, seed: int | None = None
    ) -> None:
        self.name, self.settings = name, settings
        self._clock = clock
        self._random = random.Random(seed)
        self._slots = Slots(settings.concurrency)
        self._breaker = Breaker(settings.breaker_failures, settings.breaker_s)
        self._paused_until_s = 0.0
        auto = settings.structured == "auto"
        self._structured = _Structured(MODES[0] if auto else settings.structured, known=not auto)
        base = URL(settings.url)
        self._url = (base / "chat" / "completions").with_query(base.query)
        self._session = open_session(settings, aiohttp.ClientTimeout())  # no limit of its own: see `_send`

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def complete(self, request: Request, trace: TraceCalls, limit: CallLimit | None = None) -> Completion:
        """Return the model's reply. Raises `CallFailed`, and `LeftOut` if the limit does not allow the call."""
        for attempt in range(self.settings.retries + 1):
            if not self._breaker.allows(self._clock()):
                raise CallFailed("judge_unavailable", f"endpoint {self.name} failed too often and is left alone")
            await self._sleep(self._paused_until_s - self._clock(), trace)
            if limit is not None:
                await limit.wait_for_room(trace, self._deadline_s(trace))
            async with self._slots.held(trace.order):
                got = await self._send_within(limit, request, trace)
            if isinstance(got, Completion):
                self._breaker.succeeded()
                return got
            if got.broken:
                self._breaker.failed(self._clock())
            pause_s = self._pause_s(attempt) if got.wait_s is None else got.wait_s
            is_last = not got.again or attempt == self.settings.retries
            if is_last or self._clock() + pause_s >= self._deadline_s(trace):
                tries = "" if attempt == 0 else f", {attempt + 1} attempts"
                raise CallFailed(got.kind, f"endpoint {self.name}: {got.why}{tries}")
            if got.wait_s is not None:  # all calls are asked to wait
                self._paused_until_s = max(self._paused_until_s, self._clock() + got.wait_s)
            else:
                await asyncio.sleep(pause_s)
        raise AssertionError("the last attempt returns or raises")

    async def _send_within(self, limit: CallLimit | None, request: Request, trace: TraceCalls) -> Completion | Miss:
        """Send the request if there is money for it, and charge it, whatever happens to it."""
        if limit is None:
            return await self._send(request, self._attempt_s(trace))
        try:
            await limit.check_budget(self._deadline_s(trace))
        except Transient as error:
            raise CallFailed("judge_unavailable", f"the ledger of budgets does not answer: {error}") from None
        limit_s = self._attempt_s(trace)
        usd = most_usd(len(encode_request(request, self.settings, MODES[0])), self.settings)
        try:
            got = await self._send(request, limit_s)
            if isinstance(got, Completion):
                usd = cost_usd(got.tokens, self.settings)
            elif not got.lost:
                usd = 0.0
            return got
        finally:  # a call that is cancelled may cost money too
            limit.charge(usd)

    async def _sleep(self, pause_s: float, trace: TraceCalls) -> None:
        if pause_s <= 0:
            return
        if trace.started_s is not None and self._clock() + pause_s >= self._deadline_s(trace):
            raise CallFailed("judge_throttled", f"endpoint {self.name} asks to wait for longer than a trace may take")
        await asyncio.sleep(pause_s)

    def _deadline_s(self, trace: TraceCalls) -> float:
        started_s = self._clock() if trace.started_s is None else trace.started_s
        return started_s + self.settings.trace_timeout_s

    def _attempt_s(self, trace: TraceCalls) -> float:
        """Return the seconds that the next attempt may take."""
        return min(self.settings.timeout_s, self.time_left(trace))

    def time_left(self, trace: TraceCalls) -> float:
        """Return the seconds that calls about the trace may still take. They start with its first call.

        Raises `CallFailed` if there are none.
        """
        if trace.started_s is None:
            trace.started_s = self._clock()
        left_s = self._deadline_s(trace) - self._clock()
        if left_s <= 0:
            limit_s = self.settings.trace_timeout_s
            raise CallFailed("judge_timeout", f"endpoint {self.name}: calls about the trace took over {limit_s:g} s")
        return left_s

    def _pause_s(self, attempt: int) -> float:
        return self._random.uniform(0, min(self.settings.retry_max_s, self.settings.retry_base_s * 2.0**attempt))

    async def _send(self, request: Request, limit_s: float) -> Completion | Miss:
        """Send the request. `limit_s` holds for all that this takes, finding out the structured output too."""
        try:
            async with asyncio.timeout(limit_s):
                return await self._post_structured(request)
        except TimeoutError:
            return Miss("judge_timeout", f"no answer within {limit_s:.3g} s", again=True, broken=True, lost=True)

    async def _post_structured(self, request: Request) -> Completion | Miss:
        """Post the request with the structured output that the endpoint has. The first call finds out which."""
        known = self._structured
        if not known.known and known.asking:
            await known.found_out.wait()
        if known.known:
            return await self._post(request, known.mode)
        known.asking = True
        try:
            return await self._find_out(request)
        finally:
            known.found_out.set()

    async def _find_out(self, request: Request) -> Completion | Miss:
        got: Completion | Miss = await self._post(request, MODES[0])
        first = got
        for mode in MODES:
            if mode != MODES[0]:
                got = await self._post(request, mode)
            if isinstance(got, Completion):
                self._structured.mode, self._structured.known = mode, True
                return got
            if got.status not in UNKNOWN_FIELD:
                return got
        return first  # it is not the field that it rejects

    async def _post(self, request: Request, mode: str) -> Completion | Miss:
        body = encode_request(request, self.settings, mode)
        try:
            async with self._session.post(self._url, data=body, headers=JSON, allow_redirects=False) as answer:
                status, headers = answer.status, answer.headers
                read = await read_body(answer)
        except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: an answer that is no HTTP
            return lost_connection(error)
        if status == 200:
            completion = decode_answer(read, len(body)) if read is not None else None
            why = "the answer is not a chat completion"
            return completion or Miss("judge_unavailable", why, status, again=True, broken=True, lost=True)
        return rejected(status, headers, read or b"")
