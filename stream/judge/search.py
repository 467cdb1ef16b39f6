"""The search endpoint: sends a query until it is answered, or says why it is not.

The URL is the operator's; of a request only the query is a model's. Redirects are not followed: the key stays where it
was sent. Neither errors nor logs have the query, the results or the key.
"""

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from types import NoneType
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from ragtide.evaluators.errors import Transient
from ragtide.evaluators.judge.calls import SearchResults, TraceCalls
from ragtide.evaluators.judge.search_settings import SearchSettings
from ragtide.sinks.retry_after import retry_after_s
from ragtide.stream.judge.connection import CallFailed, certificates, is_passing, read_body
from ragtide.stream.judge.limits import CallLimit
from ragtide.stream.judge.slots import Slots

_KIND = "judge_search"
_RETRY_MAX_S = 10.0
_MOST_LINK = 300  # characters


@dataclass(frozen=True, slots=True)
class _Miss:
    """A failed attempt. `again`: another may succeed. `lost`: it may be billed."""

    why: str
    again: bool = False
    lost: bool = False
    wait_s: float | None = None  # asked for by the endpoint


class SearchEndpoint:
    """The search endpoint. Used by one event loop."""

    def __init__(
        self, settings: SearchSettings, clock: Callable[[], float] = time.monotonic, seed: int | None = None
    ) -> None:
        assert settings.url is not None, "the plan has no evaluator that searches without an endpoint"
        self._settings = settings
        self._url = URL(settings.url)
        self._clock = clock
        self._random = random.Random(seed)
        self._slots = Slots(settings.concurrency)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=certificates(settings.ca_file)),
            headers=_headers(settings),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(),  # none of its own: see `_send`
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def find(
        self, query: str, trace: TraceCalls, time_left: Callable[[TraceCalls], float], limit: CallLimit | None
    ) -> SearchResults:
        """Return the first results. Raises `CallFailed`, and `LeftOut` if there is no money for a search.

        `time_left` returns the seconds that the calls about the trace may still take, and raises `CallFailed`.
        """
        for attempt in range(self._settings.retries + 1):
            async with self._slots.held(trace.order):
                got = await self._send_within(limit, query, time_left(trace))
            if isinstance(got, SearchResults):
                return got
            most_s = min(_RETRY_MAX_S, self._settings.retry_base_s * 2.0**attempt)
            pause_s = self._random.uniform(0, most_s) if got.wait_s is None else got.wait_s
            if not got.again or attempt == self._settings.retries or pause_s >= time_left(trace):
                tries = "" if attempt == 0 else f", {attempt + 1} attempts"
                raise CallFailed(_KIND, f"search: {got.why}{tries}")
            await asyncio.sleep(pause_s)
        raise AssertionError("the last attempt returns or raises")

    async def _send_within(self, limit: CallLimit | None, query: str, left_s: float) -> SearchResults | _Miss:
        """Send the request if there is money for it, and charge it unless it was refused."""
        limit_s = min(self._settings.timeout_s, left_s)
        if limit is None:
            return await self._send(query, limit_s)
        try:
            await limit.check_budget(self._clock() + left_s)
        except Transient as error:
            raise CallFailed("judge_unavailable", f"the ledger of budgets does not answer: {error}") from None
        usd = self._settings.usd_per_search
        try:
            got = await self._send(query, limit_s)
            if isinstance(got, _Miss) and not got.lost:
                usd = 0.0
            return got
        finally:  # a search that is cancelled may cost money too
            limit.charge(usd)

    async def _send(self, query: str, limit_s: float) -> SearchResults | _Miss:
        try:
            async with asyncio.timeout(limit_s):
                return await self._request(query)
        except TimeoutError:
            return _Miss(f"no answer within {limit_s:.3g} s", again=True, lost=True)

    async def _request(self, query: str) -> SearchResults | _Miss:
        try:
            async with self._open(query) as answer:
                status, headers = answer.status, answer.headers
                body = await read_body(answer)
        except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: an answer that is no HTTP
            lost = not isinstance(error, aiohttp.ClientConnectorError)
            return _Miss(f"no connection ({type(error).__name__})", again=True, lost=lost)
        if status != 200:
            wait_s = retry_after_s(headers.get("Retry-After"), time.time())
            return _Miss(f"status {status}", again=is_passing(status), wait_s=wait_s)
        if body is None:
            return _Miss("the answer is too large", lost=True)
        try:
            return SearchResults(read_results(body, self._settings))
        except UnreadableResults as fault:
            return _Miss(str(fault), lost=True)
        except EnginesFailed as fault:
            return _Miss(str(fault), again=True, lost=True)

    def _open(self, query: str) -> Any:
        settings = self._settings
        sent: dict[str, Any] = {**settings.parameters, settings.query_field: query}
        if settings.api_key_field is not None:
            sent[settings.api_key_field] = settings.api_key.get_secret_value().strip()
        if settings.method == "POST":
            json = {"Content-Type": "application/json"}
            return self._session.post(self._url, data=msgspec.json.encode(sent), headers=json, allow_redirects=False)
        url = self._url.update_query({name: _in_query(value) for name, value in sent.items()})
        return self._session.get(url, allow_redirects=False)


