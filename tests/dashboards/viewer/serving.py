"""A viewer on a free port of loopback, in a thread of this process."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from ragtide.dashboards.build import build
from ragtide.dashboards.settings import ViewSettings
from ragtide.dashboards.viewer.server import ViewerServer
from ragtide.evaluators.registry import load
from ragtide.sinks.clickhouse.database import Database


@dataclass(frozen=True, slots=True)
class Served:
    """A running viewer."""

    url: str  # without a path
    first_url: str  # as it is printed

    def get(self, path: str, **options: Any) -> requests.Response:
        return requests.get(f"{self.url}{path}", timeout=60, **options)

    def post(self, path: str, body: object, **options: Any) -> requests.Response:
        return requests.post(f"{self.url}{path}", json=body, timeout=60, **options)


@contextmanager
def serving(
    database: Database,
    *,
    token: str = "",
    timeline: Path | None = None,
    documents: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Iterator[Served]:
    """Serve the dashboards over this database until the context ends."""
    shown = documents if documents is not None else build(load(), database=database.name)
    view = ViewSettings(**{"listen": "127.0.0.1:0", **settings})
    server = ViewerServer(lambda: shown, lambda: Database(database.settings), view, token, timeline)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def run(work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(60)

    try:
        run(server.start())
        run(server.loaded())
        yield Served(f"http://{server.url.split('/')[2]}", server.url)
        run(server.stop())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
