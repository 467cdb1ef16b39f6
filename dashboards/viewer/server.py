"""HTTP server of the viewer: pages, dashboards without SQL, and answers to their queries."""

import asyncio
import zlib
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from aiohttp import hdrs, web
from pydantic import BaseModel, Field, ValidationError

from ragtide.dashboards.settings import ViewSettings, split_address
from ragtide.dashboards.viewer.access import LOGIN, Access, add_headers, is_loopback, refuse
from ragtide.dashboards.viewer.activity import recent_events, utc_now
from ragtide.dashboards.viewer.catalogue import Board, Catalogue, Json, QueryName
from ragtide.dashboards.viewer.queries import Choice, Scope, UnknownMacro, expand
from ragtide.dashboards.viewer.static_files import StaticFiles
from ragtide.evaluators.errors import ConfigError, RagtideError

if TYPE_CHECKING:
    from ragtide.dashboards.viewer.execution import QueryRunner, Statement
    from ragtide.sinks.clickhouse.database import Database

_LARGEST_REQUEST = 1 << 20  # bytes
_LATEST_MS = 253_402_300_799_000  # the year 9999
_SHUTDOWN_S = 1.0  # for answers under way
_MOST_POINTS = 20_000  # of a graph
_Text = Annotated[str, Field(max_length=65536)]
_Time = Annotated[int, Field(ge=0, le=_LATEST_MS)]


class _Query(BaseModel, extra="forbid"):
    key: _Text
    kind: str = Field(pattern="^(panel|variable|annotation)$")
    name: _Text
    ref: _Text = ""
    interval_s: int = Field(default=60, ge=1, le=10 * 366 * 86400)


class _Request(BaseModel, extra="forbid"):
    """What the browser asks: queries by name, one time range (milliseconds since 1970), and the chosen values."""

    uid: _Text
    start: _Time = Field(alias="from")
    end: _Time = Field(alias="to")
    variables: Annotated[dict[_Text, _Text | Annotated[list[_Text], Field(max_length=1000)]], Field(max_length=100)]
    queries: Annotated[list[_Query], Field(min_length=1, max_length=200)]


class _Loaded(NamedTuple):
    catalogue: Catalogue
    runner: "QueryRunner"


