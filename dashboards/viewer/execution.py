"""Run queries of dashboards with a read-only user and within limits; errors as sentences for people."""

import asyncio
import json
import logging
import math
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

from ragtide.dashboards.settings import ViewSettings
from ragtide.evaluators.errors import ConfigError, RagtideError, Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.errors import STATEMENT_FAILED, TooMuch, describe_failure

Found = TypeVar("Found")
log = logging.getLogger(__name__)
_BETWEEN_KILLS_S = 0.5
_KILL_FAILED: tuple[type[Exception], ...] = (RagtideError, *STATEMENT_FAILED)


@dataclass(frozen=True, slots=True)
class Statement:
    """One query to run; `key` tells its answer from the others."""

    key: str
    sql: str


class QueryRunner:
    """Runs at most `concurrent_queries` statements at a time, over all requests."""

    def __init__(self, database: Database, settings: ViewSettings) -> None:
        self._database = database
        self._max_rows = settings.max_rows
        self._timeout_s = settings.query_timeout_s
        self._settings: dict[str, int | str] = {
            "readonly": 2,
            "limit": settings.max_rows + 1,  # one more tells whether rows are left out
            "max_execution_time": math.ceil(settings.query_timeout_s),
            "max_bytes_to_read": settings.max_bytes_to_read,
            "read_overflow_mode": "throw",
            "date_time_output_format": "iso",
            "output_format_json_quote_64bit_integers": 0,
            "output_format_json_quote_denormals": 0,
            "output_format_json_quote_decimals": 0,
            "output_format_write_statistics": 0,  # else equal answers differ
            "cancel_http_readonly_queries_on_client_close": 1,  # where this process dies
        }
        self._threads = ThreadPoolExecutor(settings.concurrent_queries, thread_name_prefix="query")
        self._running: dict[str, Future[bytes]] = {}  # by query id, the waiting ones too
        self._kills: set[asyncio.Task[None]] = set()

    async def run(self, statements: Sequence[Statement]) -> AsyncGenerator[bytes, None]:
        """Give each answer as a line of JSON as soon as it is there. Equal statements are run once.

        Where the caller stops, waiting statements are dropped, and running ones killed.
        A line has `key`, and `rows`, `cut` and `answer` (JSONCompact), or `error`.
        """
        ids: dict[str, str] = {}
        for statement in statements:
            ids.setdefault(statement.sql, uuid4().hex)
        running = {id_: self._threads.submit(self._answer, sql, id_) for sql, id_ in ids.items()}
        self._running |= running
        tasks = [asyncio.create_task(self._line(statement, running[ids[statement.sql]])) for statement in statements]
        try:
            for done in asyncio.as_completed(tasks):
                yield await done
        finally:
            for task in tasks:
                task.cancel()
            kill = asyncio.create_task(self._end(running))
            self._kills.add(kill)
            kill.add_done_callback(self._kills.discard)

    async def call(self, work: Callable[[Database], Found]) -> Found:
        """Run other work on the database within the same limit of concurrency."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, self._database)

    async def close(self) -> None:
        """Stop, and kill the statements that run."""
        await self._end(dict(self._running))
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._database.close()

    async def _end(self, running: Mapping[str, Future[bytes]]) -> None:
        """Drop the statements that wait and kill the others, until each has ended.

        One may reach ClickHouse after the first kill, so there is another.
        """
        left = [id_ for id_, answer in running.items() if not answer.cancel() and not answer.done()]
        while left:
            try:
                await asyncio.to_thread(self._database.kill, left)
            except _KILL_FAILED as error:
                log.warning("queries that nobody waits for run on to their time limit: %s", describe_failure(error))
                break
            await asyncio.to_thread(wait, [running[id_] for id_ in left], _BETWEEN_KILLS_S)
            left = [id_ for id_ in left if not running[id_].done()]
        for id_ in running:
            self._running.pop(id_, None)

    async def _line(self, statement: Statement, running: Future[bytes]) -> bytes:
        key = json.dumps(statement.key)
        try:
            answer = await asyncio.wrap_future(running)
        except RagtideError as error:
            return f'{{"key":{key},"error":{json.dumps(self._explain(error))}}}\n'.encode()
        except Exception:  # the edge of a request: one panel says so, the others are shown
            log.exception("query %s failed", statement.key)
            return f'{{"key":{key},"error":{json.dumps(_BUG)}}}\n'.encode()
        rows = _row_count(answer)
        cut = "true" if rows > self._max_rows else "false"
        head = f'{{"key":{key},"rows":{min(rows, self._max_rows)},"cut":{cut},"answer":'
        return head.encode() + answer.replace(b"\n", b"").replace(b"\t", b"") + b"}\n"

    def _answer(self, sql: str, query_id: str) -> bytes:
        return self._database.json(sql, self._settings, query_id)

    def _explain(self, error: RagtideError) -> dict[str, Any]:
        if isinstance(error, TooMuch):
            return {
                "says": "This query takes more time or memory than the viewer allows.",
                "do": f"Choose a shorter time range or fewer values. The limit is {self._timeout_s:g} seconds "
                "(view.query_timeout_s).",
            }
        if isinstance(error, ConfigError):
            return {"says": str(error), "do": "Correct the settings, and start the viewer again."}
        if isinstance(error, Transient):
            return {"says": str(error), "do": "The panel asks again with the next refresh."}
        return {"says": str(error), "do": "Please report this query (menu of the panel: View query)."}


_BUG = {
    "says": "This query failed.",
    "do": "The viewer's output has the cause. The menu of the panel shows the query.",
}


def _row_count(answer: bytes) -> int:
    """Read the number of rows, which JSONCompact states after the data."""
    at = answer.rfind(b'"rows":')
    digits = answer[at + 7 : at + 40].strip()
    count = 0
    for byte in digits:
        if not 48 <= byte <= 57:
            break
        count = 10 * count + byte - 48
    return count
