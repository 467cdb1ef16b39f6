"""The part of Hugging Face's protocol that its client uses to fetch a model, on loopback."""

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """What is there, what goes wrong, and what was asked for."""

    url: str = ""
    models: dict[str, Mapping[str, bytes]] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    missing: dict[str, int] = field(default_factory=dict)  # of a file: bytes less than HEAD said
    stops_after: dict[str, int] = field(default_factory=dict)  # of a file: bytes until it stalls
    stalled: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)
    ranges: list[tuple[str, str]] = field(default_factory=list)  # of every file that was read: name, range or ""


@contextmanager
def serving() -> Iterator[Hub]:
    """A hub without models."""
    hub = Hub()

    class Handler(_Handler):
        of = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    of: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Not on the test's output."""

    def do_HEAD(self) -> None:
        self._file(body=False)

    def do_GET(self) -> None:
        path = unquote(self.path.partition("?")[0])
        if not path.startswith("/api/models/"):
            self._file(body=True)
            return
        name, _, revision = path.removeprefix("/api/models/").partition("/revision/")
        if refusal := self._refusal(name, revision):
            self._refuse(*refusal)
            return
        siblings = [{"rfilename": file} for file in self.of.models[name]]
        told = json.dumps({"id": name, "sha": COMMIT, "siblings": siblings}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def _refusal(self, name: str, revision: str) -> tuple[int, str] | None:
        if name in self.of.gated:
            return 403, "GatedRepo"
        if name not in self.of.models:
            return 401, "RepoNotFound"  # as the hub says it of what is not there or private
        return None if revision in ("", "main", COMMIT) else (404, "RevisionNotFound")

    def _refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _file(self, *, body: bool) -> None:
        name, _, rest = unquote(self.path).strip("/").partition("/resolve/")
        file = rest.partition("/")[2]
        content = self.of.models[name][file]
        given = self.headers.get("Range") or ""
        start = int(given.removeprefix("bytes=").rstrip("-")) if given else 0
        end = len(content) - (self.of.missing.get(file, 0) if body else 0)
        self.send_response(206 if given else 200)
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(end - start))
        if given:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
        self.end_headers()
        if not body:
            return
        self.of.ranges.append((file, given))
        pause = self.of.stops_after.pop(file, None)
        if pause is not None:
            self.wfile.write(content[start:pause])
            start = pause
            self.of.stalled.set()
            self.of.go_on.wait()
        try:
            self.wfile.write(content[start:end])
        except OSError:  # the client is gone, as it should be
            self.close_connection = True
