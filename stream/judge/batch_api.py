"""The Files and Batches API of an endpoint, as far as batches of judge calls need it.

Methods return a `Miss` in place of an error. Requests that may be repeated are, with pauses.
"""

import asyncio
import io
import logging
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

import aiohttp
import msgspec
from yarl import URL

from ragtide.evaluators.judge.settings import JudgeEndpoint
from ragtide.stream.judge.batch_lines import BatchResults
from ragtide.stream.judge.connection import (
    JSON,
    MOST_BYTES,
    Miss,
    lost_connection,
    open_session,
    read_body,
    rejected,
)
from ragtide.stream.judge.protocol import safe_code

_log = logging.getLogger(__name__)
ENDED = frozenset(("completed", "failed", "expired", "cancelled"))  # other states may change
_NOT_READY = frozenset(("pending", "running"))  # states of a file at endpoints that check it first
_GONE = frozenset((404, 410))  # statuses of a file that was deleted
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:=-]{0,254}\Z")  # it becomes part of a URL
_BYTES_PER_S = 100_000  # the slowest connection that a file is sent over
_LINES_PER_S = 10  # likewise, read
_PAGES, _PAGE = 100, 100  # of the list of batches
_FIRST_LOOK_S = 1.0
Found = TypeVar("Found")


class _Fault(msgspec.Struct, frozen=True):
    code: str | int | None = None


class _Faults(msgspec.Struct, frozen=True):
    data: list[_Fault] | None = None


class Counts(msgspec.Struct, frozen=True):
    """How many calls of a batch have ended, and how."""

    total: int = 0
    completed: int = 0
    failed: int = 0


class BatchObject(msgspec.Struct, frozen=True):
    """A batch as the endpoint describes it."""

    id: str
    status: str
    input_file_id: str | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: _Faults | None = None
    request_counts: Counts | None = None

    @property
    def result_files(self) -> list[str]:
        """Ids of the files with lines about calls."""
        files = (self.output_file_id, self.error_file_id)
        return list(dict.fromkeys(file for file in files if file and _ID.match(file)))

    @property
    def code(self) -> str:
        """The code of the first fault of the whole batch, or ""."""
        faults = (self.errors.data if self.errors else None) or ()
        return next((code for fault in faults if (code := safe_code(fault.code))), "")


class _File(msgspec.Struct, frozen=True):
    id: str
    status: str | None = None


class _Deleted(msgspec.Struct, frozen=True):
    deleted: bool = True


class _BatchList(msgspec.Struct, frozen=True):
    data: list[BatchObject]
    has_more: bool = False


