"""A scripted local server that speaks the chat completions API. It counts calls and keeps what was sent."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

KEY = "sk-scripted-0123456789"
Behaviour = Callable[["Sent", web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Sent:
    """One request as the server got it."""

    body: dict[str, Any]
    headers: dict[str, str]
    path: str

    @property
    def system(self) -> str:
        return str(self.body["messages"][0]["content"])

    @property
    def user(self) -> str:
        return str(self.body["messages"][1]["content"])

    @property
    def mode(self) -> str:
        return str(self.body.get("response_format", {}).get("type", "none"))


@dataclass
class ChatServer:
    """The server: `script` is used up call by call, `otherwise` answers the rest."""

    otherwise: Behaviour
    script: list[Behaviour] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    structured: tuple[str, ...] = ("json_schema", "json_object", "none")  # the modes that it knows
    in_flight: int = 0
    most_in_flight: int = 0
    url: str = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        sent = Sent(await request.json(), dict(request.headers), request.path_qs)
        self.sent.append(sent)
        if sent.mode not in self.structured:
            return await error(400, "unsupported_parameter")(sent, request)
        behaviour = self.script.pop(0) if self.script else self.otherwise
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await behaviour(sent, request)
        finally:
            self.in_flight -= 1


def completion(text: str | None, **more: Any) -> dict[str, Any]:
    """The body of an answer."""
    message = {"role": "assistant", "content": text, "refusal": more.get("refusal")}
    usage = more.get("usage", {"prompt_tokens": 1000, "completion_tokens": 50})
    return {
        "id": "x",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": more.get("finish", "stop")}],
        **({"usage": usage} if usage else {}),
    }


def say(text: str | None, **more: Any) -> Behaviour:
    async def behave(sent: Sent, request: web.Request) -> web.StreamResponse:
        return web.json_response(completion(text, **more))

    return behave


def reply(value: Any, **more: Any) -> Behaviour:
    return say(json.dumps(value), **more)


def by_rule(rule: Callable[[Sent], Any], after_s: float = 0.0) -> Behaviour:
    """Answer what the rule says of the request."""

    async def behave(sent: Sent, request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(after_s)
        return web.json_response(completion(json.dumps(rule(sent))))

    return behave


def error(status: int, code: str = "server_error", **headers: str) -> Behaviour:
    async def behave(sent: Sent, request: web.Request) -> web.StreamResponse:
        body = {"error": {"message": f"secret {KEY} and the text of a user", "type": code, "code": code}}
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.json_response(body, status=status, headers=given)

    return behave


def raw(body: bytes, status: int = 200, **headers: str) -> Behaviour:
    async def behave(sent: Sent, request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()})

    return behave


async def hang(sent: Sent, request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(3600)
    raise AssertionError("nobody waits so long")


async def slow_stream(sent: Sent, request: web.Request) -> web.StreamResponse:
    """A byte each tenth of a second, for ever."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.1)


async def cut_connection(sent: Sent, request: web.Request) -> web.StreamResponse:
    """Half an answer, then the connection ends."""
    body = json.dumps(completion('{"texts": ["a"]}')).encode()
    response = web.StreamResponse(headers={"Content-Length": str(len(body))})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    assert request.transport is not None
    request.transport.close()
    return response


@contextmanager
def chat_server(otherwise: Behaviour, *script: Behaviour, **options: Any) -> Iterator[ChatServer]:
    """Run the server in a thread of its own."""
    server = ChatServer(otherwise, list(script), **options)
    with serving(server.handle) as url:
        server.url = f"{url}/v1"
        yield server


@contextmanager
def serving(handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> Iterator[str]:
    """Serve every path in a thread of its own, and yield the URL."""
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", handle)
    with serving_app(app) as url:
        yield url


@contextmanager
def serving_app(app: web.Application) -> Iterator[str]:
    """Serve an application in a thread of its own, and yield the URL. In the end every connection is closed, also one
    whose client no longer reads: its socket would be found unclosed in a later test.
    """
    loop = asyncio.new_event_loop()
    transports = set[asyncio.Transport]()

    @web.middleware
    async def note(request: web.Request, handler: Callable[..., Awaitable[web.StreamResponse]]) -> web.StreamResponse:
        if request.transport is not None:
            transports.add(request.transport)
        return await handler(request)

    app.middlewares.append(note)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True, access_log=None)

    async def start() -> None:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()

    async def stop() -> None:
        await runner.cleanup()
        for transport in transports:
            transport.abort()
        await asyncio.sleep(0)

    loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
