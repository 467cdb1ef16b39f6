"""An Alertmanager's API with faults on demand, which the real one has not. Requests are held to the contract.

Whether ragtide's alerts do what they should is tested with the real Alertmanager.
"""

import json
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml
from openapi_core import OpenAPI
from openapi_core.exceptions import OpenAPIError
from openapi_core.testing import MockRequest, MockResponse

CONTRACT = Path(__file__).parent / "alertmanager.openapi.yaml"
BASE = "/api/v2"


@dataclass
class AlertmanagerFault:
    """What happens instead of a good answer to the next `times` requests of this verb and path."""

    verb: str
    path: str
    status: int = 500
    body: bytes = b'"out of order"'
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    times: int = 1
    about: str = ""  # what the body must hold
    hold: threading.Event | None = None  # wait for it (20 s at most) before anything else


class AlertmanagerServer:
    """Start with `serving`. `violations` must be empty in the end; `posted` are bodies of accepted posts."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.posted: list[list[dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.silences: list[dict[str, Any]] = []
        self.started_at = datetime(2026, 1, 1, tzinfo=UTC)
        self.violations: list[str] = []
        self.faults: list[AlertmanagerFault] = []
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"alertmanager": self})
        self._http = _Http(("127.0.0.1", 0), handler)
        if tls is not None:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._http.server_port}"

    def serve(self) -> None:
        self._http.serve_forever(poll_interval=0.02)

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def next_fault(self, verb: str, path: str, raw: bytes) -> AlertmanagerFault | None:
        with self.lock:
            for fault in self.faults:
                if (fault.verb, fault.path) == (verb, path) and fault.about.encode() in raw and fault.times > 0:
                    fault.times -= 1
                    return fault
        return None

    def handle(self, verb: str, path: str, headers: dict[str, str], raw: bytes) -> Any:
        """Check the request, carry it out, check the answer."""
        request = MockRequest("http://alertmanager.test", verb, BASE + path, headers=headers, data=raw)
        with self.lock:
            self.headers.append(headers)
            try:
                contract().validate_request(request)
            except OpenAPIError as error:
                reasons = [str(each) for each in getattr(error.__cause__, "schema_errors", [])] or [repr(error)]
                self.violations.append(f"{verb} {path}: {'; '.join(reasons)} in {raw[:500]!r}")
            if verb == "POST":
                self.posted.append(json.loads(raw))
                return None
            answer = self.silences if path == "/silences" else self._status()
            contract().validate_response(request, MockResponse(json.dumps(answer).encode(), 200))
            return answer

    def _status(self) -> dict[str, Any]:
        return {
            "uptime": self.started_at.isoformat(),
            "versionInfo": {"version": "0.25.0"},
            "cluster": {"status": "ready", "peers": [{"name": "a"}, {"name": "b"}]},
        }


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that no longer waits, or trusts no certificate, is part of the tests."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    alertmanager: AlertmanagerServer
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.removeprefix(BASE)
        fault = self.alertmanager.next_fault(self.command, path, raw)
        if fault is None:
            answer = self.alertmanager.handle(self.command, path, dict(self.headers), raw)
            body = b"" if answer is None else json.dumps(answer).encode()
            self._reply(200, body, {"Content-Type": "application/json"})
            return
        if fault.hold is not None:
            fault.hold.wait(20)
        self._reply(fault.status, fault.body, fault.headers)

    do_GET = do_POST = _serve

    def _reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Tests read `posted`."""


@cache
def contract() -> OpenAPI:
    return OpenAPI.from_dict(yaml.safe_load(CONTRACT.read_text()))


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[AlertmanagerServer]:
    """A running server; on leaving, every request it got was one that the contract allows."""
    server = AlertmanagerServer(tls)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(5)
    assert server.violations == []
