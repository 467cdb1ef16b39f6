"""A receiver of webhooks on loopback with scripted answers; it verifies signatures as docs/webhooks.md says."""

import base64
import hashlib
import hmac
import json
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@dataclass(frozen=True)
class Answer:
    """One answer. `status` None: the connection is cut; `hang`: wait for the event, 30 s at most.

    `chunks`, in place of `body`, are sent 0.1 s apart.
    """

    status: int | None = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    hang: threading.Event | None = None
    chunks: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Call:
    """One request."""

    body: bytes
    headers: dict[str, str]

    @property
    def event(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


class Receiver:
    """Answers 200, or the next of `script`. Start with `receiving`."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.script: list[Answer] = []
        self.calls: list[Call] = []
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"receiver": self})
        self.http = _Http(("127.0.0.1", 0), handler)
        if context is not None:
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self.http.server_port}/hooks/top-secret-path"

    @property
    def told(self) -> list[tuple[str, str]]:
        """Type and subject of each message that arrived, answered well or not."""
        return [(call.event["type"].removeprefix("ragtide."), call.event["subject"]) for call in self.calls]


def verified(call: Call, secret: str = SECRET) -> bool:
    """Whether one of the signatures is right."""
    headers = {name.lower(): value for name, value in call.headers.items()}
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + call.body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    right = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    given = [one.removeprefix("v1,") for one in headers["webhook-signature"].split()]
    return any(hmac.compare_digest(right, one) for one in given)


@contextmanager
def receiving(context: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    receiver = Receiver(context)
    thread = threading.Thread(target=receiver.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.http.shutdown()
        receiver.http.server_close()
        thread.join()


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that no longer waits is part of the tests."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    receiver: Receiver
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.receiver.lock:
            self.receiver.calls.append(Call(body, dict(self.headers)))
            answer = self.receiver.script.pop(0) if self.receiver.script else Answer()
        if answer.hang is not None:
            answer.hang.wait(30)
        if answer.status is None:
            self.close_connection = True
            self.connection.close()
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        parts = answer.chunks or (answer.body,)
        self.send_header("Content-Length", str(sum(map(len, parts))))
        self.end_headers()
        for number, part in enumerate(parts):
            time.sleep(0.1 if number else 0)
            self.wfile.write(part)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""
