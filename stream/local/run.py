"""`ragwatch local`: the services in the foreground until somebody ends them."""

import asyncio
import signal
from pathlib import Path
from shlex import quote

from rich.console import Console

from evaluators.errors import ConfigError
from stream.local.services import LocalServices
from stream.local.topics import create_topics, topics_of
from stream.settings import Settings

_LOOK_EVERY_S = 1.0


def serve(data: Path, settings: Settings, console: Console, *, broker_port: int, clickhouse_port: int) -> int:
    """0 after Ctrl-C or SIGTERM; raises ConfigError where something is missing, in use or ended by itself."""
    services = LocalServices(
        data.resolve(), settings.retention, broker_port=broker_port, clickhouse_port=clickhouse_port
    )
    with services:
        asyncio.run(_until_ended(services, settings, console))
    return 0


async def _until_ended(services: LocalServices, settings: Settings, console: Console) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await create_topics(services.bootstrap, topics_of(settings.kafka))
    console.print(_how_to_connect(services), highlight=False, markup=False, soft_wrap=True)
    while not stop.is_set():
        if ended := services.ended():
            raise ConfigError(f"{ended} ended by itself; see {services.directory}")
        try:
            await asyncio.wait_for(stop.wait(), _LOOK_EVERY_S)
        except TimeoutError:
            continue


def _how_to_connect(services: LocalServices) -> str:
    exports = "\n".join(f"  export {name}={value}" for name, value in services.variables().items())
    key = quote(str(services.key_file))
    return f"""\
The broker listens on {services.bootstrap}, ClickHouse on {services.clickhouse.url}; Ctrl-C ends both.
In another terminal:

{exports}
  export RAGWATCH_CLICKHOUSE__PASSWORD="$(cat {key})"
  ragwatch worker --lane fast,model

  curl "{services.clickhouse.url}/?database={services.clickhouse.database}" \\
    -H "X-ClickHouse-Key: $(cat {key})" -d "SELECT count() FROM traces"
"""
