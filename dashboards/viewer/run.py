"""`ragtide view`: the viewer in the foreground until SIGTERM or Ctrl-C."""

import asyncio
import secrets
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ragtide.dashboards.settings import ViewSettings, split_address
from ragtide.dashboards.viewer.access import is_loopback
from ragtide.dashboards.viewer.catalogue import Json
from ragtide.dashboards.viewer.server import ViewerServer

if TYPE_CHECKING:
    from ragtide.sinks.clickhouse.database import Database


def serve(
    documents: Callable[[], Mapping[str, Json]],
    database: "Callable[[], Database]",
    settings: ViewSettings,
    say: Callable[[str], None],
    timeline: Path | None = None,
) -> None:
    """Serve until a signal, and say where. Raises ConfigError if the address cannot be used."""
    token = settings.token.get_secret_value()
    if not token and not is_loopback(split_address(settings.listen)[0]):
        token = secrets.token_urlsafe(24)
        say(f"Token (view.token is not set; this one lasts until the viewer ends): {token}")
    asyncio.run(_serve(ViewerServer(documents, database, settings, token, timeline), say, bool(token)))


async def _serve(server: ViewerServer, say: Callable[[str], None], asks_token: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await server.start()
    once = " (this link logs in once; later, enter the token)" if asks_token else ""
    say(f"Dashboards: {server.url}{once}. Ctrl-C ends the viewer.")
    waiting = asyncio.create_task(stop.wait())
    loading = asyncio.create_task(server.loaded())
    try:
        await asyncio.wait({waiting, loading}, return_when=asyncio.FIRST_COMPLETED)
        if loading.done():
            loading.result()
            await waiting
    finally:
        waiting.cancel()
        loading.cancel()
        await asyncio.gather(waiting, loading, return_exceptions=True)
        await server.stop()
