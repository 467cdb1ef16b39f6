"""A scripted local search API. It keeps what was sent."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.stream.judge.chat_server import serving

SEARCH_KEY = "search-key-0123456789"
Behaviour = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Query:
    """One request as the server got it."""

    method: str
    path: str  # as sent, with the query
    query: dict[str, str]  # decoded
    headers: dict[str, str]
    body: Any


@dataclass
class SearchServer:
    """The server: `script` is used up request by request, `otherwise` answers the rest."""

    otherwise: Behaviour
    script: list[Behaviour]
    sent: list[Query] = field(default_factory=list)
    url: str = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        self.sent.append(Query(request.method, request.raw_path, dict(request.query), dict(request.headers), body))
        return await (self.script.pop(0) if self.script else self.otherwise)(request)


def page(text: str, title: str = "A page", url: str = "https://page.example/a") -> dict[str, str]:
    return {"title": title, "url": url, "content": text}


def found(*texts: str) -> Behaviour:
    """Results in SearXNG's form."""
    return answer({"query": "q", "results": [page(text) for text in texts]})


def answer(body: Any, status: int = 200, **headers: str) -> Behaviour:
    async def behave(request: web.Request) -> web.StreamResponse:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.json_response(body, status=status, headers=given)

    return behave


def raw(body: bytes, status: int = 200) -> Behaviour:
    async def behave(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, status=status)

    return behave


async def hang(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(3600)
    raise AssertionError("nobody waits so long")


async def slow_stream(request: web.Request) -> web.StreamResponse:
    """A byte each tenth of a second, for ever."""
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.1)


async def huge(request: web.Request) -> web.StreamResponse:
    """Zeros without an end."""
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"0" * 65_536)


async def cut_connection(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"results"')
    assert request.transport is not None
    request.transport.close()
    return response


@contextmanager
def search_server(otherwise: Behaviour, *script: Behaviour) -> Iterator[SearchServer]:
    """Run the server in a thread of its own."""
    server = SearchServer(otherwise, list(script))
    with serving(server.handle) as url:
        server.url = f"{url}/search"
        yield server
