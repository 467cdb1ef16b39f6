"""A proxy before ClickHouse that spoils inserts: applied and answered with an error or not at all, or applied late."""

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Literal

import aiohttp
from aiohttp import web
from yarl import URL

from ragtide.sinks.settings import ClickHouseSettings

Spoil = Literal["error", "silence", "delay"]
_LARGEST = 1 << 30
_OF_CONNECTION = {"host", "content-length", "transfer-encoding", "connection", "keep-alive"}
_INSERT = re.compile(rb"\s*INSERT INTO (?:`?\w+`?\.)?`?(?P<table>\w+)")
_LONGEST_NAME = 300


class SpoiledInserts:
    """Passes everything on as it came; while `spoiling`, inserts are spoiled. Where ClickHouse is away, it is too.

    An insert that was received is applied, whatever becomes of its client meanwhile.
    """

    def __init__(self, clickhouse: ClickHouseSettings) -> None:
        self._behind = clickhouse
        self._spoil: Spoil | None = None
        self._tables: frozenset[str] = frozenset()
        self._over = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="spoiled-inserts", daemon=True)
        self.port = 0
        self.spoiled = Counter[str]()  # inserts so far, by table

    @property
    def settings(self) -> ClickHouseSettings:
        """As of what is behind it, but for the address."""
        return self._behind.model_copy(update={"url": f"http://127.0.0.1:{self.port}"})

    @contextmanager
    def spoiling(self, how: Spoil, *tables: str) -> Iterator[None]:
        """error: applied, answered with status 502. silence: applied, not answered. delay: applied at the end.

        Inserts into these tables; where none is named, into all.
        """
        self._spoil, self._tables = how, frozenset(tables)
        try:
            yield
        finally:
            self._spoil = None
            self._loop.call_soon_threadsafe(self._end)

    def __enter__(self) -> "SpoiledInserts":
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        self._client = aiohttp.ClientSession(auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None))
        application = web.Application(client_max_size=_LARGEST)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=2, auto_decompress=False)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        self._end()
        await self._runner.cleanup()
        await self._client.close()

    def _end(self) -> None:
        self._over.set()
        self._over = asyncio.Event()

    async def _handle(self, request: web.Request) -> web.Response:
        try:
            body = await request.read()
        except ConnectionResetError:  # its client was killed half-way: nothing is passed on
            return web.Response(status=502)
        spoil, over = self._spoil_of(request.query.get("query", "").encode() + body[:_LONGEST_NAME]), self._over
        if spoil == "delay":
            await over.wait()
        answer = await self._passed_on(request, body)
        if spoil == "error":
            return web.Response(status=502)
        if spoil == "silence":
            await over.wait()
        if answer is None or spoil == "silence":
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=502)  # nobody reads it
        return answer

    def _spoil_of(self, statement: bytes) -> Spoil | None:
        insert = _INSERT.match(statement)
        table = insert["table"].decode() if insert else ""
        if self._spoil is None or not table or (self._tables and table not in self._tables):
            return None
        self.spoiled[table] += 1
        return self._spoil

    async def _passed_on(self, request: web.Request, body: bytes) -> web.Response | None:
        """What ClickHouse answers; None where it does not."""
        url = URL(self._behind.url + request.raw_path, encoded=True)
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in _OF_CONNECTION]
        try:
            async with self._client.request(request.method, url, headers=headers, data=body) as answer:
                content = await answer.read()
        except aiohttp.ClientError:
            return None
        kept = [(name, value) for name, value in answer.headers.items() if name.lower() not in _OF_CONNECTION]
        return web.Response(status=answer.status, headers=dict(kept), body=content)
