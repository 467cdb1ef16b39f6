"""A Grafana for tests: over real HTTP, every request and answer held to our description, faults on demand."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlsplit

from openapi_core import OpenAPI
from openapi_core.exceptions import OpenAPIError
from openapi_core.testing import MockRequest, MockResponse
from pydantic import SecretStr
from werkzeug.datastructures import MultiDict

from ragtide.sinks.settings import GrafanaSettings
from tests.contracts.check_grafana import OURS, RESOURCES, load
from tests.contracts.grafana_alerting_state import Answer, refused
from tests.contracts.grafana_state import GrafanaState

TOKEN = "glsa_correct-token"
READ_ONLY_TOKEN = "glsa_read-only-token"


@dataclass
class Fault:
    """What happens instead of a good answer to the next `times` requests of this verb and path."""

    verb: str
    path: str  # how it begins, without query
    status: int | None = None  # None: the connection is dropped without an answer
    body: bytes = b'{"message": "out of order"}'
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1
    about: str = ""  # what query or body must hold
    after: bool = False  # the request is carried out first, and only its answer is lost
    hold: threading.Event | None = None  # wait for it (5 s at most) before anything else


@dataclass(frozen=True)
class Call:
    verb: str
    path: str
    body: Any
    headers: dict[str, str]


class GrafanaServer:
    """Start with `serving`. `violations` must be empty in the end; `calls` are those that arrived, in order."""

    def __init__(self) -> None:
        self.state = GrafanaState()
        self.calls: list[Call] = []
        self.violations: list[str] = []
        self.faults: list[Fault] = []
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"grafana": self})
        self._http = _Http(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def settings(self, token: str = TOKEN, timeout_s: float = 10.0, path: str = "") -> GrafanaSettings:
        return GrafanaSettings(url=self.url + path, token=SecretStr(token), timeout_s=timeout_s)

    def made(self, verb: str, path: str) -> list[Call]:
        return [call for call in self.calls if call.verb == verb and call.path.startswith(path)]

    def serve(self) -> None:
        self._http.serve_forever(poll_interval=0.02)

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def next_fault(self, verb: str, target: str, raw: bytes) -> Fault | None:
        url = urlsplit(target)
        said = unquote_plus(url.query) + raw.decode()
        with self._lock:
            for fault in self.faults:
                meant = fault.verb == verb and url.path.startswith(fault.path) and fault.about in said
                if meant and fault.times > 0:
                    fault.times -= 1
                    return fault
        return None

    def handle(self, verb: str, target: str, headers: dict[str, str], raw: bytes) -> Answer:
        """Check the request, carry it out, check the answer."""
        url = urlsplit(target)
        path, query = url.path.removeprefix("/behind/a/prefix"), parse_qs(url.query)
        body = json.loads(raw) if raw else None
        with self._lock:
            self.calls.append(Call(verb, path, body, headers))
            given = headers.get("Authorization")
            if path != "/api/health" and given not in (f"Bearer {TOKEN}", f"Bearer {READ_ONLY_TOKEN}"):
                return refused(401, "Invalid API key")
            arguments = MultiDict([(key, value) for key, values in query.items() for value in values])
            request = MockRequest("http://grafana.test", verb, path, args=arguments, headers=headers, data=raw)
            try:
                _contract(path).validate_request(request)
            except OpenAPIError as error:
                reasons = "; ".join(str(each) for each in getattr(error.__cause__, "schema_errors", [])) or str(error)
                self.violations.append(f"{verb} {target}: {type(error).__name__}: {reasons} in {raw[:500]!r}")
                return refused(400, "bad request")
            if given == f"Bearer {READ_ONLY_TOKEN}" and verb != "GET":
                return refused(403, "You'll need additional permissions: annotations:create")
            answer = self.state.answer(verb, path, query, body)
            reply = MockResponse(json.dumps(answer.body).encode(), answer.status)
            try:
                _contract(path).validate_response(request, reply)
            except OpenAPIError as error:
                self.violations.append(f"this server's own answer to {verb} {target}: {error!r} {error.__cause__!r}")
            return answer


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that no longer waits is part of the tests; anything else is a bug of this server."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    grafana: GrafanaServer
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.grafana.next_fault(self.command, self.path, raw)
        if fault and fault.hold:
            fault.hold.wait(5)
        if fault is None or fault.after:
            answer = self.grafana.handle(self.command, self.path, dict(self.headers), raw)
            if fault is None:
                self._reply(answer.status, json.dumps(answer.body).encode(), {"Content-Type": "application/json"})
                return
        if fault.status is None:
            self.close_connection = True
            self.connection.close()
        else:
            self._reply(fault.status, fault.body, fault.headers)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status != 204:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Tests read `calls`."""


def _contract(path: str) -> OpenAPI:
    is_resource = path.startswith("/apis/") or path == "/api/frontend/settings"
    return _description(RESOURCES if is_resource else OURS)


@cache
def _description(file: Path) -> OpenAPI:
    return OpenAPI.from_dict(load(file))


@contextmanager
def serving() -> Iterator[GrafanaServer]:
    """A running server; on leaving, every request it got was one that the contract allows."""
    server = GrafanaServer()
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(5)
    assert server.violations == []