class UnreadableResults(ValueError):
    """The answer has no results that can be read. The message names the setting that may be wrong, and never quotes."""


class EnginesFailed(ValueError):
    """There are no results because engines behind the API did not answer."""


def read_results(body: bytes, settings: SearchSettings) -> tuple[str, ...]:
    """Return the texts of the first results that have an excerpt, cut to `max_characters` each.

    Raises `UnreadableResults`, and `EnginesFailed` if the answer has no results and names engines that failed.
    """
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UnreadableResults("the answer is no JSON") from None
    value = answer
    for name in settings.results.split(".") if settings.results else ():
        value = value.get(name) if isinstance(value, Mapping) else None
    if value is None and settings.missing_is_empty:
        return ()
    if not isinstance(value, list):
        raise UnreadableResults(
            f"the answer has no list at {settings.results!r}: check evaluators.judge.search.results"
        )
    if value and not any(_has_text(one, settings) for one in value):
        raise UnreadableResults(
            f"no result has a text in {settings.text_field!r}: check evaluators.judge.search.text_field"
        )
    texts = (text for one in value if (text := _text_of(one, settings)))
    found = tuple(islice(texts, settings.max_results))
    failed = answer.get(settings.failed_engines) if isinstance(answer, Mapping) and settings.failed_engines else None
    if failed and not found:
        raise EnginesFailed("no results, and the answer names engines that failed")
    return found


def _has_text(result: Any, settings: SearchSettings) -> bool:
    """Whether a result has the field of the excerpt. It may be empty: then the page has no excerpt."""
    return isinstance(result, Mapping) and isinstance(result.get(settings.text_field, ()), str | NoneType)


def _text_of(result: Any, settings: SearchSettings) -> str:
    """Return title, address and excerpt, each on its line; "" without an excerpt."""
    if not isinstance(result, Mapping):
        return ""
    title, link, text = (
        " ".join(value.split()) if isinstance(value := result.get(name), str) else ""
        for name in (settings.title_field, settings.link_field, settings.text_field)
    )
    lines = (title, link if len(link) <= _MOST_LINK else "", text)
    return "\n".join(filter(None, lines))[: settings.max_characters] if text else ""


def _in_query(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _headers(settings: SearchSettings) -> dict[str, str]:
    headers = {"Accept": "application/json"}
    if settings.api_key_field is None and (key := settings.api_key.get_secret_value().strip()):
        headers |= {settings.api_key_header: key} if settings.api_key_header else {"Authorization": f"Bearer {key}"}
    return headers | {name: value.get_secret_value() for name, value in settings.headers.items()}
