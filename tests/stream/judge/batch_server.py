"""A scripted local server that speaks the Files and Batches API of OpenAI besides chat completions."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiohttp import BodyPartReader, web

from tests.stream.judge.chat_server import KEY, Behaviour, Sent, completion, serving_app

NEVER = 1 << 30  # looks
Handler = Callable[[web.Request], Any]


@dataclass(frozen=True)
class Refusal:
    """What a rule returns for a call that has no reply: its status, or a code in place of a response."""

    status: int = 0
    code: str = "server_error"


@dataclass
class Batch:
    """A batch at the server. It is in progress for so many looks."""

    id: str
    file: str
    body: dict[str, Any]
    lines: list[dict[str, Any]]
    looks: int
    status: str = "in_progress"
    output: str | None = None
    errors: str | None = None


@dataclass
class BatchServer:
    """The server. `faults` are used up by route, before a request does anything; `faults_after` once it did it."""

    rule: Callable[[Sent], Any]
    looks: int = 1  # for which a batch is in progress
    ends_as: str = "completed"
    refused_for: str = "invalid_json_line"  # of a batch that ends as failed
    cancels: bool = True
    structured: tuple[str, ...] = ("json_schema", "json_object", "none")
    change: Callable[[list[bytes]], list[bytes]] = lambda lines: lines  # of the output file
    waits_for_files: bool = False
    page: int = 100  # batches in an answer of the list
    faults: dict[str, list[Behaviour]] = field(default_factory=dict)
    faults_after: dict[str, list[Behaviour]] = field(default_factory=dict)
    url: str = ""
    chats: list[Sent] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)  # by route
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)  # with their queries
    files: dict[str, bytes] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # of uploaded files
    unread: set[str] = field(default_factory=set)  # files that are not ready
    batches: dict[str, Batch] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)

    @property
    def calls(self) -> list[int]:
        """The number of calls of each batch."""
        return [len(batch.lines) for batch in self.batches.values() if batch.lines]

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 30)
        routes: list[tuple[str, str, str, Handler]] = [
            ("POST", "/v1/chat/completions", "chat", self._chat),
            ("POST", "/v1/files", "upload", self._upload),
            ("GET", "/v1/files/{id}", "file", self._file),
            ("GET", "/v1/files/{id}/content", "content", self._content),
            ("DELETE", "/v1/files/{id}", "delete", self._delete),
            ("POST", "/v1/batches", "create", self._create),
            ("GET", "/v1/batches", "list", self._list),
            ("GET", "/v1/batches/{id}", "look", self._look),
            ("POST", "/v1/batches/{id}/cancel", "cancel", self._cancel),
        ]
        for method, path, name, handler in routes:
            app.router.add_route(method, path, self._counted(name, handler))
        return app

    def _counted(self, name: str, handler: Handler) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            self.requests[name] += 1
            self.headers.append(dict(request.headers))
            self.paths.append(request.path_qs)
            sent = Sent({}, dict(request.headers), request.path_qs)
            if faults := self.faults.get(name):
                return await faults.pop(0)(sent, request)
            response: web.StreamResponse = await handler(request)
            if faults := self.faults_after.get(name):
                return await faults.pop(0)(sent, request)
            return response

        return handle

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        sent = Sent(await request.json(), dict(request.headers), request.path_qs)
        self.chats.append(sent)
        response = self._response(sent)
        return web.json_response(response["body"], status=response["status_code"])

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        fields: dict[str | None, bytes] = {}
        name = ""
        async for part in await request.multipart():
            assert isinstance(part, BodyPartReader)
            fields[part.name] = bytes(await part.read())
            name = part.filename or name
        assert fields["purpose"] == b"batch"
        id = self._store(fields["file"])
        self.names[id] = name
        if self.waits_for_files:
            self.unread.add(id)
        return self._described(id)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        response = self._described(request.match_info["id"])
        self.unread.discard(request.match_info["id"])
        return response

    def _described(self, id: str) -> web.Response:
        if id not in self.files:
            return web.json_response({"error": {"code": "not_found"}}, status=404)
        status = "pending" if id in self.unread else "processed"
        return web.json_response({"id": id, "object": "file", "purpose": "batch", "status": status})

    async def _content(self, request: web.Request) -> web.StreamResponse:
        id = request.match_info["id"]
        return web.Response(body=self.files[id]) if id in self.files else web.Response(status=404)

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        found = self.files.pop(request.match_info["id"], None)
        return web.json_response({"deleted": True}, status=404 if found is None else 200)

    async def _create(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if body["input_file_id"] in self.unread:
            return web.json_response({"error": {"code": "file_not_ready"}}, status=400)
        lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        assert len({line["custom_id"] for line in lines}) == len(lines), "ids are unique within a file"
        assert all(len(line["custom_id"]) <= 64 and line["method"] == "POST" for line in lines)
        assert {line["url"] for line in lines} == {body["endpoint"]}
        batch = Batch(f"batch_{next(self.numbers)}", body["input_file_id"], body, lines, self.looks)
        self.batches[batch.id] = batch
        return web.json_response(self._object(batch))

    async def _list(self, request: web.Request) -> web.StreamResponse:
        newest = [self._object(batch) for batch in reversed(self.batches.values())]
        ids = [one["id"] for one in newest]
        start = ids.index(request.query["after"]) + 1 if "after" in request.query else 0
        end = start + min(self.page, int(request.query["limit"]))
        return web.json_response({"object": "list", "data": newest[start:end], "has_more": end < len(newest)})

    def add_batches(self, number: int) -> None:
        """Add newer batches of somebody else."""
        for _ in range(number):
            id = f"batch_{next(self.numbers)}"
            self.batches[id] = Batch(id, "file-other", {}, [], looks=0)

    async def _look(self, request: web.Request) -> web.StreamResponse:
        batch = self.batches.get(request.match_info["id"])
        if batch is None:
            return web.json_response({"error": {"code": "not_found"}}, status=404)
        batch.looks -= 1
        if batch.looks < 0 and batch.status == "in_progress":
            self.end(batch, self.ends_as)
        return web.json_response(self._object(batch))

    async def _cancel(self, request: web.Request) -> web.StreamResponse:
        batch = self.batches[request.match_info["id"]]
        if self.cancels:
            self.end(batch, "cancelled")
        return web.json_response(self._object(batch))

    def end(self, batch: Batch, status: str) -> None:
        """End a batch. All but one that is complete answer the first half of its calls."""
        batch.status = status
        if status == "failed":
            return
        done = len(batch.lines) if status == "completed" else len(batch.lines) // 2
        good: list[bytes] = []
        bad: list[bytes] = []
        for at, line in enumerate(batch.lines):
            sent = Sent(line["body"], {}, line["url"])
            response = self._response(sent) if at < done else None
            error = None if response else {"code": f"batch_{status}", "message": "the text of a user"}
            if response is not None and response["status_code"] == 0:
                error, response = response["body"]["error"], None
            told = {"id": f"r{at}", "custom_id": line["custom_id"], "response": response, "error": error}
            is_good = response is not None and response["status_code"] == 200
            (good if is_good else bad).append(json.dumps(told).encode() + b"\n")
        good.reverse()  # the order is not that of the input
        batch.output = self._store(b"".join(self.change(good))) if good else None
        batch.errors = self._store(b"".join(bad)) if bad else None

    def _response(self, sent: Sent) -> dict[str, Any]:
        said = self.rule(sent) if sent.mode in self.structured else Refusal(400, "unsupported_parameter")
        if isinstance(said, Refusal):
            error = {"message": f"secret {KEY} and the text of a user", "code": said.code}
            return {"status_code": said.status, "body": {"error": error}}
        text = said if isinstance(said, str) else json.dumps(said)
        return {"status_code": 200, "request_id": "x", "body": completion(text)}

    def _store(self, content: bytes) -> str:
        id = f"file-{next(self.numbers)}"
        self.files[id] = content
        return id

    def _object(self, batch: Batch) -> dict[str, Any]:
        total = len(batch.lines)
        faults = [{"code": self.refused_for, "line": 1, "message": "the text of a user"}]
        return {
            "id": batch.id,
            "object": "batch",
            "status": batch.status,
            "input_file_id": batch.file,
            "output_file_id": batch.output,
            "error_file_id": batch.errors,
            "errors": {"object": "list", "data": faults} if batch.status == "failed" else None,
            "request_counts": {"total": total, "completed": 0 if batch.looks >= 0 else total, "failed": 0},
        }


@contextmanager
def batch_server(rule: Callable[[Sent], Any], **options: Any) -> Iterator[BatchServer]:
    """Run the server in a thread of its own."""
    server = BatchServer(rule, **options)
    with serving_app(server.app()) as url:
        server.url = f"{url}/v1"
        yield server