class ViewerServer:
    """Listens between `start` and `stop`. Dashboards are built after it listens; requests wait for them.

    ClickHouse's driver is imported then, too: it takes a good part of a second.

    `token` empty: none is asked for, which only a loopback address may do. `timeline` is the demo's record of faults.
    """

    def __init__(
        self,
        documents: Callable[[], Mapping[str, Json]],
        database: "Callable[[], Database]",
        settings: ViewSettings,
        token: str,
        timeline: Path | None = None,
    ) -> None:
        self._host, self._port = split_address(settings.listen)
        if not token and not is_loopback(self._host):
            raise ConfigError(f"view.listen is {settings.listen}, which other machines reach: set view.token")
        self._documents = documents
        self._timeline = timeline
        self._database = database
        self._settings = settings
        self._access = Access(token)
        self._static = StaticFiles()
        self._loading: asyncio.Task[_Loaded] | None = None
        app = web.Application(middlewares=[self._access.middleware], client_max_size=_LARGEST_REQUEST)
        app.on_response_prepare.append(add_headers)
        app.add_routes(
            [
                web.get("/", self._start_page),
                web.get("/d/{uid}", self._page),
                web.get("/d/{uid}/{slug}", self._page),
                web.get(LOGIN, self._login),
                web.post(LOGIN, self._login),
                web.get("/favicon.ico", self._icon),
                web.get(r"/static/{version:\w+}/{name:.+}", self._static.serve),
                web.get("/api/dashboards", self._listing),
                web.get("/api/dashboards/{uid}", self._document),
                web.get("/api/activity", self._activity),
                web.post("/api/query", self._query),
                web.post("/api/sql", self._sql),
                web.get("/{other:.*}", self._unknown),
            ]
        )
        self._app = web.AppRunner(
            app, access_log=None, keepalive_timeout=75, shutdown_timeout=_SHUTDOWN_S, handler_cancellation=True
        )

    async def start(self) -> None:
        """Listen; raise ConfigError if the address cannot be used."""
        await self._app.setup()
        try:
            await web.TCPSite(self._app, self._host, self._port).start()
        except OSError as error:
            await self._app.cleanup()
            raise ConfigError(
                f"view.listen: cannot listen on {self._host}:{self._port}: {error.strerror or error}; stop the process "
                "that listens there, or choose another port (0: any free one)"
            ) from None
        self._port = self._app.addresses[0][1]
        self._loading = asyncio.create_task(asyncio.to_thread(self._load))

    async def loaded(self) -> None:
        """Wait until the dashboards are built; raise what building them raises."""
        await self._loaded()

    async def stop(self) -> None:
        """Stop listening."""
        await self._app.cleanup()
        if self._loading is not None:
            (loaded,) = await asyncio.gather(self._loading, return_exceptions=True)
            if isinstance(loaded, _Loaded):
                await loaded.runner.close()

    @property
    def url(self) -> str:
        """Where people open it; where a token is asked for, a link that logs in once."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}{self._access.login_path or '/'}"

    def _load(self) -> _Loaded:
        from ragtide.dashboards.viewer.execution import QueryRunner

        return _Loaded(Catalogue(self._documents()), QueryRunner(self._database(), self._settings))

    async def _loaded(self) -> _Loaded:
        assert self._loading is not None
        return await asyncio.shield(self._loading)

    async def _boards(self) -> Catalogue:
        return (await self._loaded()).catalogue

    async def _start_page(self, request: web.Request) -> web.StreamResponse:
        first = next(iter((await self._boards()).boards))
        raise web.HTTPFound(f"/d/{first}")

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return self._static.page(request, "index.html")

    async def _login(self, request: web.Request) -> web.StreamResponse:
        answer = await self._access.login(request)
        if answer is not None:
            return answer
        if request.method == "POST":
            await asyncio.sleep(0.5)  # guesses take long
        return self._static.page(request, "login.html", 401 if request.method == "POST" else 200)

    async def _icon(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPMovedPermanently(f"{self._static.prefix}icon.svg")

    async def _unknown(self, request: web.Request) -> web.StreamResponse:
        if request.path.startswith("/api/"):
            return refuse(404, f"There is no {request.path}.")
        return self._static.page(request, "missing.html", 404)

    async def _listing(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"dashboards": (await self._boards()).listing(), "demo": self._timeline is not None})

    async def _document(self, request: web.Request) -> web.StreamResponse:
        board = await self._board(request.match_info["uid"])
        answer = web.Response(body=board.document, content_type="application/json", charset="utf-8")
        answer.enable_compression()
        return answer

    async def _activity(self, request: web.Request) -> web.StreamResponse:
        try:
            runner = (await self._loaded()).runner
            events = await runner.call(lambda database: recent_events(database, self._timeline, utc_now()))
        except RagtideError as error:
            return refuse(503, str(error))
        answer = web.json_response({"events": events})
        answer.enable_compression()
        return answer

    async def _query(self, request: web.Request) -> web.StreamResponse:
        """Stream one line per query, each as soon as it is there. Where the page is closed, its queries are killed."""
        statements = await self._statements(request)
        answer = web.StreamResponse(headers={hdrs.CONTENT_TYPE: "application/x-ndjson"})
        packer = None
        if "gzip" in request.headers.get(hdrs.ACCEPT_ENCODING, ""):
            answer.headers[hdrs.CONTENT_ENCODING] = "gzip"
            packer = zlib.compressobj(1, wbits=31)
        await answer.prepare(request)
        async with aclosing((await self._loaded()).runner.run(statements)) as lines:
            with suppress(ConnectionResetError):  # the page was left
                async for line in lines:
                    # Flushed line by line, so that a panel is drawn before the slowest one has its answer.
                    part = line if packer is None else packer.compress(line) + packer.flush(zlib.Z_SYNC_FLUSH)
                    await answer.write(part)
                if packer is not None:
                    await answer.write(packer.flush())
                await answer.write_eof()
        return answer

    async def _sql(self, request: web.Request) -> web.StreamResponse:
        """Show the statements of queries as they would run."""
        return web.json_response({one.key: one.sql for one in await self._statements(request)})

    async def _statements(self, request: web.Request) -> "list[Statement]":
        if request.content_type != "application/json":
            raise _problem(415, "Send JSON as application/json.")
        try:
            asked = _Request.model_validate_json(await request.read())
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise _problem(400, f"{'.'.join(map(str, first['loc'])) or 'request'}: {first['msg']}.") from None
        if asked.start > asked.end:
            raise _problem(400, "The time range ends before it starts.")
        board = await self._board(asked.uid)
        chosen: dict[str, Choice] = {**board.defaults}
        chosen |= {name: value for name, value in asked.variables.items() if name in chosen}
        return [self._statement(board, query, asked, chosen) for query in asked.queries]

    def _statement(self, board: Board, query: _Query, asked: _Request, chosen: Mapping[str, Choice]) -> "Statement":
        sql = board.queries.get(QueryName(query.kind, query.name, query.ref))
        if sql is None:
            raise _problem(404, f"{board.uid} has no {query.kind} {query.name} with a query {query.ref}".strip() + ".")
        from ragtide.dashboards.viewer.execution import Statement

        start, end = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (asked.start, asked.end))
        interval_s = max(query.interval_s, (asked.end - asked.start) // 1000 // _MOST_POINTS)
        try:
            return Statement(query.key, expand(sql, Scope(start, end, interval_s, chosen)))
        except UnknownMacro as error:
            raise _problem(500, f"{board.uid}: {error}.") from None

    async def _board(self, uid: str) -> Board:
        board = (await self._boards()).boards.get(uid)
        if board is None:
            raise _problem(404, f"There is no dashboard {uid}.")
        return board


def _problem(status: int, says: str) -> web.HTTPException:
    """Make an exception that answers with an error as a sentence."""
    kinds: dict[int, type[web.HTTPException]] = {
        400: web.HTTPBadRequest,
        404: web.HTTPNotFound,
        415: web.HTTPUnsupportedMediaType,
        500: web.HTTPInternalServerError,
    }
    body: dict[str, Any] = {"error": says}
    return kinds[status](text=web.json_response(body).text, content_type="application/json")
