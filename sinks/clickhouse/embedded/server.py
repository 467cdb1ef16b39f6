"""ClickHouse's HTTP interface over the embedded engine: what its ordinary clients send, and nothing more."""

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from aiohttp import web

from ragtide.evaluators.errors import BadRecord, ConfigError
from ragtide.sinks.clickhouse.embedded import guard
from ragtide.sinks.clickhouse.embedded.access import write_configuration
from ragtide.sinks.clickhouse.embedded.bodies import MAX_BYTES, unpack
from ragtide.sinks.clickhouse.embedded.confinement import confine
from ragtide.sinks.clickhouse.embedded.directory import DataDirectory
from ragtide.sinks.clickhouse.embedded.engine import Engine, Statement
from ragtide.sinks.clickhouse.embedded.errors import EngineError

HOST = "127.0.0.1"
_PARALLEL = 8  # statements at a time; further ones wait their turn
_SHUTDOWN_S = 10.0
_log = logging.getLogger(__name__)

# Parameters of the transport; every other one in the URL is a setting, as in ClickHouse.
_TRANSPORT = frozenset(
    [
        *("query", "database", "default_format", "user", "password", "quota_key", "query_id", "role", "stacktrace"),
        *("session_id", "session_timeout", "session_check", "compress", "decompress", "enable_http_compression"),
        *("buffer_size", "wait_end_of_query", "client_protocol_version", "send_progress_in_http_headers"),
        *("http_headers_progress_interval_ms", "cancel_http_readonly_queries_on_client_close"),
    ]
)
# HTTP statuses that ClickHouse gives to error codes; 500 to the rest. Clients go by the code, in a header.
_STATUS = {62: 400, 60: 404, 81: 404, 115: 404, guard.AUTHENTICATION_FAILED: 403}
_REQUEST_IS_WRONG = 36  # BAD_ARGUMENTS
_WRONG_KEY = "Authentication failed: the password is the key in the file `key` or `reader-key` of the data directory"


def serve(directory: Path, port: int, *, with_parent: bool = False) -> None:
    """Serve until SIGTERM or SIGINT (with_parent: or until stdin is closed); acknowledged rows are on disk.

    Raises ConfigError where the directory or the port is taken.
    """
    os.umask(0o077)
    files = DataDirectory(directory)
    with files.lock(), _listening(port) as listener:
        files.forget_port()
        keys = guard.Keys(write=files.key(), read=files.reader_key())
        incoming, scratch = files.make_empty("incoming"), files.make_empty("scratch")
        configuration = write_configuration(files.make_empty("engine"), scratch)
        files.data.mkdir(mode=0o700, exist_ok=True)
        confine(files.path, readable=configuration.parent, writable=[files.data, incoming], scratch=scratch)
        engine = Engine(files.data, incoming, configuration)
        try:
            asyncio.run(_serve(files, engine, keys, listener, with_parent))
        finally:
            files.forget_port()
            engine.close()


@contextlib.contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
            listener.listen(128)
        except OSError as error:
            reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be opened ({error.strerror})"
            raise ConfigError(
                f"port {port} on {HOST} {reason}: stop what listens there or choose another port"
            ) from None
        yield listener


async def _serve(
    files: DataDirectory, engine: Engine, keys: guard.Keys, listener: socket.socket, with_parent: bool
) -> None:
    port = int(listener.getsockname()[1])
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if with_parent:
        loop.add_reader(sys.stdin.fileno(), _stop_at_end_of_stdin, loop, stop)
    with ThreadPoolExecutor(_PARALLEL, "statement") as threads:
        application = web.Application(client_max_size=MAX_BYTES)
        application.router.add_route("*", "/{path:.*}", Interface(engine, threads, port, keys).handle)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=_SHUTDOWN_S, auto_decompress=False)
        await runner.setup()
        await web.SockSite(runner, listener).start()
        files.write_port(port)
        _log.info("listening on %s:%d, data in %s", HOST, port, files.path)
        await stop.wait()
        _log.info("stopping")
        await runner.cleanup()


class Interface:
    """Answers requests one by one; keeps no state between them."""

    def __init__(self, engine: Engine, threads: ThreadPoolExecutor, port: int, keys: guard.Keys) -> None:
        self._engine, self._threads, self._port, self._keys = engine, threads, port, keys

    async def handle(self, request: web.Request) -> web.Response:
        """The rows, or the engine's code and message."""
        if request.path == "/ping":
            foreign = guard.not_local(request.headers, self._port)
            return web.Response(status=403, text=foreign) if foreign else web.Response(text="Ok.\n")
        if refusal := guard.not_local(request.headers, self._port):
            return _error(guard.AUTHENTICATION_FAILED, refusal, "AUTHENTICATION_FAILED")
        access = self._keys.access(request.headers, request.query)
        if access is guard.Access.NONE:
            return _error(guard.AUTHENTICATION_FAILED, _WRONG_KEY, "AUTHENTICATION_FAILED")
        if request.path not in ("/", "/query"):
            return web.Response(status=404, text="There is no such path; ClickHouse's interface is at /\n")
        try:
            statement = await _statement(request, access)
        except BadRecord as error:
            return _error(_REQUEST_IS_WRONG, error.detail, "BAD_ARGUMENTS")
        threads = None if statement.kills else self._threads
        try:
            answer = await asyncio.get_running_loop().run_in_executor(threads, self._engine.run, statement)
        except EngineError as error:
            return web.Response(
                status=_STATUS.get(error.code, 500),
                text=f"{error}\n",
                headers={"X-ClickHouse-Exception-Code": str(error.code)},
            )
        return web.Response(body=answer, headers={"X-ClickHouse-Summary": "{}", "X-ClickHouse-Timezone": "UTC"})


async def _statement(request: web.Request, access: guard.Access) -> Statement:
    """Read the SQL of a request: from the URL, the body, both together, or a form."""
    given = dict(request.query)
    if request.content_type == "multipart/form-data":
        form = await request.post()
        given.update({name: value for name, value in form.items() if isinstance(value, str)})
        body = b""
    else:
        body = unpack(await request.read(), request.headers.get("Content-Encoding", ""))
    parts = [part for part in (given.get("query", "").encode(), body) if part]
    if not parts:
        raise BadRecord("empty", "the request holds no query")
    settings = {
        name: value for name, value in given.items() if name not in _TRANSPORT and not name.startswith("param_")
    }
    return Statement(
        text=b"\n".join(parts),
        database=given.get("database", request.headers.get("X-ClickHouse-Database", "")),
        format=given.get("default_format", "TabSeparated"),
        settings=settings,
        parameters={name.removeprefix("param_"): value for name, value in given.items() if name.startswith("param_")},
        read_only=access is guard.Access.READ or request.method != "POST",  # by a GET as ClickHouse has it
        query_id=given.get("query_id", ""),
    )


def _error(code: int, message: str, name: str) -> web.Response:
    return web.Response(
        status=_STATUS.get(code, 500),
        text=f"Code: {code}. DB::Exception: {message}. ({name})\n",
        headers={"X-ClickHouse-Exception-Code": str(code)},
    )


def _stop_at_end_of_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        loop.remove_reader(sys.stdin.fileno())
        stop.set()