class BatchApi:
    """The API of one endpoint. Used by one event loop."""

    def __init__(self, settings: JudgeEndpoint, rng: random.Random) -> None:
        self._settings, self._random = settings, rng
        self._base = URL(settings.url)
        limit_s = settings.timeout_s
        self._session = open_session(
            settings, aiohttp.ClientTimeout(total=None, sock_connect=limit_s, sock_read=limit_s)
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def upload(self, lines: bytes, name: str, on_made: Callable[[str], None]) -> str | Miss:
        """Upload a file of calls, wait until it may be used, and return its id. `on_made` gets it before the wait."""
        limit_s = self._settings.timeout_s + len(lines) / _BYTES_PER_S

        def form() -> aiohttp.FormData:
            made = aiohttp.FormData()
            made.add_field("purpose", "batch")
            made.add_field("file", io.BytesIO(lines), filename=name, content_type="application/jsonl")
            return made

        async def post() -> _File | Miss:
            made = _decoded(await self._request("POST", "files", form=form, limit_s=limit_s), _File)
            if isinstance(made, Miss) and (made.lost or made.status >= 500):
                _log.warning("the endpoint may hold a file %s that is never used: %s", name, made.why)
            return made

        got = await self._repeat(post)
        if isinstance(got, _File):
            on_made(got.id)
        look_s = _FIRST_LOOK_S
        while isinstance(got, _File) and (got.status or "").lower() in _NOT_READY:
            await asyncio.sleep(look_s)
            look_s, file = min(2 * look_s, self._settings.batch.poll_s), got.id
            got = await self._repeat(partial(self._file, file))
        return got if isinstance(got, Miss) else got.id

    async def create(self, file: str) -> BatchObject | Miss:
        """Create a batch of a file. A `Miss` that is `lost` may have created it.

        Where an attempt may have succeeded, the list of batches is read before the next one: none is paid for twice.
        """
        body = {
            "input_file_id": file,
            "endpoint": self._settings.batch.path,
            "completion_window": self._settings.batch.completion_window,
        }
        may_exist = False

        async def post() -> BatchObject | Miss:
            nonlocal may_exist
            if may_exist:
                found = await self._find(file)
                if found is not None:
                    return found
                may_exist = False
            got = _decoded(await self._request("POST", "batches", json=msgspec.json.encode(body)), BatchObject)
            may_exist = isinstance(got, Miss) and (got.lost or got.status >= 500)
            return got

        got = await self._repeat(post)
        if isinstance(got, Miss) and may_exist:
            found = await self.find(file)
            if isinstance(found, BatchObject):
                return found
            return replace(got, lost=found is not None)
        return got

    async def find(self, file: str) -> BatchObject | Miss | None:
        """Return the batch that was made of a file, or None if there is none."""
        return await self._repeat(partial(self._find, file))

    async def look(self, batch: str) -> BatchObject | Miss:
        """Return the batch as it is now. Not repeated."""
        return _decoded(await self._request("GET", "batches", batch), BatchObject)

    async def cancel(self, batch: str, longest_pause_s: float) -> BatchObject | Miss:
        """Cancel the batch."""

        async def post() -> BatchObject | Miss:
            return _decoded(await self._request("POST", "batches", batch, "cancel"), BatchObject)

        return await self._repeat(post, longest_pause_s)

    async def results(self, files: list[str], sizes: Mapping[str, int], longest_pause_s: float) -> BatchResults:
        """Read the files with the lines of a batch. One that is gone has none."""
        results = BatchResults(sizes)
        for file in files:
            lines = BatchResults(sizes)

            async def read(file: str = file) -> Miss | None:
                nonlocal lines
                lines = BatchResults(sizes)
                miss = await self._read_lines(file, lines)
                return replace(miss, again=True) if miss is not None and miss.status in _GONE else miss

            miss = await self._repeat(read, longest_pause_s)
            if miss is None:
                results.merge(lines)
            elif miss.status in _GONE:
                _log.warning("a file with results, %s, is gone: %s", file, miss.why)
            else:  # a part of it would be cached, and no call would wait for the rest
                results.fault = miss
        return results

    async def delete(self, file: str) -> bool:
        """Delete a file, and return whether it is gone."""
        body = await self._request("DELETE", "files", file)
        got = _decoded(body, _Deleted) if body else _Deleted()  # status 204 has no body
        return got.status == 404 if isinstance(got, Miss) else got.deleted

    async def _find(self, file: str) -> BatchObject | Miss | None:
        after: Mapping[str, str] = {}
        for _ in range(_PAGES):
            query = {"limit": str(_PAGE), **after}
            listed = _decoded(await self._request("GET", "batches", query=query), _BatchList)
            if isinstance(listed, Miss):
                return listed
            if (found := next((one for one in listed.data if one.input_file_id == file), None)) is not None:
                return found
            if not listed.has_more or not listed.data:
                return None
            after = {"after": listed.data[-1].id}
        return Miss("judge_unavailable", "the list of batches is too long", lost=True)

    async def _file(self, file: str) -> _File | Miss:
        return _decoded(await self._request("GET", "files", file), _File)

    async def _read_lines(self, file: str, results: BatchResults) -> Miss | None:
        most_bytes = MOST_BYTES * (len(results.sizes) + 1)
        limit_s = self._settings.timeout_s + len(results.sizes) / _LINES_PER_S
        url = self._url("files", file, "content")
        try:
            async with asyncio.timeout(limit_s), self._session.get(url, allow_redirects=False) as answer:
                if answer.status != 200:
                    return rejected(answer.status, answer.headers, await read_body(answer) or b"")
                async for line in _lines(answer, most_bytes):
                    if line is None:
                        results.unreadable += 1
                    else:
                        results.add(line)
        except TimeoutError:
            return Miss("judge_timeout", f"no end of the file within {limit_s:.3g} s", again=True)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return lost_connection(error)
        return None

    async def _request(
        self,
        method: str,
        *parts: str,
        query: Mapping[str, str] | None = None,
        json: bytes | None = None,
        form: Callable[[], aiohttp.FormData] | None = None,
        limit_s: float | None = None,
    ) -> bytes | Miss:
        """Return the body of an answer with a status of success."""
        limit_s = limit_s or self._settings.timeout_s
        body = form() if form is not None else json
        headers = None if json is None else JSON
        url = self._url(*parts).update_query(query or {})
        try:
            async with (
                asyncio.timeout(limit_s),
                self._session.request(method, url, data=body, headers=headers, allow_redirects=False) as answer,
            ):
                status, given = answer.status, answer.headers
                read = await read_body(answer)
        except TimeoutError:
            return Miss("judge_timeout", f"no answer within {limit_s:.3g} s", again=True, lost=True)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return lost_connection(error)
        if not 200 <= status < 300:
            return rejected(status, given, read or b"")
        return read if read is not None else Miss("judge_unavailable", "the answer is too large", status, lost=True)

    def _url(self, *parts: str) -> URL:
        url = self._base
        for part in parts:
            url = url / part
        return url.with_query(self._base.query)

    async def _repeat(
        self, attempt: Callable[[], Awaitable[Found | Miss]], longest_pause_s: float | None = None
    ) -> Found | Miss:
        """Make attempts until one succeeds, a further one cannot, or the endpoint asks for too long a pause."""
        settings = self._settings
        most_s = max(settings.batch.max_wait_s if longest_pause_s is None else longest_pause_s, settings.retry_max_s)
        for number in range(settings.retries + 1):
            got = await attempt()
            if not isinstance(got, Miss):
                return got
            longest_s = min(settings.retry_max_s, settings.retry_base_s * 2.0**number)
            pause_s = self._random.uniform(0, longest_s) if got.wait_s is None else got.wait_s
            if not got.again or number == settings.retries or pause_s > most_s:
                return got
            await asyncio.sleep(pause_s)
        raise AssertionError("the last attempt returns")


async def _lines(answer: aiohttp.ClientResponse, most_bytes: int) -> AsyncIterator[bytes | None]:
    """Yield the lines of a body; None for one that is too long. Raises `ValueError` if the body is."""
    held, is_too_long, read = bytearray(), False, 0
    async for part in answer.content.iter_any():
        read += len(part)
        if read > most_bytes:
            raise ValueError("the file is too large")
        *ended, rest = part.split(b"\n")
        for piece in ended:
            if is_too_long or len(held) + len(piece) > MOST_BYTES:
                yield None
            else:
                yield bytes(held + piece)
            held, is_too_long = bytearray(), False
        if not is_too_long:
            held += rest
        if len(held) > MOST_BYTES:
            held, is_too_long = bytearray(), True
    if is_too_long:
        yield None
    elif held:
        yield bytes(held)


Decoded = TypeVar("Decoded", _File, BatchObject, _Deleted, _BatchList)


def _decoded(body: bytes | Miss, form: type[Decoded]) -> Decoded | Miss:
    if isinstance(body, Miss):
        return body
    try:
        got = msgspec.json.decode(body, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Miss("judge_unavailable", "the answer is not that of a batch API", 200, again=True, lost=True)
    if isinstance(got, (_File, BatchObject)) and not _ID.match(got.id):
        return Miss("judge_unavailable", "the answer has an id that cannot be one", 200, lost=True)
    return got
